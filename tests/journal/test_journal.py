"""The journal: its lines, schemas, nested folders and hostile names."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from guieval.actions import Type
from guieval.errors import JournalError, UsageError, harmless
from guieval.exchange.exported import exported
from guieval.exchange.public_run import public_copy
from guieval.journal import (
    EPISODES,
    FLUSH_SECONDS,
    LOCK,
    MANIFEST,
    PACKED_STEPS,
    ROLLOUT,
    STEPS,
    SWEEP,
    Journal,
    RunFolder,
    has_records,
    is_run,
    journal_file,
)
from guieval.journal.directory import FLUSH_RECORDS
from guieval.journal.lines import json_line, write_line
from guieval.journal.schemas import FILES, schema, write
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark
from guieval.steps import EpisodeKey, Plan, Sample, StepOutcome, StepRecord
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY
from tests.made_runs import write_run
from tests.pinned.place import RUNS
from tests.rows import every_row
from tests.scripted import ACTIONS, make_episode
from tests.waiting import until


def records(count: int) -> list[StepRecord]:
    sample = Sample(raw_response="ok", outcome=StepOutcome(verdict="right", type_match=True, exact_match=True))
    return [StepRecord(task=make_episode(str(n), ACTIONS).steps[0], samples=(sample,)) for n in range(count)]


@pytest.mark.parametrize("compact", [False, True])
def test_what_is_appended_is_read_back_where_it_lies(tmp_path: Path, compact: bool) -> None:
    written = records(3)
    with Journal(tmp_path, compact=compact) as journal:
        for record in written:
            journal.append(record)
    found = RunFolder(tmp_path).records
    assert list(found) == written
    offsets = [offset for offset, _ in found.outline()]
    assert [found.at(offset) for offset in reversed(offsets)] == written[::-1]
    assert offsets == [offset for offset, _ in found.with_offsets()]


def test_half_a_surrogate_pair_is_written_as_a_question_mark(tmp_path: Path) -> None:
    record = records(1)[0]
    sample = record.sample.model_copy(update={"raw_response": "a \ud83d b", "action": Type(text="\udc00")})
    with Journal(tmp_path) as journal:
        journal.append(record.model_copy(update={"samples": (sample,)}))
    (read,) = RunFolder(tmp_path).records
    assert read.task == record.task and read.sample.raw_response == "a ? b" and read.sample.action == Type(text="?")


@pytest.mark.parametrize("compact", [False, True])
def test_a_torn_last_line_is_cut_wherever_it_is_torn(tmp_path: Path, compact: bool) -> None:
    first, second = records(2)
    with Journal(tmp_path, compact=compact) as journal:
        journal.append(first)
        end = journal_file(tmp_path).stat().st_size
        journal.append(second)
    path = journal_file(tmp_path)
    both = path.read_bytes()
    for cut in range(end, len(both)):
        path.write_bytes(both[:cut])
        assert list(RunFolder(tmp_path).records) == [first]
        with Journal(tmp_path) as journal:  # it stays compact
            journal.append(second)
        assert path.read_bytes() == both
    steps = {file.name for file in tmp_path.iterdir()} & {PACKED_STEPS, STEPS}
    assert steps == {path.name} == {PACKED_STEPS if compact else STEPS} and has_records(tmp_path)


def test_a_torn_line_longer_than_one_block_is_cut(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append(records(1)[0])
    with (tmp_path / STEPS).open("ab") as stream:
        stream.write(b"x" * 200_000)
    with Journal(tmp_path):
        pass
    assert len(list(RunFolder(tmp_path).records)) == 1


def test_a_damaged_line_in_the_middle_is_reported_and_passed_over(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        for record in records(3):
            journal.append(record)
    lines = (tmp_path / STEPS).read_bytes().splitlines(keepends=True)
    (tmp_path / STEPS).write_bytes(lines[0] + b'{"garbage": \xff\n' + lines[2])
    read = RunFolder(tmp_path).records
    assert len(list(read)) == 2 and read.damaged == [2]


def test_an_unwritable_place_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="cannot write to the run directory"):
        Journal(tmp_path / "file" / "run")


def test_manifest_and_plan_are_read_back(tmp_path: Path) -> None:
    plan: Plan = {EpisodeKey("b", "s", "1"): range(3), EpisodeKey("b", "s", "ü"): range(4)}
    written = {**RunFolder(write_run(tmp_path / "other", [])).manifest.to_json(), "schema": 1, "new": {"of a later": [1, None]}}
    with Journal(tmp_path) as journal:
        journal.start(written, plan)
    manifest = RunFolder(tmp_path).manifest
    assert RunFolder(tmp_path).plan == plan and manifest.version == 1 and manifest.to_json() == written
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]
    for values, problem in (
        ({"schema": 99}, "field schema: expected 1, 2 or 3, got 99"),
        ({"schema": 1, "config": {}}, "field model: is missing; the file was not written by guieval"),
        ({**written, "mode": "offline"}, "field mode: expected a group of values, got 'offline'"),
    ):
        (tmp_path / MANIFEST).write_text(json.dumps(values))
        with pytest.raises(UsageError, match=problem):
            _ = RunFolder(tmp_path).manifest
    for damaged in ("x", "[1]", '[["a", "b", "c", "d"]]'):
        (tmp_path / EPISODES).write_text(damaged)
        with pytest.raises(UsageError, match=r"episodes\.json'.*; `guieval run --resume .*` writes it again"):
            _ = RunFolder(tmp_path).planned
    (tmp_path / MANIFEST).unlink()
    with pytest.raises(UsageError, match="not a run directory"):
        _ = RunFolder(tmp_path).manifest
    assert (tmp_path / EPISODES).exists()


def test_a_line_is_json_with_its_checksum() -> None:
    record = records(1)[0]
    line = write_line(record, compact=False)
    assert {**record.model_dump(mode="json"), "crc32": json.loads(line)["crc32"]} == json.loads(line)
    assert json.loads(json_line(line)) == record.model_dump(mode="json")


def test_a_changed_character_is_noticed_wherever_it_stands(tmp_path: Path) -> None:
    """Each line would still be JSON of a record, but for its checksum; one without any is of an earlier version."""
    with Journal(tmp_path) as journal:
        journal.append(records(1)[0])
    line = (tmp_path / STEPS).read_bytes()
    for place in range(len(line) - 1):
        (tmp_path / STEPS).write_bytes(line[:place] + bytes([line[place] ^ 1]) + line[place + 1 :])
        read = RunFolder(tmp_path).records
        assert list(read) == [] and read.damaged == [1], place
    (tmp_path / STEPS).write_bytes(json_line(line))
    assert list(RunFolder(tmp_path).records) == records(1)


def test_a_deleted_lock_admits_no_second_writer(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        (tmp_path / LOCK).unlink()
        with pytest.raises(JournalError, match="is being written by"):
            Journal(tmp_path)
        journal.append(records(1)[0])
    with Journal(tmp_path):
        pass


@pytest.mark.parametrize(("seconds", "number"), [(1e-3, 1), (1e3, FLUSH_RECORDS)])
def test_records_reach_the_disk_by_time_and_by_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, number: int
) -> None:
    assert FLUSH_SECONDS <= 1.0
    monkeypatch.setattr("guieval.journal.directory.FLUSH_SECONDS", seconds)
    synced: list[int] = []
    really = os.fsync

    def fsync(file: int) -> None:
        really(file)
        if os.path.samestat(os.fstat(file), (tmp_path / STEPS).stat()):
            synced.append((tmp_path / STEPS).read_bytes().count(b"\n"))

    monkeypatch.setattr(os, "fsync", fsync)
    with Journal(tmp_path) as journal:
        for record in records(number):
            assert seconds < 1.0 or not synced, "fewer wait"
            journal.append(record)
        until(lambda: number in synced, "a flush")
    assert len(synced) <= 2, "nothing new, nothing to bring to the disk"


def replace(path: Path) -> None:
    other = path.with_name("other")
    other.write_text("")
    other.replace(path)


def move(path: Path) -> None:
    path.rename(path.with_name("moved"))


def grow(path: Path) -> None:
    with path.open("ab") as stream:
        stream.write(b"{}\n")


@every_row("harm", [Path.unlink, replace, move, lambda path: os.truncate(path, path.stat().st_size // 2), grow])
@every_row("while_appending", [True, False])
def test_a_destroyed_journal_ends_the_run_and_what_is_left_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], None], while_appending: bool
) -> None:
    """Everything that was appended comes back with the next writer."""
    monkeypatch.setattr("guieval.journal.directory.FLUSH_SECONDS", 0.02)
    written = records(6)
    called: list[bool] = []
    with pytest.raises(JournalError, match=r"another program has .* the journal"), Journal(tmp_path) as journal:
        journal.on_failure(lambda: called.append(True))
        for record in written[:5]:
            journal.append(record)
        harm(tmp_path / STEPS)
        if while_appending:
            until(lambda: journal.append(written[5]), "a notice")  # of a file that was renamed, by the next look
        until(lambda: bool(called), "a notice")
        journal.check()
    with Journal(tmp_path):
        pass
    left = {record.task.key for record in RunFolder(tmp_path).records}
    assert left >= {record.task.key for record in written[:5]}
    assert sorted(path.name for path in tmp_path.iterdir() if "rescued" in path.name) == []


SCHEMAS = REPOSITORY / "docs" / "schemas"


def test_the_published_schemas_are_those_of_the_code(tmp_path: Path) -> None:
    write(tmp_path)
    differing = [path.name for path in tmp_path.iterdir() if path.read_text() != (SCHEMAS / path.name).read_text()]
    assert differing == [], "write them again: python -m guieval.journal.schemas docs/schemas"
    assert len(list(SCHEMAS.iterdir())) == len(FILES)


def test_a_published_field_cannot_be_dropped(tmp_path: Path) -> None:
    write(tmp_path)
    path = tmp_path / "steps.json"
    more = json.loads(path.read_text())
    more["$defs"]["Sample"]["properties"]["mood"] = {"type": "string"}
    path.write_text(json.dumps(more))
    with pytest.raises(ValueError, match=r"steps.json was published with \.\$defs\.Sample\.mood; fields may only be added"):
        write(tmp_path)


def test_what_runs_write_agrees_with_the_schemas(tmp_path: Path) -> None:
    """A run over steps, one with patches, one with samples, and an online run, written anew by this version."""
    problems, seen = [], set()
    for name in ("hasty/sop", "off-policy", "samples", "phone-hasty"):
        folder = public_copy(exported(RUNS / name), tmp_path / name).run.directory
        for path in (folder / file for file in FILES):
            for line in path.read_text().splitlines() if path.suffix == ".jsonl" and path.exists() else ():
                seen.add(path.name)
                problems += differing(path.name, line)
        problems += differing("manifest.json", (folder / "manifest.json").read_text())
    assert problems == [] and seen == {"steps.jsonl", "tasks.jsonl"}


def differing(file: str, text: str) -> list[str]:
    return [f"{file}: {each.message}" for each in Draft202012Validator(schema(file)).iter_errors(json.loads(text))]


RUN = ("run", "--model", "ocr-baseline", "--bench", "demo", "--set", "bench_options.episodes=2", "--quiet", "--out")
ROLL = ("study", "rollout", "--model", "ocr-baseline", "--bench", "demo", "--rounds", "2", "--samples", "2", "--quiet", "--out")
MIX = ("study", "mix", "--model", "ocr-baseline", "--bench", "demo", "--artifacts", "x", "--quiet", "--out")
EACH = pytest.mark.parametrize("command", [RUN, ROLL, MIX], ids=["run", "rollout", "mix"])


@pytest.fixture(autouse=True, scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The demo's screenshots are drawn once for all of these tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A folder with a finished run of two modes in it."""
    for mode in ("offline", "sop"):
        shutil.copytree(RUNS / "hasty" / mode, tmp_path / "runs" / "first" / mode)
    return tmp_path / "runs"


