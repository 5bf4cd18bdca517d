"""The semi-online rollout as a state machine fed with answers: one expert trajectory, a policy's own outputs as its past.

Source: UI-S1 paper, section 3.2 and Algorithm 1. The driver (a trainer, a run over HTTP, a test) queries the policy for
:attr:`SemiOnlineRollout.task` with :attr:`SemiOnlineRollout.history` and passes the answer to :meth:`SemiOnlineRollout.tell`.
``guieval run --mode sop`` uses the same :func:`guieval.history.modes.after` and the same history entries, so a rollout has the
same prompts in training and in evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from guieval.history import HistoryEntry, acted, patched_entry, reference_entry, select
from guieval.history.modes import NO_PATCH, PatchPolicy, after, tries_again
from guieval.steps import Episode, Sample, StepTaskModel


@dataclass
class RolloutStep:
    """One step of a rollout: the policy's answer and its result.

    ``matched``: the answer was an exact match by itself. ``patched``: it was not, and later steps see the expert's action with
    ``thought`` instead; ``sample`` is still the policy's own answer, which is what is trained on. ``reward`` may be set later.
    ``payload`` is the driver's.
    """

    task: StepTaskModel
    sample: Sample
    matched: bool
    reward: float
    patched: bool
    payload: Any = None
    thought: str | None = None


class SemiOnlineRollout:
    """One rollout of ``episode``: Algorithm 1 of the UI-S1 paper, or mode sop-retry with ``tries`` (and no patches).

    ``counted`` are the indices of the steps to query, ascending (default: all); the history shows the reference for the others.
    Raises ``ValueError`` for indices that are not steps of the episode.

    As in the paper, the patch function applies at the last step too and uses a patch, but no thought is requested, since no
    later step would see it. An answer that could not be measured ends the rollout and uses no patch.

    With tries, a wrong answer that is not the last try is in :attr:`retried` and no step yet; :attr:`history` shows it, and the
    next step sees the answer that counted only.
    """

    def __init__(
        self,
        episode: Episode,
        policy: PatchPolicy = NO_PATCH,
        *,
        counted: Sequence[int] | None = None,
        tries: int | None = None,
    ) -> None:
        if tries is not None and policy.allowed:
            raise ValueError("a rollout with tries has no patches")
        self.episode = episode
        self.policy = policy
        self._counted = tuple(range(len(episode))) if counted is None else tuple(counted)
        known = range(len(episode))
        if not self._counted or list(self._counted) != sorted(set(self._counted)) or self._counted[-1] not in known:
            raise ValueError(f"steps {self._counted} are not an ascending subset of the episode's {len(episode)}")
        if self._counted[0] < 0:
            raise ValueError(f"step {self._counted[0]} is below 0")
        self.steps: list[RolloutStep] = []
        self.patches_used = 0
        self.retried: list[Sample] = []
        """The wrong answers to :attr:`task` so far; empty again once it is a step."""
        self._tries = tries
        self._history: list[HistoryEntry] = []
        self._state: Literal["ask", "patch", "over"] = "ask"
        self._catch_up()

    @property
    def state(self) -> Literal["ask", "patch", "over"]:
        """``ask``: :meth:`tell` expects an answer to :attr:`task`; ``patch``: :meth:`patch` expects a thought; ``over``."""
        return self._state

    @property
    def task(self) -> StepTaskModel:
        """The step to be asked, or the one to be patched; ``ValueError`` once the rollout is over."""
        if self._state == "over":
            raise ValueError(f"the rollout of {self.episode.key} is over")
        return self.episode.steps[self._counted[len(self.steps) - (self._state == "patch")]]

    @property
    def history(self) -> tuple[HistoryEntry, ...]:
        """The history in the prompt of :attr:`task`, oldest first: own outputs if they matched, else patches (H_t)."""
        return (*self._history, *(select("model", self.task, each) for each in self.retried if acted(each)))

    @property
    def progress(self) -> float:
        """The share of the counted steps before the first one that did not match by itself, in [0, 1]."""
        before = next((number for number, step in enumerate(self.steps) if not step.matched), len(self.steps))
        return before / len(self._counted)

    @property
    def succeeded(self) -> bool:
        """Whether every step was asked and matched by itself; a patched step does not count."""
        return len(self.steps) == len(self._counted) and all(step.matched for step in self.steps)

    def tell(self, sample: Sample, *, reward: float = 0.0, payload: Any = None) -> RolloutStep | None:
        """Record the judged answer of the policy to :attr:`task`; ``ValueError`` unless the state is ``ask``.

        ``None``: the answer is wrong, and the task is to be tried again.
        """
        if self._state != "ask":
            raise ValueError(f"the rollout of {self.episode.key} expects no answer: its state is {self._state!r}")
        task = self.task
        measured = sample.outcome.verdict != "infrastructure_failure"
        matched = measured and sample.outcome.exact_match
        wrong = [*self.retried, sample]
        if measured and not matched and tries_again([each.action for each in wrong], self._tries):
            self.retried = wrong
            return None
        self.retried = []
        follows = after(matched, self.patches_used, self.policy) if measured else "end"
        step = RolloutStep(task, sample, matched, reward, follows == "patch", payload)
        self.steps.append(step)
        if follows == "end":
            self._state = "over"
        elif follows == "advance":
            self._advance(select("model", task, sample))
        else:
            self.patches_used += 1
            self._state = "patch"
            if not self.policy.asks or len(self.steps) == len(self._counted):
                self.patch()
        return step

    def patch(self, thought: str | None = None) -> None:
        """Replace the last answer by the expert's action and ``thought``; ``ValueError`` unless the state is ``patch``."""
        if self._state != "patch":
            raise ValueError(f"the rollout of {self.episode.key} expects no patch: its state is {self._state!r}")
        step = self.steps[-1]
        step.thought = thought
        self._advance(patched_entry(step.task, thought))

    def _advance(self, entry: HistoryEntry) -> None:
        self._history.append(entry)
        self._state = "over" if len(self.steps) == len(self._counted) else "ask"
        if self._state == "ask":
            self._catch_up()

    def _catch_up(self) -> None:
        for task in self.episode.steps[len(self._history) : self._counted[len(self.steps)]]:
            self._history.append(reference_entry(task))
