"""Other evaluations' predictions files, read in unified terms, to become runs (:mod:`guieval.exchange.importing`).

To add a format, write a module with a :class:`Format` and name it in :data:`FORMATS`. Formats yield :class:`Predicted`
answers; many files hold the labels too, so that they can be scored alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from guieval.actions import Unsupported, action_from_json
from guieval.errors import BOXES_DIVIDED, DataError, UsageError, known_name
from guieval.exchange.predictions import every_eval_ever, grounding, guievalkit, inspect_log, os_atlas, peers
from guieval.exchange.predictions.guicourse import GUICOURSE
from guieval.exchange.predictions.mapped import mapped_format
from guieval.exchange.predictions.predicted import Format, Predicted, PredictedTask, Rows
from guieval.exchange.predictions.rows import PredictionRow, open_rows
from guieval.exchange.predictions.ui_genie import UI_GENIE
from guieval.steps import StepKey, StepTaskModel

__all__ = ["FORMATS", "Format", "Predicted", "Predictions", "detect_format", "get_format", "read_predictions"]

NAMED = 5
"""How many rows with another label than the benchmark's an error names."""
_OWN_FIELDS = frozenset({"subset", "episode_id", "step_index", "action", "response"})


def _own(row: PredictionRow) -> Predicted:
    for field in row.values:
        if field not in _OWN_FIELDS:
            labels = f": a row has a response and no labels; there boxes {BOXES_DIVIDED}" if field == "boxes" else ""
            raise row.error(field, f"is none of {', '.join(sorted(_OWN_FIELDS))}{labels}")
    key = ("", row.text("subset") if "subset" in row.values else "", row.text("episode_id"), row.whole("step_index"))
    if len({"action", "response"} & row.values.keys()) != 1:
        raise row.error("action", "a prediction has either an action (null: the response held none) or a response")
    if "response" in row.values:
        return Predicted(*key, response=row.text("response"))
    given = row.values["action"]
    if given is None:
        return Predicted(*key, reason="there is no answer")
    return Predicted(*key, row.build("action", lambda: action_from_json(given)))


def _refuse_ui_s1(rows: Rows, steps: Iterable[StepTaskModel]) -> NoReturn:
    """Refuse UI-S1's result files (X-PLUG/MobileAgent ``UI-S1/evaluation/eval_*.py``) with their own two metrics.

    They keep how far each episode went but no answer. Progress is the mean of ``final_step_id / num_steps`` over episodes;
    ``final_step_id`` is the number of steps before the first mismatch; success is the share of ``task_success``.
    """
    episodes, progress, successes = 0, 0.0, 0
    for row in rows():
        length = row.whole("num_steps", 1)
        reached = row.whole("final_step_id")
        if reached > length:
            raise row.error("final_step_id", f"expected no more than the episode's {length} steps, got {reached!r:.80}")
        episodes += 1
        progress += reached / length
        successes += row.value("task_success") is True
    if not episodes:
        raise UsageError("a result file of UI-S1 keeps no answers, so it cannot be scored")
    raise UsageError(
        "a result file of UI-S1 keeps how far each episode went but no answers, so it cannot be scored again; by its own "
        f"count, progress is {progress / episodes:.4f} and success {successes / episodes:.4f} over {episodes:,} episodes"
    )


OWN = Format(
    "guieval",
    "guieval's own JSON lines, see docs/exchange/predictions.md",
    frozenset({"episode_id", "step_index"}),
    lambda rows, steps: _own,
    one_of=frozenset({"action", "response"}),
)
"""The rows that other tools should write; documented in docs/exchange/predictions.md.

``subset`` ("") is needed if the benchmark has subsets. ``action`` is a unified action, [0, 1000] per axis, or null if the
response held none; in its place ``response`` is the response as the model gave it, which the model's adapter reads when the
file is scored.
"""
UI_S1 = Format(
    "ui-s1",
    "UI-S1's results: recognised, but they keep no answers to score",
    frozenset({"goal", "num_steps", "task_success", "final_step_id"}),
    _refuse_ui_s1,
)
FORMATS: dict[str, Format] = {
    form.name: form
    for form in (
        OWN,
        guievalkit.GUIEVALKIT,
        guievalkit.AGENTCPM,
        os_atlas.OS_ATLAS,
        UI_S1,
        *grounding.FORMATS,
        os_atlas.KAIROS,
        guievalkit.LZ_DONG,
        every_eval_ever.EVERY_EVAL_EVER,
        inspect_log.INSPECT,
        *peers.FORMATS,
        UI_GENIE,
        GUICOURSE,
    )
}


