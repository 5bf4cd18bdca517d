"""Reads a run for the viewer: episode by episode in plan order, with every step judged under all shown protocols.

Two passes over the journal: the first records the offset of every step's record, the second reads them in plan order. So only
one episode is in memory at a time, plus a few bytes per step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator, get_protocol, list_protocols
from guieval.journal import RunFolder
from guieval.journal.run_folders import open_folder
from guieval.scoring.matrix import ALL
from guieval.steps import EpisodeKey, StepOutcome, StepRecord, Verdict

Prompter: TypeAlias = Callable[[StepRecord, Mapping[int, StepRecord]], tuple[str, str]]
"""Rebuilds a step's prompt from its record and the records of its episode by step: (text, note). If that is impossible, the
text is empty and the note gives the reason."""

RIGHT, MISS, WRONG_TYPE, UNPARSEABLE, UNSUPPORTED, FAILED, NOT_REACHED, NOT_RUN, ABSENT = range(9)
"""How a step ended, in more detail than its verdict: ``MISS`` is wrong with the right type, ``WRONG_TYPE`` wrong without;
``ABSENT`` is a step that the run never planned (only of the run it is compared with)."""
_CODES: dict[Verdict, int] = {
    "right": RIGHT,
    "unparseable": UNPARSEABLE,
    "unsupported": UNSUPPORTED,
    "infrastructure_failure": FAILED,
}
MOST_SAMPLES = 64
"""Number of a step's samples that the page shows in full; decisions use all of them."""


@dataclass(frozen=True)
class SeenStep:
    """A step of one run. ``ends``: one code per protocol. ``outcomes``: for every shown sample, one outcome per protocol."""

    ends: tuple[int, ...]
    record: StepRecord | None = None
    outcomes: tuple[tuple[StepOutcome, ...], ...] = ()


def walk(
    run: RunFolder,
    key: EpisodeKey,
    known: Mapping[int, StepRecord],
    evaluators: Sequence[ActionEvaluator],
    samples: int | None = MOST_SAMPLES,
) -> dict[int, SeenStep]:
    """The planned steps of an episode with their results; ``known`` are its records, ``samples`` limits those judged.

    In a mode that stops at the first mismatch, the steps after the first measured mismatch are not reached, for every
    protocol separately, even if a record exists; with patches, the steps after the first mismatch without a patch.
    """
    allowed = run.manifest.mode.mismatches
    stopped = [False] * len(evaluators)
    mismatches = [0] * len(evaluators)
    seen: dict[int, SeenStep] = {}
    for index in run.plan.get(key, ()):
        record = known.get(index)
        if record is None:
            seen[index] = SeenStep(tuple(NOT_REACHED if ended else NOT_RUN for ended in stopped))
            continue
        shown = record.samples[:samples]
        outcomes = tuple(tuple(evaluator.rescore(record.task, sample) for evaluator in evaluators) for sample in shown)
        codes = []
        for place, outcome in enumerate(outcomes[0]):
            codes.append(NOT_REACHED if stopped[place] else code_of(outcome))
            measured = outcome.verdict != "infrastructure_failure"
            mismatches[place] += measured and not outcome.exact_match
            stopped[place] = mismatches[place] > allowed
        seen[index] = SeenStep(tuple(codes), record, outcomes)
    return seen


def code_of(outcome: StepOutcome) -> int:
    """The number by which the viewer knows the verdict; a wrong answer of the right type has its own."""
    if outcome.verdict == "wrong":
        return MISS if outcome.type_match else WRONG_TYPE
    return _CODES[outcome.verdict]


def shown_run(directory: Path) -> RunFolder:
    """The run, or rollout, to report; :class:`UsageError` if there is no run or it has no records."""
    run = open_folder(directory)
    for part in (run, *run.further):
        if not part.offsets:
            raise UsageError(f"the run {str(part.directory)!r} has no step of its plan yet, so there is nothing to show")
    return run


def protocols_to_show(run: RunFolder, names: Sequence[str]) -> list[str]:
    """The protocols of a report: those named, by default the run's own; ``all`` means all protocols of the data set.

    Raises :class:`UsageError` for an unknown name.
    """
    chosen: dict[str, None] = {}
    for name in names or (run.protocol,):
        if name == ALL:
            chosen.update(dict.fromkeys((run.protocol, *list_protocols(run.dataset))))
        else:
            chosen[get_protocol(name).name] = None
    return list(chosen)
