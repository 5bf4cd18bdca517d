"""The 1-Wasserstein distance of two distributions of few points on the screen.

Source: GUIEvalKit paper, appendix C.1.4: Euclidean ground cost, divided by the screen's diameter. The linear programme is
solved by SciPy (HiGHS), after what both distributions hold at the same point has been taken out, which changes nothing since
moving mass nowhere costs nothing.
"""

from __future__ import annotations

import numpy as np

from guieval.analysis.decisions.points import Floats

DIAMETER = 1000 * 2**0.5
"""Of the screen, in its thousandths."""
_DUST = 1e-12


def wasserstein(points: Floats, masses: Floats, others: Floats, other_masses: Floats) -> float:
    """How far the mass of one distribution must be carried on average to become the other, in thousandths of the screen.

    ``points`` (k, 2) and ``others`` (l, 2) carry masses (k,) and (l,), which each sum to 1.
    """
    left: dict[tuple[float, float], float] = {}
    for sign, places, held in ((1.0, points, masses), (-1.0, others, other_masses)):
        for (x, y), mass in zip(places.tolist(), held.tolist(), strict=True):
            left[x, y] = left.get((x, y), 0.0) + sign * mass
    sources = [(point, mass) for point, mass in left.items() if mass > _DUST]
    sinks = [(point, -mass) for point, mass in left.items() if mass < -_DUST]
    if not sources or not sinks:
        return 0.0
    start, supply = np.array([point for point, _ in sources]), np.array([mass for _, mass in sources])
    end, demand = np.array([point for point, _ in sinks]), np.array([mass for _, mass in sinks])
    demand *= supply.sum() / demand.sum()  # both are what rounding left of the same mass
    costs = np.hypot(start[:, None, 0] - end[:, 0], start[:, None, 1] - end[:, 1])
    if len(sources) == 1 or len(sinks) == 1:
        return float((costs * supply[:, None] * demand).sum() / supply.sum())
    return _transport(costs, supply, demand)


def _transport(costs: Floats, supply: Floats, demand: Floats) -> float:
    """The least cost of carrying the supplies (k,) to the demands (l,) at costs (k, l) each."""
    from scipy.optimize import LinearConstraint, milp
    from scipy.sparse import csr_array

    k, l = costs.shape  # noqa: E741  # the customary letters of the transport problem
    lane = np.arange(k * l)
    rows = np.concatenate([lane // l, k + lane % l])
    sums = csr_array((np.ones(2 * k * l), (rows, np.concatenate([lane, lane]))), shape=(k + l, k * l))
    # One of the k + l sums follows from the others; left out, rounding cannot make the programme infeasible.
    held = np.concatenate([supply, demand])[:-1]
    # No variable is to be a whole number: this is SciPy's leanest way to HiGHS, several times quicker than `linprog`.
    done = milp(costs.ravel(), constraints=LinearConstraint(sums[:-1], held, held))
    if not done.success:
        raise ArithmeticError(f"the transport problem was not solved: {done.message}")
    return float(done.fun)
