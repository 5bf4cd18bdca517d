"""Quotas: how many steps of which kind a selection takes.

Written ``KEY=N``. The key's parts are joined by ``+``, and a step fits when it fits them all:

- ``SCROLL``, an action type, or ``BACK``, a button of PRESS;
- ``element:icon``, the value of a label;
- ``action`` or ``element``, a label without its value: N for *each* value that occurs (PRESS counted by its buttons).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from guieval.actions import ACTION_TYPES, BUTTONS
from guieval.analysis.data_selection.candidates import Candidate
from guieval.errors import UsageError, nearest

ACTION = "action"
"""The label under which a quota counts action types."""
KINDS = (*ACTION_TYPES, *BUTTONS)
"""What actions can be called in a quota."""


@dataclass(frozen=True)
class Quota:
    """``count`` steps of one kind: an action type or button (``None``: any) and the values of labels.

    ``each`` names the labels of which every value that occurs has the quota for itself.
    """

    count: int
    kind: str | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    each: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [self.kind] if self.kind else []
        parts += [f"{name}:{value}" for name, value in self.groups.items()]
        return "+".join([*parts, *self.each])

    def fits(self, step: Candidate) -> bool:
        """Whether a step is of the kind; it must have the labels of ``each``, with any value."""
        if self.kind is not None and self.kind not in (step.type, step.button):
            return False
        if any(step.groups.get(name) != value for name, value in self.groups.items()):
            return False
        return all(name == ACTION or name in step.groups for name in self.each)

    def cells(self, steps: Iterable[Candidate]) -> list[Quota]:
        """The quota of each value that occurs among ``steps``, in the values' order; itself when it is one already."""
        if not self.each:
            return [self]
        found = {tuple(label(step, name) for name in self.each) for step in steps if self.fits(step)}
        return [self._cell(values) for values in sorted(found)]

    def _cell(self, values: tuple[str, ...]) -> Quota:
        named = dict(zip(self.each, values, strict=True))
        kind = named.pop(ACTION, self.kind)
        return Quota(self.count, kind, {**self.groups, **named})


def label(step: Candidate, name: str) -> str:
    """The value of a step's label, empty where it has none; of ``action`` its button, else its type."""
    return (step.button or step.type) if name == ACTION else step.groups.get(name, "")


def read_quota(text: str, labels: Sequence[str]) -> Quota:
    """A quota as written, ``KEY=N``; ``labels`` are those that the steps have.

    Raises :class:`UsageError` for another form, a count below 1, an unknown action or label, and an action named twice.
    """
    key, separator, number = text.rpartition("=")
    if not separator or not key or not (number.isascii() and number.isdigit()) or int(number) < 1:
        raise UsageError(f"a quota is written KEY=N with N at least 1, like SCROLL=5 or element:icon=50, got {text!r}")
    kind: str | None = None
    groups: dict[str, str] = {}
    each: list[str] = []
    known = (ACTION, *labels)
    for part in key.split("+"):
        name, colon, value = part.partition(":")
        if part in KINDS:
            if kind is not None:
                raise UsageError(f"the quota {text!r} names the actions {kind} and {part}, and no step has both")
            kind = part
        elif name not in known or (colon and name == ACTION):
            raise UsageError(
                f"the quota {text!r} asks for {part!r}, which is not an action and no label of these steps"
                f"{nearest(part, [*KINDS, *known])}; actions: {', '.join(KINDS)}; labels: {', '.join(known)}"
            )
        elif colon:
            groups[name] = value
        else:
            each.append(name)
    if kind is not None and ACTION in each:
        raise UsageError(f"the quota {text!r} names the action {kind} and every action at once; leave one of them out")
    return Quota(int(number), kind, groups, tuple(each))
