"""``guieval study consistency`` as it is typed: a reasoning policy on the demo benchmark, three judges, and the truth."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

from guieval.actions import Action, ActionSpace, Wait
from guieval.data.benchmark import ABCBenchmark
from guieval.errors import DataError, UsageError
from guieval.journal import RunFolder
from guieval.journal.lines import json_line
from guieval.playground.mock_server import MockServer
from guieval.playground.mock_server.policies import wrong_action
from guieval.registry import load_benchmark
from guieval.reports.tables.records import defused_value
from guieval.reports.tables.terminal import rendered
from guieval.reports.tables.writers import comma_separated, markdown
from guieval.running.fixed_thoughts import read_thoughts
from guieval.steps import StepKey, StepTaskModel
from guieval.studies.consistency.contingency import Contingency, Stratified, summed
from guieval.studies.consistency.human_labels import read_human_labels
from guieval.studies.consistency.judging import Consistency, JudgeFinding, Trace
from guieval.studies.consistency.tables import example_table, warnings
from guieval.studies.decisions.clustering import ClusterSettings
from tests.command_line import CommandLine
from tests.made_runs import step
from tests.rows import every_row

from .reasoners import judge, reasoner

OPTIONS = {"episodes": 8, "seed": 5}
JUDGES = {"ui-tars-7b": 0.9, "qwen3-vl-8b-thinking": 0.9, "ui-venus-navi-7b": 0.85}
MODEL = "qwen2.5-vl-7b"
SAMPLES = 8
CELLS = ("consistent_exact", "consistent_missed", "inconsistent_exact", "inconsistent_missed")


def plan(task: StepTaskModel) -> tuple[Action | None, Action | None]:
    """Thinks of the reference three times out of four, does what it thinks of two times out of three; some are odd."""
    source = Random(f"deed {task.key}")
    intent = task.action if source.random() < 0.75 else wrong_action(task, ActionSpace(), source.random())
    draw = source.random()
    action = intent if draw < 0.66 else None if draw < 0.74 else wrong_action(task, ActionSpace(), source.random())
    return (None if source.random() < 0.1 else intent), action


class World:
    """A run with thoughts and its judges, and what is true of every step that has a thought."""

    def __init__(self, folder: Path, guieval: CommandLine) -> None:
        self.folder, self._guieval = folder, guieval
        self.benchmark: ABCBenchmark = load_benchmark("demo", folder / "demo", **OPTIONS)
        tasks = [task for episode in self.benchmark for task in episode.steps]
        planned = {task.key: plan(task) for task in tasks}
        self.truth = {key: intent == action for key, (intent, action) in planned.items() if intent is not None}
        self.intents = {key: intent for key, (intent, _) in planned.items() if intent is not None}
        self.steps = len(tasks)

    @property
    def judges(self) -> str:
        return ",".join(str(self.folder / name) for name in JUDGES)

    def run(self, name: str, server: MockServer, *more: str | Path) -> None:
        options = [item for key, value in OPTIONS.items() for item in ("--set", f"bench_options.{key}={value}")]
        start: list[str | Path] = ["run", "--quiet", "--model", name, "--bench", "demo", "--data", self.folder / "demo"]
        with server:
            done = self._guieval(*start, *options, "--base-url", server.base_url, *more)
        assert done.code == 0, done

    def labels(self, file: Path, *, of: list[StepKey] | None = None) -> Path:
        rows = [[*key[1:], "consistent" if self.truth[key] else "no"] for key in of or self.truth]
        with file.open("w", newline="") as stream:
            csv.writer(stream).writerows([["subset", "episode_id", "step_index", "consistent"], *rows])
        return file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("consistency")


@pytest.fixture
def world(folder: Path, guieval: CommandLine) -> World:
    made = World(folder, guieval)
    if not (folder / "run").exists():
        made.run(MODEL, reasoner(MODEL, made.benchmark, plan), "--out", folder / "run")
        for name, faithful in JUDGES.items():
            more = ("--samples", str(SAMPLES), "--set", "sampling.temperature=1.0", "--fixed-thoughts", folder / "run")
            made.run(name, judge(name, made.benchmark, faithful, silent=0.05), *more, "--out", folder / name)
    return made


def report(guieval: CommandLine, world: World, *more: str | Path, judges: str = "") -> dict[str, Any]:
    done = guieval("study", "consistency", world.folder / "run", "--judges", judges or world.judges, "--format", "json", *more)
    assert done.code == 0, done
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_judges_are_asked_about_every_thought_and_find_what_is_true(world: World, guieval: CommandLine, tmp_path: Path) -> None:
    labels = world.labels(tmp_path / "labels.csv")
    found = report(guieval, world, "--labels", labels, "--steps", tmp_path / "steps.jsonl")
    assert found["steps"]["judged"] == len(world.truth) and found["steps"]["not_judged"] == 0
    assert found["steps"]["without_thought"] == world.steps - len(world.truth)
    assert [each["executions"] for each in found["judges"]] == [SAMPLES * len(world.truth)] * 3
    assert {RunFolder(world.folder / name).manifest.to_json()["fixed_thoughts"]["model"] for name in JUDGES} == {MODEL}
    together = found["detection"]["together"]
    assert together["accuracy"]["value"] >= 0.95 and together["tpr"]["n"] == sum(world.truth.values())
    assert together["undecided"] + together["accuracy"]["n"] == len(world.truth)
    low, high = (together["accuracy"]["interval"][end] for end in ("low", "high"))
    assert low < together["accuracy"]["value"] <= high
    assert set(found["detection"]["judges"]) == set(JUDGES)
    rows = {StepKey(*list(row.values())[:4]): row for row in map(json.loads, (tmp_path / "steps.jsonl").open())}
    assert rows.keys() == world.truth.keys()
    assert sum((row["judged"] == "consistent") == world.truth[key] for key, row in rows.items()) >= 0.95 * len(rows)
    types = [row["consensus"]["type"] == world.intents[key].type for key, row in rows.items() if row["consensus"]]
    assert sum(types) >= 0.95 * len(types)
    invalid = [key for key, row in rows.items() if row["failure"] == "invalid action"]
    assert invalid and all(not world.truth[key] for key in invalid)
    assert found["failures"]["invalid action"] == len(invalid)


def test_the_contingency_is_of_the_steps_in_the_file(world: World, guieval: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "steps.csv"
    found = report(guieval, world, "--steps", file)["contingency"]
    rows = list(csv.DictReader(file.open(newline="")))
    for name in CELLS:
        judged, _, exact = name.partition("_")
        cell = (judged, str(exact == "exact"))
        assert found[name] == sum((row["judged"], row["exact_match"]) == cell for row in rows)
    assert found["consistent_exact"] and found["inconsistent_missed"] and found["phi"] > 0


def test_the_tables_and_the_page(world: World, guieval: CommandLine, tmp_path: Path) -> None:
    labels, page = world.labels(tmp_path / "labels.csv"), tmp_path / "page.html"
    given = ("study", "consistency", world.folder / "run", "--judges", world.judges, "--labels", labels, "--examples", "9")
    done = guieval(*given, "--page", page)
    for head in ("Judges", "Against human labels", "Exact match", "relative risk", "action target", "Examples of inconsistent"):
        assert head in done.out
    assert "### Exact match\n\n| exact match | consistent |" in guieval(*given, "--format", "md").out
    cells = list(csv.reader(io.StringIO(guieval(*given, "--format", "csv").out)))
    assert ["exact-match", "Exact match", "true", "consistent"] in [cell[:4] for cell in cells]
    assert {len(cell) for cell in cells} == {10}
    text = page.read_text()
    assert text.startswith("<!doctype html>") and "Examples: action type" in text and "data:image/jpeg;base64," in text
    assert (
        "http://" not in text.replace("http://www.w3.org/2000/svg", "")
        and "https://" not in text
        and str(world.folder) not in text
    )
    assert 'class="mark judges"' in text and 'class="mark own"' in text


def elsewhere(run: Path, to: Path, **manifest: object) -> Path:
    """A copy of a run as of another benchmark, with its own episodes."""
    shutil.copytree(run, to)
    lines = [json_line(line) for line in (to / "steps.jsonl").read_bytes().splitlines(keepends=True)]
    (to / "steps.jsonl").write_bytes(b"".join(line.replace(b'"demo"', b'"other"').strip() + b"\n" for line in lines))
    (to / "episodes.json").write_text((to / "episodes.json").read_text().replace('"demo"', '"other"'))
    made = json.loads((to / "manifest.json").read_text())
    made["benchmark"]["name"] = "other"
    (to / "manifest.json").write_text(json.dumps(made | manifest))
    return to


def test_benchmarks_are_pooled_and_each_has_its_row(world: World, guieval: CommandLine, tmp_path: Path) -> None:
    study, first = tmp_path / "study", world.judges.split(",")[0]
    shutil.copytree(world.folder / "run", study / "run" / "demo")
    copy = elsewhere(world.folder / "run", study / "run" / "other")
    fixed = {**RunFolder(Path(first)).manifest.to_json()["fixed_thoughts"], "sha256": read_thoughts(copy).digest}
    shutil.copytree(first, study / "judge" / "demo")
    elsewhere(Path(first), study / "judge" / "other", fixed_thoughts=fixed)
    alone = report(guieval, world, judges=first)
    labels = world.labels(tmp_path / "labels.csv")
    once = report(guieval, world, "--labels", labels, judges=first)
    given = ("study", "consistency", study / "run", "--judges", study / "judge", "--pool", "--json")
    found = json.loads(guieval(*given).out)
    whole, parts = found["contingency"], found["benchmarks"]
    assert list(parts) == ["demo", "other"] and parts["demo"] == parts["other"] == alone["contingency"]
    assert [whole[cell] for cell in CELLS] == [2 * alone["contingency"][cell] for cell in CELLS]
    assert found["within_benchmarks"]["odds_ratio"] == pytest.approx(alone["contingency"]["odds_ratio"])
    assert found["steps"]["judged"] == 2 * alone["steps"]["judged"] and "benchmarks" not in alone
    shown = guieval(*given[:-1], "--page", tmp_path / "page.html")
    assert "Benchmark by benchmark" in shown.out and "odds ratio within benchmarks" in shown.out
    assert "pooling misleads" not in shown.out and "no screenshots" not in shown.err
    assert "give the labels a column 'benchmark'" in guieval.sentence(*given, "--labels", labels)
    told = "".join(f"{name},{line}\n" for line in labels.read_text().splitlines()[1:] for name in ("demo", "other"))
    labels.write_text("benchmark,subset,episode_id,step_index,consistent\n" + told)
    twice = json.loads(guieval(*given, "--labels", labels).out)
    both, one = (each["detection"]["together"]["accuracy"]["n"] for each in (twice, once))
    assert both == 2 * one
    assert "continued thoughts other than" in guieval.sentence(*given[:2], study / "run" / "demo", *given[3:])
    assert "is a folder of 2 runs: add --pool" in guieval.sentence(*given[:-2])
    (study / "judge" / "rollout.json").write_text(json.dumps({"rounds": [{"directory": "demo", "seed": 1}]}))
    assert guieval(*given[:2], study / "run" / "demo", *given[3:-2]).code == 0, "a rollout is one judge"
    assert "--data is one benchmark's folder" in guieval.sentence(*given, "--data", tmp_path)


def test_a_sum_over_benchmarks_that_misleads_is_named() -> None:
    alike = [Contingency(40, 40, 10, 10), Contingency(4, 16, 16, 64)]
    unlike = [Contingency(80, 5, 5, 5), Contingency(5, 80, 5, 5)]
    (said,) = warnings(summed(alike), Stratified(tuple(alike)))  # 44 x 74 / (56 x 26)
    assert said.startswith("pooling misleads: the odds ratio is 2.24 over all steps and 1.00 within benchmarks")
    said = " ".join(warnings(summed(unlike), Stratified(tuple(unlike))))  # 16 and 1/16
    assert "the odds ratios of the benchmarks differ" in said and "report them one by one" in said


def test_undecided_steps_may_count_as_inconsistent(world: World, guieval: CommandLine) -> None:
    two = ",".join(world.judges.split(",")[:2])
    apart, forced = (report(guieval, world, "--undecided", how, judges=two) for how in ("apart", "inconsistent"))
    undecided = apart["steps"]["undecided"]
    assert undecided and forced["steps"]["undecided"] == undecided
    sizes = [sum(each["contingency"][name] for name in CELLS) for each in (apart, forced)]
    assert sizes[1] - sizes[0] == undecided and sizes[1] == len(world.truth)


def test_judges_that_are_none(world: World, guieval: CommandLine, tmp_path: Path) -> None:
    run, first = world.folder / "run", world.judges.split(",")[0]
    assert "has its own thoughts" in guieval.sentence("study", "consistency", run, "--judges", run)
    assert "cannot be its own judge" in guieval.sentence("study", "consistency", first, "--judges", world.judges)
    assert "is not a run directory" in guieval.sentence("study", "consistency", run, "--judges", tmp_path)
    assert "twice" in guieval.sentence("study", "consistency", run, "--judges", f"{first},{first}/")
    assert "names no directory" in guieval.sentence("study", "consistency", run, "--judges", " , ")
    other = tmp_path / "other"
    other.mkdir()
    first_line, _, rest = (run / "steps.jsonl").read_text().partition("\n")
    (other / "steps.jsonl").write_text(first_line.replace("so I do this", "so I might do this") + "\n" + rest)
    (other / "manifest.json").write_text((run / "manifest.json").read_text())
    assert "continued thoughts other than" in guieval.sentence("study", "consistency", other, "--judges", first)


@every_row(
    ("more", "message"),
    [
        *((("--format", "xml"), "unknown --format 'xml'"), (("--undecided", "apartt"), "did you mean 'apart'")),
        *((("--page", "page.txt"), "must end in .html"), (("--steps", "steps.txt"), "must end in .csv or .jsonl")),
        *((("--radius", "0"), "radius"), (("--protocol", "guievalkitt"), "did you mean 'guievalkit'")),
    ],
)
def test_mistakes(world: World, guieval: CommandLine, more: tuple[str, str], message: str) -> None:
    assert message in guieval.sentence("study", "consistency", world.folder / "run", "--judges", world.judges, *more)


def test_labels_of_other_steps_are_reported(world: World, guieval: CommandLine, tmp_path: Path) -> None:
    some = world.labels(tmp_path / "some.csv", of=list(world.truth)[:2])
    some.write_text(some.read_text() + ",nowhere,3,yes\n")
    done = guieval("study", "consistency", world.folder / "run", "--judges", world.judges, "--labels", some)
    assert "1 human labels are of steps that are not judged here" in done.out
    (tmp_path / "none.csv").write_text("episode_id,step_index,consistent\nnowhere,3,yes\n")
    given = ("study", "consistency", world.folder / "run", "--judges", world.judges, "--labels", tmp_path / "none.csv")
    assert "none of the labels" in guieval.sentence(*given)


def test_both_forms_of_labels(tmp_path: Path) -> None:
    table, lines = tmp_path / "labels.csv", tmp_path / "labels.jsonl"
    table.write_text("note,episode_id,step_index,consistent\n-,a,0,Yes\n-,a,1,inconsistent\n-,a,2,\n")
    lines.write_text(
        '{"episode_id": "a", "step_index": 0, "consistent": true}\n\n'
        '{"episode_id": "a", "step_index": 1, "consistent": 0, "subset": ""}\n'
        '{"episode_id": "a", "step_index": 2, "consistent": null}\n'
    )
    assert (
        read_human_labels(table)
        == read_human_labels(lines)
        == {
            StepKey("", "", "a", 0): True,
            StepKey("", "", "a", 1): False,
        }
    )


@every_row(
    ("name", "text", "message"),
    [
        ("x.csv", "episode_id,step_index,consitent\na,0,1\n", r"no column 'consistent' \(did you mean 'consitent'\?\)"),
        ("x.csv", "episode_id,step_index,consistent\na,0,maybe\n", "line 2: 'consistent' is 'maybe'"),
        ("x.csv", "episode_id,step_index,consistent\na,-1,1\n", "line 2: 'step_index' is '-1'"),
        ("x.csv", "episode_id,step_index,consistent\na,0,1\na,0,0\n", "line 3: step 0 of episode 'a' has a label already"),
        ("x.csv", "episode_id,step_index,consistent\na,0,\n", "has no label"),
        ("x.csv", "episode_id,step_index,consistent\n,0,yes\n", "line 2: has a label, but no 'episode_id'"),
        ("x.jsonl", '{"episode_id": null, "step_index": 0, "consistent": 1}\n', "has a label, but no 'episode_id'"),
        ("x.csv", f"episode_id,step_index,consistent\na,{'9' * 5000},1\n", "line 2: 'step_index' is '999"),
        ("x.jsonl", "episode_id,step_index\n", "line 1: is not JSON"),
        ("x.jsonl", "[1]\n", "line 1: expected an object"),
        ("x.jsonl", '{"episode_id": "a", "step_index": 0}\n', "line 1: has no 'consistent'"),
    ],
)
def test_labels_that_are_none(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises((UsageError, DataError), match=message):
        read_human_labels(tmp_path / name)


def test_ids_that_a_spreadsheet_would_run_come_back_as_they_were(tmp_path: Path) -> None:
    ids = ["=1+1", "-7", "+7", "@a", "plain", "'quoted"]
    rows = "".join(f"{defused_value(each)},0,yes\n" for each in ids)
    (tmp_path / "labels.csv").write_text("episode_id,step_index,consistent\n" + rows)
    assert list(read_human_labels(tmp_path / "labels.csv")) == [StepKey("", "", each, 0) for each in ids]


def test_a_thought_cannot_command_the_terminal() -> None:
    thought = "I look\x1b[2J there\x07.\n\x9b31mThen\x00 I tap"
    trace = Trace(step(Wait()), thought, None, False, (), JudgeFinding("no decision", False, "invalid action"), None)
    found = Consistency(Path("run"), "m", "p", ClusterSettings(), (), (trace,), 0, 0)
    table = example_table(found, 1)
    shown = " ".join(" ".join(line.plain for line in rendered(table, 1000)).split())
    for text in (shown, markdown([table]).replace("\\", ""), comma_separated([table])):
        assert "I look [2J there . 31mThen I tap" in text
