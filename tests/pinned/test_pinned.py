"""Run folders that an earlier version wrote still open, score, compare and resume, to the digit.

What a command prints of them may change only on purpose: then the changelog names every number that changes, and why.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import guieval
from guieval.connectors.pages.browser import find_chromium, require_playwright
from guieval.errors import UsageError
from guieval.journal import EPISODES, MANIFEST, METRICS, PACKED_STEPS, STEPS, RunFolder
from guieval.metrics import RunSummary
from guieval.metrics.summary import WITHOUT_OPEN
from guieval.online.find import load_environment
from guieval.online.trajectory import TRAJECTORIES
from guieval.reports.opened import OpenedRun
from tests.pinned.folders import FOLDERS, RESUMED, Kind
from tests.pinned.place import PRINTED, RUNS, Place, placed
from tests.pinned.printed import COMMANDS, MOST_LINES, SIGN, dense, read_printed, resumed_printed, rounded, sectioned

ON_PURPOSE = "if the change is intended: `python -m tests.pinned.write --printed`, and name each number in CHANGELOG.md"
SHOWN = 30
"""Lines of a difference that are shown; all of them are in the output of the command."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with placed(tmp_path) as filled:
        yield filled


def directories(folder: Path = RUNS) -> list[Path]:
    """Every run directory, relative to ``folder``."""
    return sorted(file.parent.relative_to(folder) for file in folder.rglob(EPISODES))


def sections(text: str) -> dict[str, list[str]]:
    """The lines that each command printed."""
    found = {}
    for section in f"\n{text}".split(f"\n{SIGN}")[1:]:
        command, *lines = section.rstrip().splitlines()
        found[command] = lines
    return found


def differences(expected: str, now: str, where: str) -> list[str]:
    """For each command whose text differs the file, the command and the lines; commands that one of both lacks too."""
    before, after = sections(expected), sections(now)
    found = []
    for command in dict.fromkeys((*before, *after)):
        first, second = before.get(command, ["(not pinned)"]), after.get(command, ["(not printed)"])
        lines = list(difflib.unified_diff(first, second, "pinned", "now", lineterm="", n=0))[2:]
        if lines:
            more = [f"... and {len(lines) - SHOWN} more lines"] if len(lines) > SHOWN else []
            found.append("\n".join([f"{where}: guieval {command}", *lines[:SHOWN], *more]))
    return found


def fail_with(found: Sequence[str]) -> None:
    if found:
        pytest.fail("\n\n".join([f"{len(found)} of the pinned things differ", *found, ON_PURPOSE]), pytrace=False)


def test_every_pinned_folder_opens() -> None:
    assert {path.name for path in RUNS.iterdir()} == set(FOLDERS)
    found = []
    for directory in directories():
        try:
            run = guieval.open_run(RUNS / directory)
        except Exception as error:  # whatever it is, all folders that it concerns are listed
            found.append(f"runs/{directory}: open_run: {type(error).__name__}: {error}")
        else:
            notes = run.notes if isinstance(run, OpenedRun) else ()
            found += [f"runs/{directory}: open_run: {note}" for note in notes]
    fail_with(found)


def test_what_commands_print_is_what_they_printed(place: Place) -> None:
    now = dict(read_printed(place))
    assert {path.stem for path in PRINTED.iterdir()} == set(now) | {f"resumed-{kind}" for kind in RESUMED}
    found = [each for name in now for each in differences(pinned(name), now[name], f"printed/{name}.txt")]
    for command, lines in sections(now["widths"]).items():
        width = int(command.removeprefix("COLUMNS=").split()[0])
        wide = [line for line in lines if len(line) > width and not line.startswith(("resume:", "re-score:"))]
        found += (
            [f"guieval {command}: {len(lines)} lines, and {len(wide)} are too wide"] if wide or len(lines) > MOST_LINES else []
        )
    fail_with(found)


def pinned(name: str) -> str:
    return (PRINTED / f"{name}.txt").read_text(encoding="utf-8")


EARLIER = {
    "progress_episode_mean": "progress",
    "progress_step_weighted": "step-weighted progress",
    "pg": "PG",
    "tsr": "TSR",
    "click_distance_median": "median click distance",
    "text_similarity_mean": "mean text similarity",
    "seconds_mean": "mean seconds to answer",
}
"""What the pinned folders call a metric, if that is not its name with an underscore."""


ALWAYS = ("exact match", "type match", "success rate", "progress", "step-weighted progress", "coverage", "covered exact match")
"""Metrics of every run, whichever version wrote it down."""


