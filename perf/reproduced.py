"""Scores public prediction files and writes docs/reproduced.md: what each file states, what guieval finds, which rows differ.

Every figure on the page is computed here. A stated score is read from the file, or counted from the verdicts in its rows; the
same rows go through the importer and the benchmark's own protocol, as in ``guieval score``, and are compared one by one.

    python -m perf.reproduced          # from the repository's root: half a minute; needs the files (GUIEVAL_SHARED_DATA)
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from guieval.data.benchmark import ABCBenchmark
from guieval.errors import DataError
from guieval.evaluation import ActionEvaluator, get_protocol
from guieval.exchange.importing import import_predictions
from guieval.exchange.predictions import Predicted, detect_format, get_format
from guieval.exchange.predictions.rows import PredictionRow, open_rows
from guieval.metrics import summarise
from guieval.metrics.kinds import of_steps
from guieval.registry import load_benchmark
from guieval.scoring.matrix import judge_run
from guieval.scoring.score import evaluate_run
from guieval.steps import StepTaskModel

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reproduced.md"
FILES = "result_files"
LISTS = "screenspot_pro_format_annotations"
NAMED = 20
"""How many rows of a kind are named."""

INTRODUCTION = """\
# Reproduced scores

Public files of predictions, with the score that each states and the one that guieval finds from the same replies. The command
`python -m perf.reproduced` writes this page; a test compares the page with what the command finds.

