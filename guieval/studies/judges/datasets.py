"""Data sets of trajectories with people's labels, in their published formats.

- **OSReward** (huggingface.co/datasets/OS-Copilot/OSReward): Parquet in ``parquet/full`` and ``parquet/hard``, or a JSON file a
  trajectory, as OS-Copilot/OSReward's ``eval_pipeline/run_judge.py`` (77dff13) reads them. Frames may be missing.
- **CUAVerifierBench** (huggingface.co/datasets/microsoft/CUAVerifierBench, c19eb32): Parquet in ``trajectories`` and
  ``annotations``. The label is what most people say, a tie is left out. 101 of 154 internal trajectories lack screenshots.
- **AgentRewardBench** (McGill-NLP/agent-reward-bench, ea58fb5): ``annotations.csv`` and ``trajectories/cleaned``. The first
  annotation of a trajectory is its label, as in its ``scripts/score_judgments.py``; "Unsure" is left out.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from guieval.data.files import read_bytes, read_text
from guieval.data.names import path_inside
from guieval.data.typed_rows import Row
from guieval.errors import DataError, UsageError
from guieval.journal import RunFolder, is_run
from guieval.studies.judges.cases import Case, CaseStep, of_run

ANNOTATIONS = ("annotations.csv", "data/annotations.csv", "agent_reward_bench/data/annotations.csv")
NO_ANSWER = "<no_answer>"
SCREENSHOTS = "screenshots"


class LabelledSet(NamedTuple):
    """A data set's trajectories; ``left_out`` says in a sentence each how many have no label, and why."""

    title: str
    cases: list[Case]
    left_out: tuple[str, ...] = ()


class ParquetRow(NamedTuple):
    """A row without its screenshots, and where it is: file, row group and number in it. ``frames`` are whether each of its
    screenshots is there."""

    row: Row
    file: Path
    group: int
    number: int
    frames: list[bool]

    def screenshot(self, frame: int) -> Callable[[], bytes] | None:
        """What reads one, if there is one."""
        known = frame < len(self.frames) and self.frames[frame]
        return partial(_frame, self.file, self.group, self.number, frame) if known else None


def read_labelled(folder: Path) -> LabelledSet:
    """The data set in a folder, whose format its files tell, or a run, labelled by its environment.

    Raises :class:`UsageError` if it is none, :class:`guieval.errors.DataError` for a file that does not follow the format.
    """
    if not folder.exists():
        raise UsageError(f"the data set {str(folder)!r} does not exist")
    if is_run(folder):
        cases = of_run(folder, RunFolder(folder).tasks)
        known = [case._replace(own=None) for case in cases if case.own is not None]  # its rule is the label
        return LabelledSet("the run's environment", known)
    annotations = next((folder / name for name in ANNOTATIONS if (folder / name).is_file()), None)
    if annotations is not None:
        return _agent_reward_bench(folder, annotations)
    if sorted((folder / "annotations").glob("*.parquet")):
        return _cua_verifier_bench(folder)
    found = _os_reward(folder)
    if not found.cases:
        raise UsageError(
            f"{str(folder)!r} has no labelled trajectories: expected OSReward (*.parquet or *.json), CUAVerifierBench "
            "(trajectories/*.parquet and annotations/*.parquet), AgentRewardBench (annotations.csv) or an online run"
        )
    return found


def _os_reward(folder: Path) -> LabelledSet:
    subsets = sorted(
        path for place in ("parquet", "data") for path in (folder / place).glob("*") if any(path.glob("*.parquet"))
    )
    if len(subsets) > 1:
        raise UsageError(f"{str(folder)!r} has several subsets; name one: {', '.join(map(str, subsets))}")
    rows = list(_parquet_rows(sorted((subsets or [folder])[0].glob("*.parquet"))))
    if rows:
        return _checked("OSReward", [_os_trace(each.row, each.screenshot) for each in rows])
    files = (path for path in sorted(folder.rglob("*.json")) if not path.name.startswith("."))
    read = ((path, _json(path)) for path in files)
    traces = [
        (path, Row.of(value, str(path)))
        for path, value in read
        if isinstance(value, dict) and {"trace_id", "task_id", "human_label"} <= value.keys()
    ]
    return _checked("OSReward", [_os_trace(row, partial(_os_frame, row, path.parent)) for path, row in traces])


