"""A mixing sweep: what is counted, what is kept, and the command against a served policy that is better on its own history."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from guieval import mix
from guieval.errors import UsageError
from guieval.history.mixing import Artifact, Artifacts, Diversities, Mix, Mixture
from guieval.journal import METRICS, RunFolder
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark
from guieval.steps import Sample, StepKey, StepOutcome, StepRecord
from guieval.studies.mix_sweep import sweep
from guieval.studies.mix_sweep.sweep import OUTCOMES, MixOutcome, append_outcome, by_regime, read_outcome, read_outcomes
from guieval.studies.plots.scaling import mixing
from tests.command_line import CommandLine
from tests.made_runs import key, step, write_run
from tests.scripted import CLICK

MODEL = "ui-s1-7b"
OPTIONS = {"episodes": 5, "seed": 5}


def recorded(index: int, length: int, own: str, *, exact: bool, episode: str = "a") -> StepRecord:
    """A step whose past came from ``own``: a letter a step, m for the model's, r for the reference's."""
    task = step(CLICK, episode=episode, index=index, length=length)
    outcome = StepOutcome(verdict="right" if exact else "wrong", exact_match=exact)
    history = tuple("model" if each == "m" else "reference" for each in own)
    return StepRecord(task=task, history=history, samples=(Sample(raw_response="", action=CLICK, outcome=outcome),))


def mixture(mix: Mix, *steps: int) -> Mixture:
    own = {StepKey("made-up", "", "a", index): Artifact(CLICK, "own", None, None) for index in steps}
    return Mixture(mix, Artifacts(Path("made"), "m", "made-up", own, "0"))


def test_the_ratio_counts_every_past_step_of_every_decision(tmp_path: Path) -> None:
    records = [
        recorded(0, 3, "", exact=True),
        recorded(1, 3, "m", exact=False),
        recorded(2, 3, "rm", exact=False),
        recorded(2, 3, "mm", exact=True),  # the last answered record counts
        recorded(0, 1, "", exact=True, episode="b"),
    ]
    mix = Mix(start=0.0, end=1.0, shape="linear")
    found = read_outcome(write_run(tmp_path / "run", records), 7, mixture(mix, 0))
    assert found is not None
    assert (found.number, found.regime, found.steps, found.exact) == (7, "increasing", 4, 3)
    assert (found.past, found.replaced, found.available) == (3, 3, 2)  # b has no past; step 1's artifact is not there
    assert found.osr == 1.0 and found.exact_match == 0.75
    assert found.expected == pytest.approx(1 + (0.5 + 1))
    whole = read_outcome(tmp_path / "run", 7, mixture(mix.model_copy(update={"over": "episode"}), 0))
    assert whole is not None and whole.expected == pytest.approx(0.5 + (0.5 + 1))
    diverse = Diversities(Path("made"), {StepKey("made-up", "", "a", 2): 1.0}, "0")  # the history of 2 is near at step 1
    adaptive = Mixture(mix.model_copy(update={"near": 0.25}), mixture(mix, 0).artifacts, diverse)
    near = read_outcome(tmp_path / "run", 7, adaptive)
    assert near is not None and near.regime == "adaptive" and near.expected == pytest.approx(1 + (0.5 + 0.25))


def test_a_setting_with_a_step_unanswered_has_no_outcome(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [recorded(0, 2, "", exact=True)], plan={key("a"): range(2)})
    assert read_outcome(run, 0, mixture(Mix(start=0.5))) is None


def made(
    number: int, start: float, end: float, replaced: int, exact: int, past: int = 100, near: float | None = None
) -> MixOutcome:
    mix = Mix(start=start, end=end, near=near)
    regime = mix.regime
    counts = {"steps": 50, "exact": exact, "past": past, "replaced": replaced, "available": past, "expected": 1.0}
    return MixOutcome.model_validate({"number": number, "mix": mix, "regime": regime, "mu": None, **counts})


def test_each_regime_has_its_ranges_and_its_rank_correlation() -> None:
    rising = [made(number, 0, 1, *each) for number, each in enumerate([(10, 20), (20, 22), (30, 21), (40, 25)])]
    falling = [made(number, 1, 0, *each) for number, each in enumerate([(10, 30), (20, 20), (30, 10)], 4)]
    found = {each.regime: each for each in by_regime([*rising, *falling])}
    assert list(found) == ["increasing", "decreasing", "all"]
    assert found["increasing"].rank.rho == pytest.approx(0.8)  # ranks 1 2 3 4 and 1 3 2 4
    assert found["increasing"].osr == (0.1, 0.4) and found["increasing"].exact_match == (0.4, 0.5)
    assert found["increasing"].mean_exact_match == pytest.approx(0.44)
    assert found["decreasing"].rank.rho == pytest.approx(-1.0) and found["all"].n == 7
    assert sweep.points_by_regime(falling) == {"decreasing": [(0.1, 0.6), (0.2, 0.4), (0.3, 0.2)]}


def test_regimes_are_compared_at_equal_osr_and_the_gap_has_its_own_effect() -> None:
    flat = [made(number, 0.5, 0.5, 10 * number, 20 + number) for number in range(1, 8)]
    rising = [made(10 + number, 0, 1, 10 * number, 25 + number) for number in range(3, 10)]  # 5 of 50 more at any OSR
    parts = sweep.at_equal_osr([*flat, *rising])
    assert (parts[0].osr[0], parts[-1].osr[1]) == (0.3, 0.7) and sum(sum(each.n.values()) for each in parts) == 10
    for each in parts:
        assert each.mean_exact_match["increasing"] - each.mean_exact_match["stationary"] == pytest.approx(0.1)
    assert sweep.effect_of_gap([*flat, *rising]) == pytest.approx(0.1)
    assert sweep.at_equal_osr(flat) == [] and sweep.effect_of_gap(flat) is None
    adaptive = [made(20, 0, 1, 55, 40, near=1.0), made(21, 0, 1, 95, 50, near=1.0), made(22, 1, 0, 95, 50, near=1.0)]
    with_them = [*flat, *rising, *adaptive]
    assert [each.osr for each in sweep.at_equal_osr(with_them)] == [each.osr for each in parts]
    assert [each.n.get("adaptive", 0) for each in sweep.at_equal_osr(with_them)] == [0, 0, 0, 1, 0]
    assert sweep.effect_of_gap(with_them) == sweep.effect_of_gap([*flat, *rising])
    pair = [made(1, 0, 1, 40, 30), *adaptive]  # 0.15 and 0.55 more OSR, 0.2 and 0.4 more exact; 1 to 0 has no pair
    assert (effect := sweep.effect_of_near(pair)) is not None and sweep.effect_of_near(flat) is None
    assert list(effect) == pytest.approx([2, 0.35, 0.3])


def test_a_pooled_setting_has_the_sums_of_all_benchmarks_and_only_where_all_have_it() -> None:
    """By hand: 10 of 100 and 30 of 60 replaced are 40 of 160; 20 of 50 and 40 of 50 exact are 60 of 100."""
    one = [made(0, 0, 1, 10, 20), made(1, 1, 0, 50, 30)]
    other = [made(0, 0, 1, 30, 40, past=60)]
    (found,) = sweep.pooled_outcomes([one, other])
    assert (found.number, found.regime, found.steps, found.past, found.available, found.expected) == (
        *(0, "increasing", 100, 160, 160),
        2.0,
    )
    assert (found.osr, found.exact_match) == (0.25, 0.6)
    rows = list(csv.DictReader(sweep.as_csv({"all": [found], "one": one, "other": other}).splitlines()))
    assert [(row["benchmark"], row["number"], row["osr"]) for row in rows] == [
        *(("all", "0", "0.25"), ("one", "0", "0.1"), ("one", "1", "0.5")),
        ("other", "0", "0.5"),
    ]


def test_what_there_is_no_correlation_of_has_none() -> None:
    two = by_regime([made(0, 1, 1, 10, 20), made(1, 1, 1, 20, 30)])
    assert [each.rank.rho for each in two] == [None, None]
    alike = by_regime([made(number, 1, 1, 10, 20) for number in range(4)])
    assert alike[0].rank.rho is None and alike[0].n == 4
    assert by_regime([made(0, 1, 1, 0, 20, past=0)]) == []


def test_the_picture_has_a_point_for_each_setting_and_names_the_correlation() -> None:
    points = {"increasing": [(0.1, 0.4), (0.3, 0.6)], "decreasing": [(0.2, 0.5)], "stationary": []}
    figure = mixing(points, {"increasing": 0.9, "decreasing": None})
    (axes,) = figure.axes
    drawn = [np.asarray(line.get_xydata()).tolist() for line in axes.lines]
    assert drawn == [[[10.0, 40.0], [30.0, 60.0]], [[20.0, 50.0]]]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["increasing ($R_s$ = 0.900)", "decreasing"]
    with pytest.raises(UsageError, match="no setting has a past"):
        mixing({"increasing": []}, {})


def test_outcomes_are_kept_line_by_line_and_survive_a_torn_one(tmp_path: Path) -> None:
    first, second, third = (made(number, 0, 1, 10, 20 + number) for number in range(3))
    append_outcome(tmp_path, second)
    append_outcome(tmp_path, first)
    whole = (tmp_path / OUTCOMES).read_bytes()
    (tmp_path / OUTCOMES).write_bytes(whole + whole[:40])
    assert read_outcomes(tmp_path) == [first, second]
    append_outcome(tmp_path, third)
    assert read_outcomes(tmp_path) == [first, second, third]
    rows = list(csv.DictReader(sweep.as_csv({"demo": [first, second]}).splitlines()))
    assert [row["exact_match"] for row in rows] == ["0.4", "0.42"] and rows[0]["osr"] == "0.1" and rows[0]["mu"] == ""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every screen of the demo benchmark is drawn already."""
    folder = tmp_path_factory.mktemp("demo")
    for _ in load_benchmark("demo", folder, **OPTIONS):
        pass
    return folder