@EACH
def test_inside_or_above_a_run(guieval: CommandLine, runs: Path, command: tuple[str, ...]) -> None:
    before = sorted(runs.rglob("*"))
    inside = runs / "first" / "sop" / "again" / "deeper"
    sentence = guieval.sentence(*command, inside)
    assert f"{str(inside)!r} is inside the run {str(runs / 'first' / 'sop')!r}; give an --out outside" in sentence
    for above in (runs, runs / "first"):
        sentence = guieval.sentence(*command, above)
        assert f"{str(above)!r} holds the run '{runs / 'first'}/" in sentence and "not above other runs" in sentence
    assert sorted(runs.rglob("*")) == before


@EACH
@pytest.mark.parametrize(("marker", "what"), [(ROLLOUT, "the rollout"), (SWEEP, "the sweep")])
def test_inside_and_above_a_rollout_or_a_sweep(
    guieval: CommandLine, tmp_path: Path, command: tuple[str, ...], marker: str, what: str
) -> None:
    group = tmp_path / "all" / "group"
    group.mkdir(parents=True)
    (group / marker).write_text("{}")
    assert f"is inside {what} {str(group)!r}" in guieval.sentence(*command, group / "new")
    assert f"holds {what} {str(group)!r}" in guieval.sentence(*command, tmp_path / "all")
    if command is RUN:
        assert "give an --out that is not above other runs" in guieval.sentence(*RUN, group)