def _os_trace(row: Row, screenshot: Callable[[int], Callable[[], bytes] | None]) -> Case:
    if (label := row.text("human_label")) not in ("SUCCESS", "FAIL"):
        raise row.error("human_label", f"expected SUCCESS or FAIL, got {label!r:.80}")
    steps = [
        CaseStep(_text(step, "action"), _text(step, "thought"), point=_point(step), screenshot=screenshot(number))
        for number, step in enumerate(row.rows("trajectory"))
    ]
    last = row.rows("trajectory")[-1].values if steps else {}
    ended = last.get("meta_action") == "terminate"
    return Case(
        row.text("trace_id"),
        row.text("task_id"),
        row.text("instruction"),
        steps,
        label == "SUCCESS",
        claimed="success" in steps[-1].action.lower() if ended else None,
        platform=_text(row, "platform"),
        agent=_text(row, "agent"),
    )


def _point(step: Row) -> tuple[float, float] | None:
    place = step.values.get("coordinate")
    match place:
        case [int() | float() as x, int() | float() as y] if 0 <= x <= 1000 and 0 <= y <= 1000:
            return float(x), float(y)
    return None


def _os_frame(row: Row, folder: Path, number: int) -> Callable[[], bytes] | None:
    path = row.rows("trajectory")[number].values.get("screenshot_path")
    return partial(_file, folder, path) if isinstance(path, str) and path else None


def _cua_verifier_bench(folder: Path) -> LabelledSet:
    votes: dict[tuple[str, str], Counter[str]] = {}
    for each in _parquet_rows(sorted((folder / "annotations").glob("*.parquet"))):
        said = each.row.text("human_judgement_outcome")
        if said not in ("Correct", "Incorrect"):
            raise each.row.error("human_judgement_outcome", f"expected Correct or Incorrect, got {said!r:.80}")
        votes.setdefault((_split(each.file), each.row.text("task_id")), Counter())[said] += 1
    cases, ties, unlabelled = [], 0, 0
    for each in _parquet_rows(sorted((folder / "trajectories").glob("*.parquet"))):
        name = each.row.text("task_id")
        counts = votes.get((_split(each.file), name), Counter())
        if counts["Correct"] == counts["Incorrect"]:
            ties, unlabelled = ties + bool(counts), unlabelled + (not counts)
            continue
        cases.append(_cua_case(each, counts["Correct"] > counts["Incorrect"]))
    return _checked("CUAVerifierBench", cases, {"with a tie of people's votes": ties, "without an annotation": unlabelled})


def _split(file: Path) -> str:
    return file.name.split("-")[0]


def _cua_case(found: ParquetRow, label: bool) -> Case:
    row = found.row
    lines = [line for line in _text(row, "web_surfer_log").split("\n") if line.strip()]
    actions = [_cua_action(row, line) for line in lines]
    steps = [
        action._replace(screenshot=found.screenshot(number))
        for number, action in enumerate([*actions, *[CaseStep("")] * (len(found.frames) - len(actions))])
    ]
    answer = _text(row, "final_answer")
    given = answer if answer not in ("", NO_ANSWER) else None
    own = row.values.get("uv_outcome_success")
    return Case(
        f"{_split(found.file)}/{row.text('task_id')}",
        row.text("task_id"),
        row.text("instruction"),
        steps,
        label,
        own=None if own is None or own < 0 else bool(own),
        claimed=given is not None and not row.values.get("is_aborted"),
        answer=given,
        platform=_split(found.file),
    )


def _cua_action(row: Row, line: str) -> CaseStep:
    try:
        event = Row.of(json.loads(line), f"{row.where}, web_surfer_log")
    except ValueError:
        raise row.error("web_surfer_log", f"expected JSON lines, got {line!r:.80}") from None
    arguments = dict(event.values.get("arguments") or {})
    thought = str(arguments.pop("thoughts", "") or "")
    name = arguments.pop("action", None) or event.value("action")
    words = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    return CaseStep(f"{name}({words})", thought, str(event.values.get("url") or ""))


