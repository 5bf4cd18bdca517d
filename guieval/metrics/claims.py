"""False completion and over-refusal: of the responses that end a task, those that end it wrongly, on either side.

A model claims too much if it stops a task as finished that is not, and too little if it stops one as impossible that can be
done. Either is a share of the claims of its kind: of all steps or tasks it would be low for a model that never stops. Recorded
steps know by their reference actions (an accepted alternative counts too), tasks by their environment's score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from guieval.actions import Action, Stop, StopStatus
from guieval.metrics.columns import Judged, RunColumns
from guieval.metrics.intervals import Floats
from guieval.metrics.registry import UserMetric
from guieval.steps import StepTaskModel


@dataclass(frozen=True)
class Claim:
    """A kind of stop, the metric of those that are wrong, and what that is over in words."""

    status: StopStatus
    metric: str
    wrong: str
    of: str

    @property
    def meaning(self) -> str:
        return f"of those that the model {self.of}, the share that {self.wrong}"


FALSE_COMPLETION = Claim("finish", "false completion", "are not done", "stopped as finished")
OVER_REFUSAL = Claim("impossible", "over-refusal", "can be done", "stopped as impossible")
CLAIMS = (FALSE_COMPLETION, OVER_REFUSAL)
_CODES: Mapping[StopStatus, int] = {claim.status: 2 * place + 1 for place, claim in enumerate(CLAIMS)}


def claim_code(task: StepTaskModel, action: Action | None) -> int:
    """What a response to a step claims, as in :attr:`guieval.metrics.columns.RunColumns.claims`: 0 if it does not stop."""
    if not isinstance(action, Stop):
        return 0
    accepted = (task.action, *task.alternatives)
    return _CODES[action.status] + all(not isinstance(each, Stop) or each.status != action.status for each in accepted)


def of_steps(columns: RunColumns, judged: Judged) -> list[UserMetric]:
    """The metrics of the claims that any of the steps makes."""
    return [] if columns.claims is None else [_METRICS[claim] for claim in CLAIMS if _claimed(columns, judged, claim).any()]


def _claimed(columns: RunColumns, judged: Judged, claim: Claim) -> Floats:
    """(n,) 1 for the steps that make a claim, right or wrong."""
    assert columns.claims is not None
    code = _CODES[claim.status]
    return (np.isin(columns.claims, (code, code + 1)) & judged.measured).astype(np.float64)


def _metric(claim: Claim) -> UserMetric:
    def compute(columns: RunColumns, judged: Judged) -> tuple[Floats, Floats]:
        claimed = _claimed(columns, judged, claim)
        return claimed * (columns.claims == _CODES[claim.status] + 1), claimed

    return UserMetric(claim.metric, compute, "share", "less", f"steps {claim.of}")


_METRICS = {claim: _metric(claim) for claim in CLAIMS}
