"""Whether rewards are what evaluation says, on every recorded reply, and how fast they are.

Goal: no reply on which the two differ. Replies come from a folder of recorded model outputs (``GUIEVAL_SHARED_DATA``, as for
the tests); without it only written ones are compared.

    python -m perf.rewards            # from the repository's root: a minute
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from guieval.evaluation import ActionEvaluator
from guieval.rewards import REWARDS, ResponseScorer, get_reward
from guieval.scoring.recorded_run import read_again
from guieval.steps import Sample
from tests.rewards.pairs import UNJUDGED, Answered, actions, kairos, os_atlas, recorded, tasks, written

ROWS = 20_000


def every_answer() -> Iterator[Answered]:
    """All sources there are."""
    repository = Path(__file__).resolve().parent.parent
    folder = Path(os.environ.get("GUIEVAL_SHARED_DATA", repository.parent / "shared" / "data"))
    if folder.is_dir():
        yield from recorded(folder)
        yield kairos(folder)
        yield os_atlas(folder)
    yield from written()


def print_parity() -> None:
    """A line for each source: every reward under its own protocol, pair by pair, beside the ordinary evaluation."""
    print(f"  {'replies of':34} {'pairs':>7} {'judged':>8} {'type':>7} {'exact':>7} {'unlike':>7}")
    totals = [0] * 5
    for answered in every_answer():
        counts = [len(answered.pairs), 0, 0, 0, 0]
        for name in REWARDS:
            scorer = ResponseScorer(answered.model, get_reward(name))
            evaluator = ActionEvaluator(REWARDS[name].protocol)
            for pair in answered.pairs:
                rewarded = scorer.score(pair.task, pair.text).reward
                sample = Sample(raw_response=pair.text, outcome=UNJUDGED)
                outcome = read_again(evaluator, answered.model, pair.task, sample).outcome
                unlike = rewarded.outcome != outcome or rewarded.parts["type"] != outcome.type_match
                for place, value in enumerate((1, outcome.type_match, outcome.exact_match, unlike), 1):
                    counts[place] += int(value)
        totals = [one + other for one, other in zip(totals, counts, strict=True)]
        print_counts(answered.source, counts)
    print_counts("all", totals)


def print_counts(source: str, counts: list[int]) -> None:
    """One line of the table."""
    print(f"  {source:34} {counts[0]:7,} {counts[1]:8,} {counts[2]:7,} {counts[3]:7,} {counts[4]:7,}")


def print_speed() -> None:
    """Rewards a second, on parsed actions and from raw replies."""
    steps = tasks(ROWS)
    answers = actions(ROWS, steps)
    for name in REWARDS:
        reward = get_reward(name)
        began = time.perf_counter()
        for task, action in zip(steps, answers, strict=True):
            reward.of(task, action, well_formed=True)
        print(f"  {name:20} {ROWS / (time.perf_counter() - began):12,.0f}/s")
    answered = next(each for each in written() if each.source == "written/qwen2_5_vl")
    scorer = ResponseScorer(answered.model, get_reward("ui-s1"))
    began = time.perf_counter()
    for pair in answered.pairs:
        scorer.score(pair.task, pair.text)
    print(f"  raw replies read, judged and weighed: {len(answered.pairs) / (time.perf_counter() - began):,.0f}/s")


if __name__ == "__main__":
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}")
    print(f"reward against evaluation: {len(REWARDS)} rewards, each under its own protocol")
    print_parity()
    print(f"speed, {ROWS:,} answers of all kinds:")
    print_speed()