def test_a_run_through_a_link_lies_where_the_link_leads(guieval: CommandLine, runs: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(runs / "first" / "offline")
    assert "is inside the run" in guieval.sentence(*RUN, tmp_path / "link" / "new")


@pytest.mark.ci
def test_side_by_side_and_a_further_mode_are_fine(guieval: CommandLine, runs: Path) -> None:
    assert guieval(*RUN, runs / "second").code == 0
    assert guieval(*RUN, runs / "first" / "soeval", "--mode", "soeval").code == 0
    assert guieval(*RUN, runs, "--mode", "offline", "--mode", "sop").code == 0
    assert is_run(runs / "offline") and is_run(runs / "first" / "soeval")
    assert "already has a run" in guieval.sentence(*RUN, runs / "second")


@pytest.mark.ci
def test_the_manifest_of_another_program_is_no_run(
    guieval: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / MANIFEST).write_text('{"name": "a web page"}')
    assert guieval(*RUN, tmp_path / "runs" / "new").code == 0


EVIL = "[red]e\x1b]52;c;QUJD\x07v\x1b[2Ji\x9b31ml\r\x08\u202e\u2066\u200f\x85[/red]|=1\x7f"
MODEL = "qwen3-vl-8b-thinking"


def obeyed(text: str) -> set[str]:
    """The characters of a text that a terminal obeys, or that turn text round."""
    return {mark for mark in text if not mark.isprintable() and mark not in "\n\t"}


def poisoned(value: Any) -> Any:
    """A JSON value with EVIL after its free texts."""
    if isinstance(value, dict):
        return {
            key: f"{each}{EVIL}" if key in FREE and isinstance(each, str) else poisoned(each) for key, each in value.items()
        }
    return list(map(poisoned, value)) if isinstance(value, list) else value


FREE = frozenset(
    {"dataset", "episode_id", "instruction", "low_level_instruction", "raw_response", "thought", "reasoning", "conclusion"}
    | {"reason", "message", "text", "app", "title", "asked", "url", "root", "platform", "element"}
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture
def run(folder: Path, guieval: CommandLine) -> Path:
    """A finished run whose every free text is hostile: labels of groups, model, episodes, messages, what was served."""
    if (folder / "run").exists():
        return folder / "run"
    settings = MockSettings(model=MODEL, policy="reference", accuracy=0.6, served_models=("another",))
    with MockServer(settings, benchmark=load_benchmark("demo", folder / "demo", episodes=2)) as server:
        start: list[str | Path] = ["run", "--quiet", "--model", MODEL, "--bench", "demo", "--data", folder / "demo"]
        start += ["--set", "bench_options.episodes=2", "--base-url", server.base_url, "--samples", "3"]
        done = guieval(*start, "--set", "sampling.temperature=1.0", "--out", folder / "made")
        assert done.code == 0, done
    shutil.copytree(folder / "made", folder / "run")
    manifest = poisoned(json.loads((folder / "run" / "manifest.json").read_text()))
    for section in ("model", "benchmark"):
        manifest[section]["name"] += EVIL
    (folder / "run" / "manifest.json").write_text(json.dumps(manifest))
    lines = []
    for number, line in enumerate((folder / "run" / "steps.jsonl").read_text().splitlines()):
        record = json.loads(line)
        record.pop("crc32")
        record = poisoned(record)
        record["task"]["groups"] = {f"kind{EVIL}": f"{number % 2}{EVIL}"}
        record["task"]["dataset"] = f"demo{EVIL}"
        if number == 3:
            error = {"stage": "generate", "type": "EngineError", "message": f"no{EVIL}"}
            failed = {"outcome": {"verdict": "infrastructure_failure", "reason": EVIL}, "error": error}
            record["samples"] = [failed, *record["samples"][1:]]
        lines.append(json.dumps(record))
    (folder / "run" / "steps.jsonl").write_text("".join(f"{line}\n" for line in [*lines, '{"torn": true}']))
    rows = json.loads((folder / "run" / "episodes.json").read_text())
    (folder / "run" / "episodes.json").write_text(json.dumps([[row[0], row[1], row[2] + EVIL, *row[3:]] for row in rows]))
    return folder / "run"


FORMS = ("md", "csv", "json", "latex", "html")
COMMANDS: tuple[tuple[str, ...], ...] = (
    *[("score", "RUN"), ("score", "RUN", "--json"), ("score", "RUN", "--protocol", "all", "--by", f"kind{EVIL}")],
    *[("score", "RUN", "--protocol", "all", "--disagreements", "OUT/d.csv"), ("score", "RUN", "--by", "none-such")],
    *[("report", "RUN", "--no-images", "--out", "OUT/report"), ("dev", "audit", "RUN"), ("compare", "RUN", "MADE", "--anyway")],
    *[("compare", "RUN", "MADE"), ("compare", "RUN", "RUN", "--json")],
    *(("leaderboard", "RUN", "MADE", "--format", form) for form in FORMS),
    *(("study", "decisions", "RUN", *more) for more in ((), ("--json",))),
    *(("study", "decisions", "RUN", "--format", form) for form in ("md", "csv")),
    ("plot", "horizon", "RUN", "--out", "OUT/plot.svg", "--json"),
    *[("plot", "reliability", "RUN", "--out", "OUT/plot2.svg"), ("study", "consistency", "RUN", "--judges", "RUN")],
    *[("runs", "list", "OUT"), ("study", "select", "RUN", "--top", "3", "--out", "OUT/set.json"), ("run", "--resume", "RUN")],
    *[("score", f"nowhere{EVIL}"), ("score", "RUN", "--protocol", f"none{EVIL}")],
    *[("leaderboard", "RUN", "--reference", f"none{EVIL}"), ("run", "--model", f"m{EVIL}", "--bench", "demo")],
    ("dev", "prompt", "--model", MODEL, "--bench", "demo", "--data", "DEMO", "--episode", f"x{EVIL}"),
    ("doctor", f"demo{EVIL}"),
)


@pytest.mark.parametrize(
    "command", COMMANDS, ids=lambda command: " ".join(command[:4]).encode("ascii", "replace").decode()[:50]
)
def test_no_name_of_a_run_folder_steers_a_terminal(
    run: Path, folder: Path, guieval: CommandLine, tmp_path: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {"RUN": run, "MADE": folder / "made", "DEMO": folder / "demo"}
    arguments = [places.get(word, word.replace("OUT/", f"{tmp_path}/") if word != "OUT" else run.parent) for word in command]
    for width in ("80", "200"):
        monkeypatch.setenv("COLUMNS", width)
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        done = guieval(*arguments)
        assert done.code in (0, 1, 2) and not obeyed(done.out) and not obeyed(done.err), done
    for file in tmp_path.rglob("*"):
        if file.suffix in (".csv", ".md", ".html", ".tex", ".svg"):
            assert not obeyed(file.read_text(encoding="utf-8").replace("\r\n", "\n")), file


def test_names_that_look_like_markup_stay_as_they_are(run: Path, guieval: CommandLine) -> None:
    shown = guieval("score", run).out
    assert "[red]" in shown and "[/red]" in shown and "\ufffd" in shown


@pytest.fixture
def predictions(folder: Path) -> Iterator[Path]:
    """A file of predictions with hostile names, rows and actions, in a file of a hostile name."""
    benchmark = load_benchmark("demo", folder / "demo", episodes=2)
    file = folder / f"predictions{EVIL.replace('/', '')}.jsonl"
    rows = [
        {"subset": ref.key.subset, "episode_id": ref.key.episode_id, "step_index": 0, "action": {"type": "TYPE", "text": EVIL}}
        for ref in benchmark.index()
    ]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    yield file


def test_no_name_of_a_predictions_file_steers_a_terminal(
    predictions: Path, folder: Path, guieval: CommandLine, tmp_path: Path
) -> None:
    data = ("--bench", "demo", "--data", folder / "demo")
    unknown = tmp_path / "unknown.jsonl"
    unknown.write_text(json.dumps({"episode_id": f"none{EVIL}", "step_index": 0, "response": EVIL}) + "\n")
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text(json.dumps({"episode_id": "1", "step_index": 0, f"field{EVIL}": EVIL}) + "\n")
    for file in (predictions, unknown, wrong):
        run = tmp_path / file.stem
        scoring = (("score", run), ("score", run, "--protocol", "all", "--json"))
        for command in (("data", "import", file, *data, "--out", run), *scoring):
            done = guieval(*command)
            assert done.code in (0, 1, 2) and not obeyed(done.out) and not obeyed(done.err), done


def test_a_benchmark_file_does_not_steer_a_terminal(guieval: CommandLine, tmp_path: Path) -> None:
    shot = f"{EVIL.replace('/', '')}.png"
    step = {"instruction": EVIL, "screenshot": shot, "screenshot_size": [100, 100], "groups": {EVIL: EVIL}}
    good = {"episode_id": f"a{EVIL}", "split": f"s{EVIL}", "steps": [{**step, "action": {"type": "TYPE", "text": EVIL}}]}
    bad = {"episode_id": f"b{EVIL}", "steps": [{**step, "action": {"type": EVIL}}]}
    (tmp_path / "episodes.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in (good, bad)))
    for command in (
        ("doctor", "episodes", "--data", tmp_path, "--skip-damaged"),
        ("doctor", "episodes", "--data", tmp_path),
        ("dev", "prompt", "--model", MODEL, "--bench", "episodes", "--data", tmp_path, "--skip-damaged"),
        ("data", "export", "episodes", "--data", tmp_path, "--out", tmp_path / "out", "--skip-damaged"),
        ("run", "--model", MODEL, "--bench", "episodes", "--data", tmp_path, "--out", tmp_path / "run", "--split", "none"),
    ):
        done = guieval(*command)
        assert done.code in (0, 1, 2) and not obeyed(done.out) and not obeyed(done.err), done


def test_what_is_harmless_stays() -> None:
    text = "Ordinary text,\twith tabs\nand lines; 多行 ✓ é \U0001f600"
    assert harmless(text) is text or harmless(text) == text
    assert harmless("a\u3000b\xa0c") == "a b c"
    assert harmless("a\x1b[2Jb\r\x9b\u202e\x00") == "a\ufffd[2Jb\ufffd\ufffd\ufffd\ufffd"
