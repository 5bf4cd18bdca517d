"""The scheduler: every step once, order within an episode, longest first, a bounded number of episodes loaded."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from guieval.data.benchmark import EpisodeRef
from guieval.running.runner.scheduler import ActiveEpisode, Scheduler
from guieval.steps import EpisodeKey


def refs(lengths: list[int]) -> list[EpisodeRef]:
    return [EpisodeRef(EpisodeKey("b", "", str(number)), length) for number, length in enumerate(lengths)]


def activate(ref: EpisodeRef) -> ActiveEpisode:
    return ActiveEpisode(ref, None, list(range(ref.length)))  # the scheduler never looks inside


SEEDS = st.integers(0, 2**32)


@dataclass
class Simulated:
    makespan: float
    order: list[tuple[str, int]]
    most_loaded: int


def simulate(
    lengths: list[int], latency: dict[tuple[str, int], float], slots: int, *, sequential: bool, window: int
) -> Simulated:
    """Play a schedule with given latencies on a clock of its own."""
    scheduler = Scheduler(refs(lengths), activate, sequential=sequential, window=window)
    running: list[tuple[float, int, ActiveEpisode]] = []
    order: list[tuple[str, int]] = []
    loaded: set[str] = set()
    now, serial, most = 0.0, 0, 0
    while True:
        while len(running) < slots and (taken := scheduler.take()) is not None:
            active, step = taken
            key = (active.ref.key.episode_id, step)
            order.append(key)
            loaded.add(key[0])
            most = max(most, len(loaded))
            serial += 1
            heapq.heappush(running, (now + latency[key], serial, active))
        if not running:
            break
        now, _, active = heapq.heappop(running)
        if scheduler.finished(active):
            loaded.discard(active.ref.key.episode_id)
    assert scheduler.exhausted
    return Simulated(now, order, most)


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=30), st.integers(1, 8), st.booleans(), st.integers(1, 40), st.integers()
)
def test_every_step_runs_once_and_in_order(lengths: list[int], slots: int, sequential: bool, window: int, seed: int) -> None:
    draw = random.Random(seed)
    latency = {(str(n), s): draw.random() for n, length in enumerate(lengths) for s in range(length)}
    result = simulate(lengths, latency, slots, sequential=sequential, window=window)
    assert sorted(result.order) == sorted(latency)
    for number in range(len(lengths)):
        steps = [step for episode, step in result.order if episode == str(number)]
        assert steps == sorted(steps)
    assert result.most_loaded <= window


def test_sequential_steps_of_one_episode_never_overlap() -> None:
    scheduler = Scheduler(refs([3]), activate, sequential=True, window=4)
    first = scheduler.take()
    assert first is not None and first[1] == 0
    assert scheduler.take() is None and not scheduler.exhausted
    scheduler.finished(first[0])
    second = scheduler.take()
    assert second is not None and second[1] == 1


def test_giving_up_an_episode_frees_it() -> None:
    scheduler = Scheduler(refs([5]), activate, sequential=True, window=1)
    taken = scheduler.take()
    assert taken is not None
    assert scheduler.finished(taken[0], go_on=False)
    assert scheduler.take() is None and scheduler.exhausted


def test_longest_first_is_near_the_bound() -> None:
    """200 episodes of 3 to 20 steps, 64 slots: within 5 % of the lower bound, where first come first served loses half."""
    draw = random.Random(7)
    lengths = [min(20, max(3, round(draw.lognormvariate(1.75, 0.48)))) for _ in range(200)]
    latency = {(str(n), s): draw.lognormvariate(-0.87, 0.6) for n, length in enumerate(lengths) for s in range(length)}
    chains = [sum(latency[str(n), s] for s in range(length)) for n, length in enumerate(lengths)]
    bound = max(sum(latency.values()) / 64, max(chains))
    result = simulate(lengths, latency, 64, sequential=True, window=256)
    assert result.makespan <= 1.05 * bound
    offline = simulate(lengths, latency, 64, sequential=False, window=256)
    assert offline.makespan <= sum(latency.values()) / 64 + max(latency.values())  # Graham's bound for any list schedule
