"""Success rates that carry the judge's error: corrected by its measured sensitivity and specificity.

Sources: W. Rogan, B. Gladen, "Estimating prevalence from the results of a screening test", Am. J. Epidemiol. 107 (1978), the
estimate; Z. Lang, J. Reiczigel, "Confidence limits for prevalence of disease adjusted for estimated sensitivity and
specificity", Prev. Vet. Med. 113 (2014), the interval, which contains the doubt of all three shares.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from guieval.metrics.intervals import LEVEL, Floats, Interval, quantile
from guieval.metrics.measured import Measured
from guieval.studies.judges.agreement import OF, LabelsAndVerdicts, independent, share

LEAST = 1.1
"""Sensitivity and specificity of a judge add up to 1 if it guesses; up to this sum nothing can be corrected."""


def estimate(judged: float, sensitivity: float, specificity: float) -> float:
    """The success rate behind the share ``judged`` that a judge calls successes, in [0, 1] (Rogan and Gladen)."""
    return min(1.0, max(0.0, (judged + specificity - 1) / (sensitivity + specificity - 1)))


def ends(judged: Floats, n: float, sensitivity: Floats, n1: float, specificity: Floats, n0: float) -> tuple[Floats, Floats]:
    """Both ends of the interval of :func:`estimate`: ``judged`` over n trajectories, the judge's ``sensitivity`` over n1
    labelled successes, its ``specificity`` over n0 labelled failures (Lang and Reiczigel); arrays of one shape."""
    z = quantile(LEVEL)
    q, all = (n * judged + z**2 / 2) / (n + z**2), n + z**2
    hit, hits = (n1 * sensitivity + 1) / (n1 + 2), n1 + 2
    miss, misses = (n0 * specificity + 1) / (n0 + 2), n0 + 2
    slope = hit + miss - 1
    middle = (q + miss - 1) / slope
    of_hit, of_miss = hit * (1 - hit) / hits, miss * (1 - miss) / misses
    shift = 2 * z**2 * (middle * of_hit - (1 - middle) * of_miss)
    error = np.sqrt(q * (1 - q) / all + middle**2 * of_hit + (1 - middle) ** 2 * of_miss) / slope
    return np.clip(middle + shift - z * error, 0, 1), np.clip(middle + shift + z * error, 0, 1)


def corrected(run: LabelsAndVerdicts, labelled: LabelsAndVerdicts) -> Measured:
    """The success rate of a run's trajectories from a judge's verdicts on them and on ``labelled`` ones.

    Without a value if it hardly differs from guessing (:data:`LEAST`), or labels are all alike. Right if the judge errs on
    the run as on the labelled trajectories. Trajectories of one task count for less, as far as they are alike.
    """
    label, said = labelled.label, labelled.said
    sensitivity, specificity = share(labelled, label & said, label), share(labelled, ~label & ~said, ~label)
    judged = share(run, run.said)
    if judged.value is None or sensitivity.value is None or specificity.value is None:
        return Measured(None, 0, OF, missing=run.missing)
    if sensitivity.value + specificity.value <= LEAST:
        return Measured(None, 0, OF, missing=run.missing)
    value = estimate(judged.value, sensitivity.value, specificity.value)
    sizes = (independent(run.task, run.said), _worth(labelled, label), _worth(labelled, ~label))
    low, high = ends(
        np.array(judged.value), sizes[0], np.array(sensitivity.value), sizes[1], np.array(specificity.value), sizes[2]
    )
    interval = Interval(min(float(low), value), max(float(high), value), LEVEL, "lang-reiczigel")
    return Measured(value, len(run.task), OF, missing=run.missing, interval=interval)


def _worth(labelled: LabelsAndVerdicts, those: NDArray[np.bool_]) -> float:
    return independent(labelled.task[those], labelled.said[those] == labelled.label[those])
