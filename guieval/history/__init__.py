"""The model's history: its entries, and how a mode selects them.

Source: GUIEvalKit paper, eq. 3 (offline: reference history) and eq. 4, 5 (SOEval: the model's own action and reasoning if
its action matched exactly, else the reference); UI-S1 paper, appendix C (SOP: the model's own outputs).
The adapter writes the entries into a prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from guieval.actions import (
    Action,
    Answer,
    Ask,
    Click,
    Drag,
    Hotkey,
    LongPress,
    Open,
    Point,
    Press,
    Scroll,
    Stop,
    Type,
    Unsupported,
    Wait,
)
from guieval.steps import HistoryOrigin, Sample, StepRecord, StepTaskModel

HistorySource: TypeAlias = Literal["reference", "matched", "model", "mixed"]
"""``reference``: the label of every past step (eq. 3); ``matched``: the model's own response if exact, else the reference
(eq. 5); ``model``: always the model's own answer (or the reference, if it gave no usable response); ``mixed``: the reference,
or the model's answer in an earlier run, by a schedule (:mod:`guieval.history.mixing`; eq. 10)."""


@dataclass(frozen=True)
class HistoryEntry:
    """One past step as shown to the model.

    ``task`` has the screenshot of that step. ``action`` is in the unified space. ``thought`` and ``conclusion`` are texts
    without the model family's tags. ``raw_response`` is the model's own response, ``None`` for a reference entry.
    """

    task: StepTaskModel
    action: Action
    thought: str | None
    conclusion: str | None
    raw_response: str | None
    origin: HistoryOrigin


def reference_entry(task: StepTaskModel) -> HistoryEntry:
    """The reference's entry for a step, phi(a, o) in eq. 3: its action, and its step instruction or a description as text.

    It has no thought, since benchmarks publish none and an invented one would bias the model.
    """
    conclusion = task.low_level_instruction or describe(task.action)
    return HistoryEntry(task, task.action, None, conclusion, None, "reference")


def patched_entry(task: StepTaskModel, thought: str | None) -> HistoryEntry:
    """The entry of a patched step: the reference's, with the thought that was generated for it (UI-S1 paper, Table 5).

    Without a thought it is :func:`reference_entry`, the same entry as SOEval's for a mismatched step.
    """
    entry = reference_entry(task)
    return replace(entry, thought=thought) if thought else entry


def select(source: HistorySource, task: StepTaskModel, sample: Sample | None) -> HistoryEntry:
    """The entry that a later step sees of this one (the operator psi of eq. 5 for ``matched``).

    It is the reference's if the sample has no action of the unified space.
    """
    if sample is None or source in ("reference", "mixed"):  # an earlier run's answers are not known here
        return reference_entry(task)
    if source == "matched" and not sample.outcome.exact_match:
        return reference_entry(task)
    if not acted(sample):
        return reference_entry(task)
    assert sample.action is not None
    return HistoryEntry(task, sample.action, sample.thought, sample.conclusion, sample.raw_response, "model")


def acted(sample: Sample) -> bool:
    """Whether a response has an action of the unified space, which a history can show."""
    return sample.action is not None and not isinstance(sample.action, Unsupported)


def recalled(source: HistorySource, task: StepTaskModel, record: StepRecord) -> HistoryEntry:
    """The entry that a later step sees of a recorded one: its patch if there is one, else as :func:`select`."""
    if record.patch is not None:
        return patched_entry(task, record.patch.thought)
    return select(source, task, record.sample)


def reference_history(past: Sequence[StepTaskModel]) -> tuple[HistoryEntry, ...]:
    """The reference's entries for past steps (eq. 3)."""
    return tuple(reference_entry(task) for task in past)


def describe(action: Action) -> str:
    """A fixed English imperative sentence for an action, for steps whose benchmark has no text."""
    match action:
        case Click():
            return f"Click at {_place(action.point)}."
        case LongPress():
            return f"Long press at {_place(action.point)}."
        case Scroll():
            return f"Swipe {action.direction}."
        case Type():
            return f"Type {action.text!r}."
        case Open():
            return f"Open the app {action.app!r}."
        case Press():
            return f"Press the {action.button.lower()} button."
        case Wait():
            return "Wait."
        case Stop():
            return "Finish the task." if action.status == "finish" else "Report that the task is impossible."
        case Unsupported():
            return f"{action.name}."


def in_words(action: Action | None) -> str:
    """An execution in plain words."""
    if action is None:
        return "a response without an action"
    if not isinstance(action, Unsupported):
        return describe(action)
    match action.device:
        case None:
            return f"{action.name}, which is not an action of the unified space"
        case Hotkey():
            return f"Press {'+'.join(action.device.keys)}."
        case Drag(start=start, end=end):
            return f"Drag {'' if start is None else f'from {_place(start)} '}to {_place(end)}."
        case Answer() | Ask():
            return f"{action.device.type.capitalize()} {action.device.text!r}."
        case _:
            return f"{action.device.type.replace('_', ' ').capitalize()} at {_place(action.device.point)}."


def _place(point: Point) -> str:
    return f"({point.x:.0f}, {point.y:.0f})"