def stored_numbers(values: Mapping[str, Any], ending: str = "") -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Every metric of a pinned ``metrics.json``, as earlier versions wrote it, with value, n, count and upper bound."""
    for name, each in values.items():
        if name in ("sop", "diagnostics", "without_open") and each is not None:
            yield from stored_numbers(each, WITHOUT_OPEN if name == "without_open" else "")
        elif isinstance(each, dict) and "value" in each:
            known = EARLIER.get(name, name.replace("_", " "))
            value = each["value"] if each["n"] else None
            yield known + ending, (value, each["n"], each.get("count"), each.get("upper"))


def cells_of(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of the tables of a pinned ``metrics.json``, by row."""
    rows = {f"action {name}": each for name, each in stored["by_action_type"].items()}
    for table in stored["groups"]:
        rows |= {f"{table['keys']} {cell['labels']}": cell["scores"] for cell in table["cells"]}
    return {name: (row["n"], row["exact_match"]["count"], row["type_match"]["count"]) for name, row in rows.items()}


def test_scored_again_without_the_model_every_number_is_the_stored_one() -> None:
    found = []
    for directory in directories():
        if not (RUNS / directory / METRICS).exists():  # an evaluation in a training has its metrics in evaluations.jsonl
            continue
        stored = json.loads((RUNS / directory / METRICS).read_bytes())["summary"]
        again = guieval.evaluate_run(RUNS / directory).summary
        if not isinstance(again, RunSummary):  # those that were stored were of first repetitions, and nothing printed them
            continue
        now = again.all_metrics
        for name, (value, n, count, upper) in stored_numbers(stored):
            if name not in now:  # without any OPEN step these are the metrics over all
                absent = name.endswith(WITHOUT_OPEN) and "OPEN" not in stored["by_action_type"]
                found += [] if absent or value is None else [f"{directory}: {name} is not there any more"]
                continue
            own = now[name]
            same = own.value == (value and pytest.approx(value)) and own.n == n
            same &= "covered" in name or own.upper == (upper and pytest.approx(upper))  # these had no upper bound
            if not same or (count is not None and own.count != count):
                found.append(f"{directory}: {name} was {value} of {n}, up to {upper}, and is {own}")
        rows = {f"action {cell.labels[0]}": cell for cell in again.by_action_type.values()}
        rows |= {f"{list(table.keys)} {list(cell.labels)}": cell for table in again.groups for cell in table.cells}
        cells = {name: (cell.n, cell.exact_match.count, cell.type_match.count) for name, cell in rows.items()}
        if cells != cells_of(stored):
            found.append(f"{directory}: the tables differ")
        if again.verdicts.model_dump() != stored["verdicts"] or again.complete != stored["complete"]:
            found.append(f"{directory}: the verdicts differ")
    fail_with(found)


def json_differences(expected: object, now: object, where: str) -> list[str]:
    first, second = (f"{SIGN}\n{rounded(dense(value))}" for value in (expected, now))
    return differences(first, second, where)


@pytest.mark.parametrize("kind", RESUMED)
def test_a_finished_run_that_is_resumed_asks_nothing_and_changes_nothing(place: Place, kind: Kind) -> None:
    """A run is finished when every step has an answer; of the others the steps that failed are asked again, and fail again."""
    skip_without_its_screens(kind)
    name = f"resumed-{kind}"
    found = differences(pinned(name), resumed_printed(place, kind), f"printed/{name}.txt")
    for directory in directories(place.folder / "runs"):
        metrics = RUNS / directory / METRICS
        if metrics.exists() and RunFolder(RUNS / directory).ended_complete:
            then, now = contents(RUNS / directory), contents(place.folder / "runs" / directory)
            changed = sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))
            found += [f"runs/{directory}: a resume that asks nothing has changed {name}" for name in changed]
    fail_with(found)


def skip_without_its_screens(kind: Kind) -> None:
    """Online runs go on where the screens are drawn as they were."""
    if kind == "pages":
        try:
            require_playwright()
            find_chromium("")
        except UsageError as error:
            pytest.skip(str(error))
    if kind == "phone":
        recorded = json.loads((RUNS / "phone-careful" / MANIFEST).read_bytes())["benchmark"]["environment"]
        now = load_environment("demo").version
        if recorded != now:
            pytest.skip(f"the phone was drawn as {recorded}, and is drawn as {now} here")