To repeat it, fetch each file at its commit into the folder `result_files`, under the name `OWNER+REPOSITORY__NAME` (packed with
gzip or not; the last part of the path is `NAME`, except for MAI-UI's: it is `local_NAME` or `server_NAME` by the folder).
Put MAI-UI's `evaluation/grounding/data`, at the same commit, next to it as `screenspot_pro_format_annotations`; it has the
labels of all these benchmarks. Name the folder that contains both in `GUIEVAL_SHARED_DATA` and run the command. To make a
run of one file, use `guieval data import FILE --bench BENCHMARK --data screenspot_pro_format_annotations --out RUN`.

A row differs when its own verdict (right or not) is not guieval's. Scores are over the rows of the file. UI-Genie's results are
several files in one folder: put `acc.json` and all `*_badcase.json` next to `details.json`. Its authors leave out replies that
are not JSON, of which there is one.

"""
NOT_SCORED = """
## Not scored

| file | stated score | why it is not scored |
|---|---|---|
"""


class Source(NamedTuple):
    """A public file: where a reader finds it, under which name it is kept, and whose steps it answers.

    ``only`` chooses the rows of one condition, by a field and its value. ``protocol`` stands in place of the benchmark's own.
    """

    repository: str
    path: str
    commit: str
    name: str
    benchmark: str
    only: tuple[str, str] | None = None
    protocol: str | None = None

    @property
    def url(self) -> str:
        """The address of the file at its commit."""
        return f"https://github.com/{self.repository}/blob/{self.commit}/{self.path}"

    @property
    def link(self) -> str:
        """The file and the condition, for the page."""
        condition = f", {self.only[0]} `{self.only[1]}`" if self.only else ""
        return f"[{self.repository}: {self.path.removeprefix(_GENIE)} @ {self.commit}]({self.url}){condition}"


_MAI_UI = ("Tongyi-MAI/MAI-UI", "4dd07b9e910a")
_PRO = ("woodhalloween/ScreenSpot-Pro-GUI-Grounding", "6a890ec76214")
_PILOT = ("qizhanggu/mobilepilot-runtime", "62f55f89302e")
_HELD_OUT = "artifacts/evaluation/screenspot-v2-20260723/held-out/"
_GENIE = "src/ms-swift/androidcontrol_infer_acc/high_level_UI-Genie-7B_androidcontrol/"
_SE_GUI = "rec_results_android_studio_macos_8k_SFT_0.json"


def _mai_ui(kind: str, name: str, benchmark: str) -> Source:
    path = f"evaluation/grounding/output_{kind}/{name}"
    return Source(_MAI_UI[0], path, _MAI_UI[1], f"{kind}_{name}", benchmark)


SOURCES = (
    _mai_ui("local", "SSV2.json", "screenspot-v2"),
    _mai_ui("server", "SSV2.jsonl", "screenspot-v2"),
    _mai_ui("local", "OS_G.json", "osworld-g"),
    _mai_ui("local", "OS_G.json", "osworld-g")._replace(protocol="mai-ui-grounding"),
    _mai_ui("server", "MMBench.jsonl", "mmbench-gui-l2"),
    Source(_PRO[0], "results/qwen25vl.json", _PRO[1], "qwen25vl.json", "screenspot-pro"),
    Source(_PRO[0], "results/qwen2vl.json", _PRO[1], "qwen2vl.json", "screenspot-pro"),
    Source("YXB-NKU/SE-GUI", f"src/eval/logs/{_SE_GUI}", "0e2623762fc5", _SE_GUI, "screenspot-pro"),
    *(
        Source(_PILOT[0], f"{_HELD_OUT}runs.jsonl", _PILOT[1], "runs.jsonl", "screenspot-v2", ("config", condition))
        for condition in ("raw__vision_only", "grid_10x10__vision_only")
    ),
)
UI_GENIE = Source("Euphoria16/UI-Genie", f"{_GENIE}details.json", "bb7df6b18131", "details.json", "androidcontrol")
_GUI_COURSE = "https://github.com/RUCBM/GUICourse/tree/a6dd4c3f0445/results"
WITHOUT_LABELS = [
    f"[RUCBM/GUICourse: results/minicpm_guiagent_*.json @ a6dd4c3f0445]({_GUI_COURSE})",
    "none in the files (2,079 steps on phones, 1,500 and 1,519 on web pages, 1,877 of text and boxes)",
    "a row is an id, a prompt and a reply; labels, and sizes of images except in the last file, are in the data set's "
    "own files, which no loader reads. `guieval data import` reads the replies, for labels of your own",
]


class Score(NamedTuple):
    """So many right of so many."""

    right: int
    n: int

    def __str__(self) -> str:
        return f"{self.right:,} of {self.n:,} ({100 * self.right / self.n:.2f}%)"


@dataclass(frozen=True)
class Compared:
    """One file: its stated score, guieval's under ``protocol``, and what to say of the rows.

    ``differing`` names the steps whose verdicts differ, by the reason; ``unscored`` counts the benchmark's steps that have no
    row; ``notes`` say what else a reader should know.
    """

    source: Source
    stated: Score
    found: Score
    protocol: str
    differing: Mapping[str, list[str]]
    unscored: int
    notes: tuple[str, ...]

    def cells(self) -> list[str]:
        """The row of the table."""
        found = f"{self.found} under `{self.protocol}`"
        if self.unscored:
            found += f"; {self.unscored:,} other steps of the benchmark are not in the file"
        message = [f"{len(names)} {reason}: {_listed(names)}" for reason, names in self.differing.items()] or ["none"]
        return [self.source.link, self.source.benchmark, str(self.stated), found, "; ".join([*message, *self.notes])]


def compare(source: Source, folder: Path) -> Compared:
    """Score one file of the folder of all data, and compare it with its own verdicts row by row."""
    with TemporaryDirectory() as made:
        file = file_of(source, folder)
        stated = _stated(source, folder, file)
        if source.only is not None:
            file = condition(file, source.only, Path(made) / "rows.jsonl")
        benchmark = _benchmark(source.benchmark, folder / LISTS)
        protocol = source.protocol or benchmark.protocol
        evaluator = ActionEvaluator(protocol)
        read = get_format(detect_format(file).name).reader(lambda: _rows(file), _steps(source.benchmark, folder / LISTS))
        differing: dict[str, list[str]] = {}
        notes: Counter[str] = Counter()
        right = n = 0
        for row in _rows(file):
            answer, theirs = read(row), verdict(row)
            if not isinstance(answer, Predicted) or answer.task is None:
                raise DataError(f"{row.where}: has no answer to a step of {source.benchmark}")
            outcome = evaluator.evaluate(answer.task, answer.action)
            n += 1
            right += outcome.exact_match
            if outcome.exact_match != theirs:
                where = "right there only" if theirs else "right here only"
                differing.setdefault(f"{where}: {_reason(row, theirs)}", []).append(answer.episode_id)
            if answer.differs:
                notes["with another box than the benchmark, whose label decides"] += 1
            if "correctness" in row and (outcome.verdict == "unparseable") != (row.text("correctness") == "wrong_format"):
                notes["unparseable there or here but not in both, so right in neither"] += 1
        run = import_predictions(file, Path(made) / "run", bench=source.benchmark, data=folder / LISTS).directory
        summary = of_steps(evaluate_run(run, protocol).summary)
        if (summary.exact_match.count, summary.verdicts.measured) != (right, n):
            raise DataError(
                f"{file}: `guieval score` finds {summary.exact_match.count} of {summary.verdicts.measured} rows right"
            )
    found = tuple(f"{what}: {count}" for what, count in notes.items())
    return Compared(source, stated, Score(right, n), protocol, differing, summary.verdicts.unmeasured, found)


def verdict(row: PredictionRow) -> bool:
    """Whether the source calls the row right."""
    return row.text("correctness") == "correct" if "correctness" in row else bool(row.value("correct"))


def _reason(row: PredictionRow, theirs: bool) -> str:
    box = row.values.get("bbox")
    if isinstance(box, list) and len(box) > 4:
        x, y = row.numbers("pred", 2)
        if (box[0] <= x <= box[2] and box[1] <= y <= box[3]) == theirs:
            return "the target is a polygon; that scorer takes its first four numbers for a box"
    return "not explained"


def _stated(source: Source, folder: Path, file: Path) -> Score:
    """The score as the file, or the summary beside it, states it; else the verdicts in the rows, counted."""
    if source.only is not None:
        summaries = _json(file_of(source._replace(name="summary.json"), folder))
        result = next(each for each in summaries if each["config"] == source.only[1])
        return Score(result["correct"], result["samples"])
    verdicts = list(map(verdict, _rows(file)))
    counted = Score(sum(verdicts), len(verdicts))
    if source.name.endswith(".jsonl"):
        return counted
    values = _json(file)
    if "metrics" in values:
        overall = values["metrics"]["overall"]
        return Score(overall["num_correct_action"], overall["num_total"])
    if abs(values["accuracy"] - 100 * counted.right / counted.n) > 0.005:
        raise DataError(f"{file}: states an accuracy of {values['accuracy']}, and its rows are {counted}")
    return counted


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(f"`{name}`" for name in names[:NAMED]) + more


def _rows(file: Path) -> Iterator[PredictionRow]:
    for row in open_rows(file):
        if isinstance(row, DataError):
            raise row
        yield row


def condition(file: Path, only: tuple[str, str], out: Path) -> Path:
    """Write the rows of ``file`` with that value in that field to ``out``."""
    field, value = only
    chosen = (row.values for row in _rows(file) if row.value(field) == value)
    out.write_text("".join(json.dumps(values) + "\n" for values in chosen), encoding="utf-8")
    return out


@cache
def _benchmark(name: str, folder: Path) -> ABCBenchmark:
    return load_benchmark(name, folder)


@cache
def _steps(name: str, folder: Path) -> tuple[StepTaskModel, ...]:
    benchmark = _benchmark(name, folder)
    return tuple(step for ref in benchmark.index() for step in benchmark.load(ref).steps)


def file_of(source: Source, folder: Path) -> Path:
    """The file below the folder of all data, packed or not; :class:`DataError` if it is not there."""
    file = folder / FILES / f"{source.repository.replace('/', '+')}__{source.name}"
    packed = file.with_name(f"{file.name}.gz")
    if not file.is_file() and not packed.is_file():
        raise DataError(f"there is no {file.name} in {str(file.parent)!r}; fetch it from {source.url}")
    return file if file.is_file() else packed


def _json(file: Path) -> Any:
    data = file.read_bytes()
    return json.loads(gzip.decompress(data) if file.suffix == ".gz" else data)


def ui_genie(folder: Path) -> list[str]:
    """The row of UI-Genie's results, which state four figures and hold a reply to the wrong steps only."""
    stated = _json(file_of(UI_GENIE._replace(name="acc.json"), folder))
    with TemporaryDirectory() as made:
        columns = judge_run(import_predictions(file_of(UI_GENIE, folder), Path(made) / "run").directory).columns()
    (judged,) = columns.judged.values()
    (found,) = columns.judged
    figures = summarise(columns, get_protocol(found), intervals=False).own
    values = {name: value.value for name, value in figures.items() if value.value is not None}
    there, here = (", ".join(f"{name} {100 * each[name]:.2f}%" for name in figures) for each in (stated, values))
    same = sum(values[name] == stated[name] for name in figures)
    verdicts = judged.counts
    rows = (
        f"{same} of {len(figures)} figures are equal in every digit. The file has no reply to the {verdicts['right']:,} right "
        f"steps, which count by its own verdict; {verdicts['wrong']:,} replies are judged, none of them right; "
        f"unparseable in both: {verdicts['unparseable']}"
    )
    return [UI_GENIE.link, UI_GENIE.benchmark, there, f"{here} under `{found}`", rows]


def page(folder: Path) -> str:
    """The whole page as text; :class:`DataError` where a file is missing."""
    heads = ["file", "benchmark", "stated", "guieval", "rows that differ, and why"]
    lines = [_line(heads), _line(["---"] * len(heads)), *(_line(compare(each, folder).cells()) for each in SOURCES)]
    return INTRODUCTION + "".join(lines) + _line(ui_genie(folder)) + NOT_SCORED + _line(WITHOUT_LABELS)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def data_folder() -> Path:
    """The folder of real data."""
    return Path(os.environ.get("GUIEVAL_SHARED_DATA", PAGE.parents[2] / "shared" / "data"))


if __name__ == "__main__":
    try:
        PAGE.write_text(page(data_folder()), encoding="utf-8")
    except DataError as error:
        sys.exit(f"reproduced: {error}")
    print(f"wrote {PAGE}")