def _agent_reward_bench(folder: Path, annotations: Path) -> LabelledSet:
    cases: dict[str, Case] = {}
    read: set[str] = set()
    unsure = missing = 0
    for number, values in enumerate(csv.DictReader(io.StringIO(read_text(annotations))), 2):
        row = Row.of(values, f"{annotations}, line {number}")
        names = [row.text(name) for name in ("benchmark", "model_name", "exp_name", "task_id")]
        id = "/".join((names[0], names[1], names[3]))
        said = row.text("trajectory_success").strip().lower()
        if said != "unsure" and said not in ("successful", "unsuccessful"):
            raise row.error("trajectory_success", f"expected Successful, Unsuccessful or Unsure, got {said!r:.80}")
        if id in read:
            if id in cases:
                cases[id] = cases[id]._replace(second=None if said == "unsure" else said == "successful")
            continue
        read.add(id)
        if said == "unsure":
            unsure += 1
            continue
        try:
            file = path_inside(folder, "/".join(("trajectories/cleaned", *names[:3], f"{names[3]}.json")))
        except ValueError as error:
            raise row.error("task_id", str(error)) from None
        if not file.is_file():
            missing += 1
            continue
        cases[id] = _arb_case(folder, Row.of(_json(file), str(file)), id, names, said == "successful")
    return _checked("AgentRewardBench", [*cases.values()], {"with the label Unsure": unsure, "without a trajectory": missing})


def _arb_case(folder: Path, row: Row, id: str, names: Sequence[str], label: bool) -> Case:
    steps = [
        CaseStep(
            _text(step, "action"),
            _text(step, "reasoning"),
            _text(step, "url"),
            screenshot=partial(_file, folder, path) if (path := _text(step, "screenshot_path")) else None,
        )
        for step in row.rows("steps")
    ]
    messages = [found for step in steps for found in re.findall(r"send_msg_to_user\(\s*(['\"])(.*)\1", step.action, re.DOTALL)]
    platform = "workarena++" if names[0] == "workarena" and "l2" in names[3].lower() else names[0]
    return Case(
        id,
        f"{names[0]}/{names[3]}",
        row.text("goal"),
        steps,
        label,
        own=row.row("summary_info").number("cum_reward") > 0.5,
        claimed=bool(messages),
        answer=messages[-1][1] if messages else None,
        platform=platform,
        agent=names[1],
    )


def _text(row: Row, field: str) -> str:
    """A text that may be missing or null."""
    value = row.values.get(field)
    return "" if value is None else str(value)


def _json(file: Path) -> Any:
    try:
        return json.loads(read_bytes(file))
    except ValueError:
        raise DataError(f"{file}: is not JSON") from None


def _file(folder: Path, path: str) -> bytes:
    try:
        return read_bytes(path_inside(folder, path))
    except (ValueError, OSError) as error:
        raise DataError(f"the screenshot {path[:200]!r} in {str(folder)!r} cannot be read: {error}") from None


def _checked(title: str, cases: list[Case], left_out: dict[str, int] | None = None) -> LabelledSet:
    twice = next((id for id, count in Counter(case.id for case in cases).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"{title}: two trajectories have the id {twice!r}")
    said = (f"trajectories left out: {count:,} {why}" for why, count in (left_out or {}).items() if count)
    return LabelledSet(title, cases, tuple(said))


def _parquet(file: Path) -> Any:
    try:
        import pyarrow.parquet as parquet
    except ModuleNotFoundError:
        raise UsageError(f"{str(file)!r} can only be read with pyarrow: pip install 'guieval[parquet]'") from None
    try:
        return parquet.ParquetFile(file)
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: is not Parquet: {error}") from None


def _parquet_rows(files: Sequence[Path]) -> Iterator[ParquetRow]:
    """All rows; of the screenshots, which may be gigabytes, only the names are read."""
    for file in files:
        opened = _parquet(file)
        leaves = [opened.schema.column(number).path for number in range(len(opened.schema))]
        columns = [path for path in leaves if not path.startswith(f"{SCREENSHOTS}.") or path.endswith(".path")]
        for group in range(opened.num_row_groups):
            for number, values in enumerate(opened.read_row_group(group, columns=columns).to_pylist()):
                frames = [frame is not None for frame in values.pop(SCREENSHOTS, None) or ()]
                yield ParquetRow(Row.of(values, f"{file}, row {number} of group {group}"), file, group, number, frames)


def _frame(file: Path, group: int, number: int, frame: int) -> bytes:
    found = _frames(file, group)[number].as_py()[frame]
    return found["bytes"] if found.get("bytes") else _file(file.parent, str(found.get("path")))


@lru_cache(maxsize=2)
def _frames(file: Path, group: int) -> Any:
    return _parquet(file).read_row_group(group, columns=[SCREENSHOTS]).column(SCREENSHOTS)