def contents(folder: Path) -> dict[str, str]:
    """Every file of a run directory, by its path; without what its servers did since the last start, which is nothing."""
    found = {}
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            found[file.relative_to(folder).as_posix()] = file.read_bytes().hex()
    return found | {METRICS: dense(sorted(numbers_of(json.loads((folder / METRICS).read_bytes())["summary"]).items()))}


def numbers_of(summary: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """The metrics of a ``metrics.json`` of this version or an earlier one, but for what takes time; none of tasks."""
    if "tasks" in summary or set(summary["by_action_type"]) == {"UNSUPPORTED"}:
        return {}
    if "metrics" in summary:
        named = {**summary["metrics"], **summary["own"]}
        found = {name: (each["value"], each["n"]) for name, each in named.items()}
    else:
        found = {name: (value, n) for name, (value, n, *_) in stored_numbers(summary)}
    return {name: found[name] for name in ALWAYS if name in found} | {"verdicts": tuple(summary["verdicts"].items())}


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.ci] * (kind == "steps")) for kind in RESUMED])
def test_a_run_that_was_killed_resumes_to_the_same_metrics_and_texts(place: Place, kind: Kind) -> None:
    skip_without_its_screens(kind)
    runs = place.folder / "runs"
    names = [name for name, folder in FOLDERS.items() if folder.kind == kind]
    for name in names:
        cut(runs / name)
        place(FOLDERS[name].resumed)
    found = []
    for directory in directories(runs):
        if directory.parts[0] in names:
            expected, now = (
                numbers_of(json.loads((root / directory / METRICS).read_bytes())["summary"]) for root in (RUNS, runs)
            )
            found += json_differences(expected, now, f"runs/{directory}/{METRICS} of a resumed run")
            before, after = (json.loads((root / directory / MANIFEST).read_bytes()) for root in (RUNS, runs))
            if "setups" not in before:  # the version that wrote the run recorded none
                after.pop("setups", None)
            after |= {name: before[name] for name in ("served",) if name in before}
            (runs / directory / MANIFEST).write_text(json.dumps(after))
    for name, commands in COMMANDS.items():
        touched = [command for command in commands if any(f"runs/{each}" in command for each in names)]
        text = "\n".join(f"{SIGN}{command}\n" + "\n".join(sections(pinned(name))[command]) for command in touched)
        found += differences(timeless(text), timeless(sectioned(place, touched)), f"printed/{name}.txt of a resumed run")
    fail_with(found)


def timeless(text: str) -> str:
    """A printed file without how long an answer took, and without the commands that count how often a step failed."""
    kept = [f"{SIGN}{command}\n" + "\n".join(lines) for command, lines in sections(text).items() if command not in RETRIED]
    return re.sub(
        r'^ *"mean seconds to answer": \{[^}]*\}|^.*mean seconds to answer.*$|"(seconds\w*|latency_ms)": (\{[^}]*\}|[^,}\n]*)',
        "",
        "\n".join(kept),
        flags=re.M,
    )


RETRIED = ("view runs/hasty/sop", "view runs/off-policy")
"""They list a step once for each start in which it failed."""


def cut(runs: Path) -> None:
    """Leave what a kill after two thirds of each journal would have left."""
    for outcomes in runs.rglob("outcomes.jsonl"):
        shorten(outcomes)
    finished = {name for outcomes in runs.rglob("outcomes.jsonl") for name in settings_in(outcomes)}
    for journal in [path for name in (STEPS, PACKED_STEPS) for path in runs.rglob(name) if path.parent.name not in finished]:
        shorten(journal)
        trajectories = journal.with_name(TRAJECTORIES)
        if trajectories.exists():
            cut_trajectories(trajectories, journal)
        journal.with_name(METRICS).unlink(missing_ok=True)


def shorten(journal: Path) -> None:
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[: len(lines) * 2 // 3]))


def settings_in(outcomes: Path) -> list[str]:
    """The folders of the settings that a sweep has done; it does not look into them again."""
    numbers = [json.loads(line)["number"] for line in outcomes.read_text(encoding="utf-8").splitlines()]
    return [folder.name for folder in (outcomes.parent / "settings").iterdir() if int(folder.name[:4]) in numbers]


def cut_trajectories(trajectories: Path, journal: Path) -> None:
    """Keep the tasks whose outcome is in the journal, and of each other one the first step."""
    done = {json.loads(line)["task"]["episode_id"] for line in journal.read_bytes().splitlines()}
    kept = []
    for line in trajectories.read_bytes().splitlines(keepends=True):
        step = json.loads(line)
        if step["key"][-1] in done or step["index"] == 0:
            kept.append(line)
    trajectories.write_bytes(b"".join(kept))