@dataclass(frozen=True)
class Predictions:
    """A file that was read: its answers to steps, or outcomes of tasks, in the file's order, and what was left out.

    ``repeated`` counts rows that repeat another row's answer, ``unanswered`` those of which the source kept no answer (such a
    step counts as not run); ``skipped`` are the damaged rows, if they were to be skipped. ``assumed`` are sentences on what
    such files leave open and how it is read.
    """

    format: str
    rows: tuple[Predicted, ...]
    tasks: tuple[PredictedTask, ...] = ()
    repeated: int = 0
    unanswered: int = 0
    skipped: tuple[DataError, ...] = ()
    assumed: tuple[str, ...] = ()

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """The benchmarks whose steps the answers are to, in the file's order; empty if it names none."""
        return tuple(dict.fromkeys(row.benchmark for row in self.rows if row.benchmark))

    @property
    def differing(self) -> tuple[Predicted, ...]:
        """The answers whose rows state another label than the benchmark, whose own label decides."""
        return tuple(row for row in self.rows if row.differs)

    def differences(self, most: int) -> str:
        """The first ``most`` steps of :attr:`differing`, each with what its row states, and how many more there are."""
        steps = [f"{row.episode_id} ({row.differs})" for row in self.differing]
        return ", ".join(steps[:most]) + (f" and {len(steps) - most:,} more" if len(steps) > most else "")

    def refuse_other_labels(self, file: Path) -> None:
        """Raise :class:`UsageError` naming the steps whose rows state another target than the benchmark's label."""
        if self.differing:
            raise UsageError(
                f"{str(file)!r} answers another edition than the data's: {len(self.differing):,} of {len(self.rows):,} rows "
                f"state another target than the benchmark: {self.differences(NAMED)}; --anyway takes the benchmark's labels"
            )

    @property
    def episodes(self) -> int:
        return len({row.key[:3] for row in self.rows})

    @property
    def unparseable(self) -> Counter[str]:
        """How many answers hold no action, by the reason."""
        without = (row for row in self.rows if row.action is None and row.response is None)
        return Counter(row.reason for row in without if not row.right_under)

    @property
    def unkept(self) -> Counter[str]:
        """How many right answers the source did not keep, by the protocol under which they are right."""
        return Counter(row.right_under for row in self.rows if row.right_under)

    @property
    def unsupported(self) -> Counter[str]:
        """How many answers the unified space has no word for, by their name."""
        return Counter(row.action.name for row in self.rows if isinstance(row.action, Unsupported))


def get_format(name: str) -> Format:
    """The format called ``name``; :class:`UsageError` with the nearest name when there is none."""
    return FORMATS[known_name("format", name, FORMATS)]


def detect_format(file: Path) -> Format:
    """The one format whose file this looks like, by its first whole row.

    Raises :class:`UsageError` if no format, or more than one, takes it for its own, :class:`DataError` for an unreadable
    file.
    """
    damaged: DataError | None = None
    for first in open_rows(file):
        if isinstance(first, PredictionRow):
            break
        damaged = damaged or first
    else:
        raise damaged or DataError(f"{file}: has no row")
    matching = [form for form in FORMATS.values() if form.recognises(first.values)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        names = " and ".join(repr(form.name) for form in matching)
        raise UsageError(f"{str(file)!r} may be of the formats {names}; choose one with --format")
    fields = ", ".join(map(repr, first.values))
    raise UsageError(
        f"{str(file)!r} is of no known format ({', '.join(FORMATS)}); its first row has the fields {fields:.400}: say "
        "with --map which is what, as in --map id=FIELD,point=FIELD,frame=pixels"
    )


def read_predictions(
    file: Path,
    format: str | None = None,
    *,
    mapping: Mapping[str, str] | None = None,
    steps: Iterable[StepTaskModel] = (),
    skip_damaged: bool = False,
    repeats: bool = True,
) -> Predictions:
    """Every answer of a predictions file; ``format`` names how it is written (default: what its first row looks like).

    ``mapping`` says instead which field is what (:mod:`.mapped`).
    ``steps`` are the benchmark's, for files that name no step themselves (ScreenSpot-Pro's). Raises :class:`UsageError` for a
    format that is unknown, ambiguous or unreadable, and :class:`DataError` naming file, row and field for a
    damaged row or a step that has two different answers (without ``repeats``: or the same answer twice), which ``skip_damaged``
    leaves out and counts instead.
    """
    chosen = mapped_format(mapping) if mapping else detect_format(file) if format is None else get_format(format)
    read = chosen.reader(lambda: _whole(file), steps)
    answers: dict[tuple[str, str, str, int], Predicted | PredictedTask] = {}
    skipped: list[DataError] = []
    repeated = unanswered = 0
    for row in open_rows(file):
        try:
            if isinstance(row, DataError):
                raise row
            answer = read(row)
            if answer is None:
                unanswered += 1
                continue
            if repeats and answers.get(answer.key) == answer:
                repeated += 1
                continue
            if answer.key in answers:
                raise row.error("(whole row)", f"{StepKey(*answer.key)} is answered twice")
        except DataError as error:
            if not skip_damaged:
                raise
            skipped.append(error)
            continue
        answers[answer.key] = answer
    if not answers and not unanswered and not skipped:
        raise DataError(f"{file}: has no row")
    rows = tuple(row for row in answers.values() if isinstance(row, Predicted))
    tasks = tuple(row for row in answers.values() if isinstance(row, PredictedTask))
    if rows and tasks:
        raise DataError(f"{file}: has responses to steps and outcomes of tasks; keep the rows of one kind")
    return Predictions(chosen.name, rows, tasks, repeated, unanswered, tuple(skipped), chosen.assumed)


def _whole(file: Path) -> Iterator[PredictionRow]:
    return (row for row in open_rows(file) if isinstance(row, PredictionRow))
