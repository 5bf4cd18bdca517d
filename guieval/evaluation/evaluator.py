"""Judges one answer to one step under a named protocol: the same call for evaluation, re-scoring and rewards.

It turns the rules' judgement into a :class:`StepOutcome` and keeps the five verdicts apart. Pure: no input or output, no
state, no cache between calls.
"""

from __future__ import annotations

from guieval.actions import Action, Unsupported
from guieval.evaluation.judgement import Judgement
from guieval.evaluation.protocol import Protocol
from guieval.evaluation.protocols import get_protocol
from guieval.steps import Sample, StepOutcome, StepTaskModel


class ActionEvaluator:
    """A protocol, given as such or by name, applied to single steps. Raises :class:`UsageError` for an unknown name."""

    def __init__(self, protocol: str | Protocol) -> None:
        self.protocol = get_protocol(protocol) if isinstance(protocol, str) else protocol

    def evaluate(self, task: StepTaskModel, action: Action | None) -> StepOutcome:
        """Judge ``action`` as the answer to ``task``; ``None`` is a response that had no action.

        If the step accepts several actions, the best judgement counts: an exact match before a type match before none,
        and among equals the one nearest to its target. An :class:`Unsupported` action is compared with the accepted ones that
        are outside the unified space too; if there is none, its verdict is ``unsupported``, unless its type is known.
        """
        if action is None:
            return StepOutcome(verdict="unparseable", reason="the response has no action")
        comparable = any(isinstance(accepted, Unsupported) for accepted in (task.action, *task.alternatives))
        if isinstance(action, Unsupported) and action.known is None and not comparable:
            return StepOutcome(
                verdict="unsupported", reason=f"the action {action.name!r:.80} is outside the unified action space"
            )
        best = self.judge(task, action)
        return StepOutcome(
            verdict="right" if best.exact_match else "wrong",
            type_match=best.type_match,
            exact_match=best.exact_match,
            distance=best.distance,
            text_similarity=best.text_similarity,
            reason=best.reason,
        )

    def rescore(self, task: StepTaskModel, sample: Sample) -> StepOutcome:
        """The outcome of a recorded sample: the recorded one if it was not answered, else that of its action.

        A response that its source found right and did not keep is right under that protocol, and missing under any other.
        """
        if not sample.right_under:
            return self.evaluate(task, sample.action) if sample.answered else sample.outcome
        if sample.right_under == self.protocol.name:
            return StepOutcome(verdict="right", type_match=True, exact_match=True, reason="the verdict of the source")
        return infrastructure_failure(f"the response was not kept, only that it is right under {sample.right_under}")

    def judge(self, task: StepTaskModel, action: Action) -> Judgement:
        """Compare ``action`` with each accepted action and return the best judgement: :meth:`evaluate` without the verdict."""
        rules = self.protocol.rules_for(task.dataset)
        best = rules.judge(task, task.action, action)
        for alternative in task.alternatives:
            best = max(best, rules.judge(task, alternative, action), key=_rank)  # the first of equals stays
        return best


def _rank(judgement: Judgement) -> tuple[bool, bool, float]:
    distance = judgement.distance
    return judgement.exact_match, judgement.type_match, float("-inf") if distance is None else -distance


def infrastructure_failure(message: str) -> StepOutcome:
    """The outcome of a step that got no answer from the model; ``message`` gives the reason in one sentence."""
    return StepOutcome(verdict="infrastructure_failure", reason=message)
