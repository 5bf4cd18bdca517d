"""Modes of evaluation: two independent switches and the presets with the published names.

A mode that stops at a mismatch can have patches (:class:`PatchPolicy`): the Patch Module of semi-online rollouts (UI-S1
paper, section 3.3 and Algorithm 1). :func:`after` alone decides what follows a mismatch, for runs, metrics and training; in a
mode with several tries :func:`tries_again` decides before whether the step is a mismatch yet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar, get_args

from guieval.actions import Action, Stop, Wait
from guieval.errors import UsageError, known_name
from guieval.history import HistorySource

StopPolicy: TypeAlias = Literal["never", "first-mismatch"]
PatchMethod: TypeAlias = Literal["none", "thought-free", "off-policy", "on-policy"]
"""How later steps see a mismatched one: not at all (the rollout ends), as the expert's action only, or with a thought that an
auxiliary model (``off-policy``) or the policy itself (``on-policy``) generated. Source: UI-S1 paper, Table 5."""
PATCH_METHODS: tuple[PatchMethod, ...] = get_args(PatchMethod)
AfterStep: TypeAlias = Literal["advance", "patch", "end"]
Kind: TypeAlias = Literal["steps", "tasks"]
"""What a run is over: recorded steps, or tasks in an environment."""
_Choice = TypeVar("_Choice")


@dataclass(frozen=True)
class PatchPolicy:
    """How mismatches are patched, and how many per episode; ``budget`` is epsilon of Algorithm 1, ``None`` without limit.

    Method ``none`` and budget 0 are the same: the episode ends at its first mismatch. Raises :class:`UsageError` for an
    unknown method or a budget below 0.
    """

    method: PatchMethod = "none"
    budget: int | None = 0

    def __post_init__(self) -> None:
        known_name("patch method", self.method, PATCH_METHODS)
        if self.budget is not None and (type(self.budget) is not int or self.budget < 0):
            raise UsageError(f"the patch budget is {self.budget!r}: expected a whole number from 0, or unlimited")

    @property
    def allowed(self) -> float:
        """The number of mismatches of an episode that are patched, ``inf`` without limit."""
        if self.method == "none":
            return 0
        return math.inf if self.budget is None else self.budget

    @property
    def asks(self) -> bool:
        """Whether patches need a generated thought."""
        return self.method in ("off-policy", "on-policy") and self.allowed > 0

    @property
    def label(self) -> str:
        """The policy in a few characters, e.g. ``thought-free:1``; empty without patches."""
        return f"{self.method}:{'unlimited' if self.budget is None else self.budget}" if self.allowed else ""


NO_PATCH = PatchPolicy()


def after(exact: bool, patches_used: int, policy: PatchPolicy) -> AfterStep:
    """The consequence of a judged step, by Algorithm 1 of the UI-S1 paper; ``patches_used`` is c before the step.

    ``advance``: a match, and the model's own output is remembered. ``patch``: a mismatch, and the expert's action replaces
    it. ``end``: a mismatch, and no patch is left.
    """
    if exact:
        return "advance"
    return "patch" if patches_used < policy.allowed else "end"


TRIES = 3
"""The tries of a mode with several, if the run sets no other number."""


def tries_again(wrong: Sequence[Action | None], tries: int | None) -> bool:
    """Whether a step is queried again on the same screen after ``wrong`` responses, none of them exact, in order.

    After ``tries`` wrong responses the step is wrong. A wait leaves the screen as it is and is forgiven, up to ``tries`` times
    a step; a stop ends the task, and so the tries. ``None`` for an action: the response has none. ``None`` for ``tries``: the
    mode has one response a step.
    """
    if tries is None or any(isinstance(action, Stop) for action in wrong):
        return False
    waits = sum(isinstance(action, Wait) for action in wrong)
    return len(wrong) - min(waits, tries) < tries


@dataclass(frozen=True)
class Mode:
    """The history that a step sees, and when an episode ends before its reference does."""

    name: str
    history: HistorySource
    stop: StopPolicy
    summary: str
    patch: PatchPolicy = NO_PATCH
    fixed_thoughts: bool = False
    """Whether the model's thought is given at every step (GUIEvalKit paper, appendix E)."""
    tries: int | None = None
    """Wrong responses to a step's screen after which the step is a mismatch (:func:`tries_again`); ``None``: the first one."""
    run_kind: Kind = "steps"
    """What runs are over. Nothing else reads it: what differs by it is in tables, see :meth:`of_kind`."""

    recorded: bool = False
    """Whether tasks are acted in on recorded screens, so that every benchmark has them, and not in an environment."""

    @property
    def sequential(self) -> bool:
        """Whether a step must wait for the answer to the previous one."""
        return self.history not in ("reference", "mixed") or self.stop != "never"

    @property
    def mismatches(self) -> float:
        """The number of mismatches after which the next one ends the episode: ``inf`` in a mode that never stops."""
        return math.inf if self.stop == "never" else self.patch.allowed

    @property
    def label(self) -> str:
        """Distinguishes runs: the name, and after a ``+`` the patches, the tries, ``mixed`` or ``fixed-thoughts``."""
        mixed, thoughts = "mixed" * (self.history == "mixed"), "fixed-thoughts" * self.fixed_thoughts
        tries = "" if self.tries is None else f"tries:{self.tries}"
        return "+".join(filter(None, (self.name, self.patch.label, tries, mixed, thoughts)))

    def is_over(self, kind: Kind) -> bool:
        """Whether runs in this mode are over steps, or over tasks."""
        return self.run_kind == kind

    def of_kind(self, choices: Mapping[Kind, _Choice]) -> _Choice:
        """What belongs to runs of this mode's kind."""
        return choices[self.run_kind]

    def mixed(self) -> Mode:
        """This mode with a mixed history; :class:`UsageError` for a sequential mode."""
        if self.sequential:
            raise UsageError(f"mode {self.name!r} has a history of its own; a mixed one is for --mode offline")
        return replace(self, history="mixed")

    def patched(self, policy: PatchPolicy) -> Mode:
        """This mode with patches; :class:`UsageError` for a mode that never stops."""
        if policy.allowed and self.stop == "never":
            raise UsageError(
                f"mode {self.name!r} continues after a mismatch anyway, so it takes no patch; --patch is for --mode sop"
            )
        if policy.allowed and self.tries is not None:
            raise UsageError(f"mode {self.name!r} tries a mismatched step again and takes no patch; --patch is for --mode sop")
        return replace(self, patch=policy if policy.allowed else NO_PATCH)

    def with_tries(self, tries: int | None) -> Mode:
        """This mode with another number of tries, if given; :class:`UsageError` for a mode with one response a step."""
        if tries is None:
            return self
        if self.tries is None:
            raise UsageError(f"mode {self.name!r} has one response a step and takes no tries; --tries is for --mode sop-retry")
        return replace(self, tries=tries)

    def with_fixed_thoughts(self) -> Mode:
        """This mode with given thoughts; :class:`UsageError` if a step without one would end its episode."""
        if self.stop != "never":
            raise UsageError(
                f"--fixed-thoughts leaves out steps without a thought, and an episode of mode {self.name!r} cannot continue "
                "after one: use --mode offline or soeval"
            )
        return replace(self, fixed_thoughts=True)

    def to_json(self) -> dict[str, Any]:
        """The manifest's entry; ``patch``, ``tries`` and ``fixed_thoughts`` only if used."""
        options: dict[str, Any] = {"patch": asdict(self.patch)} if self.patch.allowed else {}
        options |= {} if self.tries is None else {"tries": self.tries}
        options |= {"fixed_thoughts": True} if self.fixed_thoughts else {}
        return {"name": self.name, "history": self.history, "stop": self.stop, **options}


MODES: dict[str, Mode] = {
    mode.name: mode
    for mode in (
        Mode("offline", "reference", "never", "every step on the reference trajectory (GUIEvalKit 3.3.1, eq. 3)"),
        Mode(
            "soeval",
            "matched",
            "never",
            "history has the model's own thought and action if it was right, else the reference (GUIEvalKit eq. 4, 5)",
        ),
        Mode("sop", "model", "first-mismatch", "the model's own history, stopped at the first mismatch (UI-S1 appendix C)"),
        Mode(
            "sop-retry",
            "model",
            "first-mismatch",
            "sop, with several tries at each screen, waits forgiven (--tries, 3)",
            tries=TRIES,
        ),
        Mode(
            "graph",
            "model",
            "never",
            "the model acts in a graph of recorded screens, or on each episode as a path",
            run_kind="tasks",
            recorded=True,
        ),
        Mode("online", "model", "never", "the model acts in an environment, which judges the end state", run_kind="tasks"),
    )
}


def get_mode(name: str) -> Mode:
    """The preset called ``name``; :class:`UsageError` with the nearest name for an unknown one."""
    return MODES[known_name("mode", name, MODES)]