def policy(data: Path) -> MockServer:
    settings = MockSettings(model=MODEL, policy="reference", accuracy=0.5, history_gain=0.5, seed=3, served_models=(MODEL,))
    return MockServer(settings, benchmark=load_benchmark("demo", data, **OPTIONS))


def common(data: Path, server: MockServer) -> list[str | Path]:
    options = [item for name, value in OPTIONS.items() for item in ("--set", f"bench_options.{name}={value}")]
    return ["--quiet", "--model", MODEL, "--bench", "demo", "--data", data, "--base-url", server.base_url, *options]


@pytest.mark.ci
def test_the_command_runs_a_sweep_goes_on_with_it_and_reports_it(tmp_path: Path, data: Path, guieval: CommandLine) -> None:
    run, sweep, picture = tmp_path / "run", tmp_path / "sweep", tmp_path / "figure.svg"
    pairs = ("--pair", "0:0", "--pair", "0:1", "--pair", "1:0", "--pair", "1:1", "--means", "3")
    with policy(data) as server:
        assert guieval("run", "--mode", "soeval", "--out", run, *common(data, server)).code == 0
        mixing = ("study", "mix", "--artifacts", run, "--out", sweep, *pairs)
        done = guieval(*mixing, *common(data, server), "--plot", picture)
        assert done.code == 0 and "increasing" in done.out and "Spearman" in done.out, done
        assert "has a sweep; `guieval study mix --resume" in guieval.sentence(*mixing, *common(data, server))
        table = (sweep / "mixing.csv").read_text()
        rows = list(csv.DictReader(table.splitlines()))
        assert len(rows) == 12 and {row["regime"] for row in rows} == {"increasing", "decreasing", "stationary"}
        none = [row for row in rows if row["start"] == row["end"] == "0.0"]
        every = [row for row in rows if row["start"] == row["end"] == "1.0"]
        assert {float(row["osr"]) for row in none} == {0.0}
        assert {row["replaced"] for row in every} == {row["available"] for row in every}
        assert float(every[0]["exact_match"]) > float(none[0]["exact_match"])  # it is better the more of it is its own
        assert "</svg>" in picture.read_text()

        # a kill: one outcome torn, one setting not begun, one half done
        lines = (sweep / OUTCOMES).read_bytes().splitlines(keepends=True)
        (sweep / OUTCOMES).write_bytes(b"".join(lines[:9]) + lines[9][:30])
        settings = sorted((sweep / "settings").iterdir())
        shutil.rmtree(settings[11])
        journal = next(path for path in settings[10].iterdir() if path.name.startswith("steps"))
        journal.write_bytes(journal.read_bytes()[: journal.stat().st_size // 2])
        again = guieval("study", "mix", "--resume", sweep, "--quiet", "--drop-answers")
        assert again.code == 0 and (sweep / "mixing.csv").read_text() == table, again
        assert sorted((sweep / "settings").iterdir()) == settings[:9]  # those that ended now left their figures alone
        (settings[4] / METRICS).rename(tmp_path / "lost")
        done_in_python = mix(resume=sweep)
        assert done_in_python.complete and len(done_in_python.outcomes) == 12
        found, lost = (json.loads(file.read_text()) for file in (settings[4] / METRICS, tmp_path / "lost"))
        del lost["servers"]  # none was asked to write them again
        assert found == lost, "a finished setting's figures are written again"
        assert "sampling.top_p" in guieval.sentence("study", "mix", "--resume", sweep, "--set", "sampling.top_p=0.9")
        assert "leave out what asks for others" in guieval.sentence("study", "mix", "--resume", sweep, "--means", "4")
    for name in ("demo", "other"):
        (tmp_path / "pool" / name).mkdir(parents=True)
        (tmp_path / "pool" / name / OUTCOMES).write_bytes((sweep / OUTCOMES).read_bytes())
        kept = json.loads((sweep / "mix.json").read_text())
        kept["manifest"]["benchmark"]["name"] = name
        (tmp_path / "pool" / name / "mix.json").write_text(json.dumps(kept))
    both = mix(pool=tmp_path / "pool", plot=tmp_path / "pool.svg")
    assert both.complete and [each.past for each in both.outcomes] == [2 * each.past for each in done_in_python.outcomes]
    assert [each.osr for each in both.outcomes] == [each.osr for each in done_in_python.outcomes]
    pooled = guieval("study", "mix", "--pool", tmp_path / "pool")
    assert "Benchmark by benchmark" in pooled.out and "other" in pooled.out and (tmp_path / "pool.svg").exists(), pooled
    assert len((tmp_path / "pool" / "mixing.csv").read_text().splitlines()) == 1 + 3 * 12
    assert "leave out --resume, --means" in guieval.sentence(
        *("study", "mix", "--pool", tmp_path / "pool", "--resume", sweep, "--means", "3")
    )
    kept["sweep"]["seed"] = 8
    (tmp_path / "pool" / "other" / "mix.json").write_text(json.dumps(kept))
    unlike = guieval.sentence("study", "mix", "--pool", tmp_path / "pool")
    assert "'demo' and 'other' are sweeps of different settings" in unlike
    assert "holds no sweep" in guieval.sentence("study", "mix", "--pool", run)
    shown = guieval("study", "mix", "--resume", sweep, "--data", tmp_path / "gone")  # figures need nothing but what is kept
    assert shown.code == 0 and "R_s" in shown.out
    assert RunFolder(settings[3]).manifest.to_json()["mixing"]["artifacts"]["steps"] > 0
    assert {origin for each in RunFolder(settings[8]).records for origin in each.history} == {"model", "reference"}
    assert json.loads((sweep / "mix.json").read_text())["sweep"]["means"] == 3


def test_a_sweep_that_cannot_be_is_refused_before_anything_is_made(tmp_path: Path, data: Path, guieval: CommandLine) -> None:
    run = tmp_path / "run"
    with policy(data) as server:
        assert guieval("run", "--mode", "soeval", "--out", run, *common(data, server)).code == 0
        start = ("study", "mix", "--out", tmp_path / "sweep", *common(data, server))
        assert "add --artifacts RUN" in guieval.sentence(*start)
        with_run = (*start, "--artifacts", run)
        assert "--pair is '0.5'" in guieval.sentence(*with_run, "--pair", "0.5")
        assert "start is 2.0" in guieval.sentence(*with_run, "--pair", "2:0")
        assert "did you mean 'paper'" in guieval.sentence(*with_run, "--preset", "papers")
        assert "--shape is 'logit'" in guieval.sentence(*with_run, "--shape", "logit")
        assert "a budget is a run's" in guieval.sentence(*with_run, "--set", "budget=1")
        assert "mode 'soeval' has a history of its own" in guieval.sentence(*with_run, "--set", "mode=soeval")
        assert "add --decisions FILE" in guieval.sentence(*with_run, "--near", "1")
        assert "add --near P" in guieval.sentence(*with_run, "--within", "1")
        assert "'gone.jsonl' cannot be read" in guieval.sentence(*with_run, "--near", "1", "--decisions", "gone.jsonl")
        single = ("run", *start[2:], "--set", f"mix_artifacts={run}", "--set", "mix.start=1")
        assert "add --set mix_decisions=FILE" in guieval.sentence(*single, "--set", "mix.near=1")
        assert "--set mix.near=P" in guieval.sentence(*single, "--set", "mix_decisions=gone.jsonl")
        other = guieval.sentence(*("ui-tars-1.5-7b" if each == "ui-s1-7b" else each for each in with_run))
        assert "are of model 'ui-s1-7b', not of 'ui-tars-1.5-7b'" in other
        assert "has no sweep" in guieval.sentence("study", "mix", "--resume", tmp_path / "sweep")
    assert not (tmp_path / "sweep").exists()


@pytest.mark.ci
def test_greedy_decoding_asks_a_prompt_once_with_the_same_figures(tmp_path: Path, data: Path, guieval: CommandLine) -> None:
    run = tmp_path / "run"
    settings = {"once": (), "again": ("--set", "sampling.temperature=0.5", "--set", "sampling.top_k=-1")}
    tables, requests, shown = {}, {}, {}
    steps = [task.key for episode in load_benchmark("demo", data, **OPTIONS) for task in episode.steps]
    rows = [{"model": MODEL, **key._asdict(), "diversity": key.step_index % 3 / 2 or None} for key in steps]
    file = tmp_path / "steps.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with policy(data) as server:
        assert guieval("run", "--mode", "soeval", "--out", run, *common(data, server)).code == 0
        for name, sampling in settings.items():
            before = server.stats()["requests"]
            given = ("--artifacts", run, "--pair", "0:1", "--pair", "0.5:0.5", "--means", "2", "--out", tmp_path / name)
            near = ("--near", "1", "--within", "0", "--decisions", file)
            done = guieval("study", "mix", *given, *near, *common(data, server), *sampling)
            assert done.code == 0 and "over 4 settings, each against the same schedule without --near" in done.out, done
            requests[name] = server.stats()["requests"] - before
            tables[name] = (tmp_path / name / "mixing.csv").read_text()
            runs = sorted((tmp_path / name / "settings").iterdir())
            shown[name] = [(each.task.key, each.history) for run in runs for each in RunFolder(run).records]
    assert tables["once"] == tables["again"] and tables["once"].count("adaptive") == 4
    file.write_text(file.read_text().replace("0.5", "0.75"))
    lines = (tmp_path / "once" / OUTCOMES).read_bytes().splitlines(keepends=True)
    (tmp_path / "once" / OUTCOMES).write_bytes(b"".join(lines[:-1]))
    assert "decisions fingerprint" in guieval.sentence("study", "mix", "--resume", tmp_path / "once")
    assert sorted(shown["once"]) == sorted(shown["again"])
    assert requests["again"] == len(shown["again"])
    assert requests["once"] == len(set(shown["once"])) < 0.8 * requests["again"]
