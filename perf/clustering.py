"""Measures what telling decisions costs: one step of 512 executions, a whole study, and its sensitivity.

Run it as ``python perf/clustering.py``; ``--steps 3438`` is the paper's study, on as many cores as ``--processes`` says. The
best of several repeats is printed, for other work on the machine only ever adds time.
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import string
import time
import timeit
from functools import partial

import numpy as np

from guieval.actions import Action, Click, Point, Press, Scroll, Stop, Type
from guieval.steps import StepTaskModel
from guieval.studies.decisions.clustering import ClusterSettings, cluster, decide
from guieval.studies.decisions.executions import StepExecutions
from guieval.studies.decisions.measures import measure
from guieval.studies.decisions.sensitivity import sensitivity

EXECUTIONS = 512
PEER_CLICKS, PEER_TEXTS = 284.0, 73.0
"""GUIEvalKit (main d5e954e), milliseconds for 512 clicks, and for 512 texts that all differ; measured elsewhere."""
SENTENCE = "there will be a science fair in our city next month and everyone is invited to see the work of students"
WORDS = SENTENCE.split()


def clicks(rng: np.random.Generator, kind: str) -> list[Action]:
    if kind == "uniform":
        places = rng.uniform(0, 1000, (EXECUTIONS, 2))
    else:  # six targets, and one click in twenty anywhere
        centres = rng.uniform(100, 900, (6, 2))
        places = centres[rng.integers(0, 6, EXECUTIONS)] + rng.normal(0, 12, (EXECUTIONS, 2))
        stray = rng.random(EXECUTIONS) < 0.05
        places[stray] = rng.uniform(0, 1000, (int(stray.sum()), 2))
    if kind == "whole numbers":
        places = np.round(places)
    return [Click(point=Point(*place)) for place in np.clip(places, 0, 1000).tolist()]


def texts(rng: np.random.Generator, kind: str, length: int) -> list[Action]:
    found: dict[str, None] = {}
    letters = list(string.ascii_lowercase + " ")
    base = " ".join(WORDS * (1 + length // 100))[:length]
    while len(found) < EXECUTIONS:
        if kind == "random letters":
            text = "".join(rng.choice(letters, int(rng.integers(length // 2, length + 1))))
        elif kind == "random words":
            text = " ".join(rng.choice(WORDS, max(4, length // 5)).tolist())
        else:  # one sentence with one letter in eight another
            chosen = [each if rng.random() > 1 / 8 else str(rng.choice(letters)) for each in base]
            text = "".join(chosen) + str(len(found))
        found[text] = None
    return [Type(text=text) for text in found]


def study_step(number: int) -> StepExecutions:
    """A step as a rollout finds it: mostly one decision of many unequal clicks, a few others, some typed texts."""
    rng = np.random.default_rng(number)
    kind = rng.random()
    drawn: list[Action] = []
    if kind < 0.7:
        drawn = clicks(rng, "whole numbers")
    elif kind < 0.85:
        drawn = [*texts(rng, "random words", 30)[:40], *([Type(text="a science fair")] * (EXECUTIONS - 40))]
    else:
        drawn = [*([Scroll(point=Point(500, 500), direction="up")] * 400), *([Press(button="BACK")] * 80), *([Stop()] * 32)]
    counts: dict[Action, int] = {}
    for action in drawn:
        counts[action] = counts.get(action, 0) + 1
    task = StepTaskModel(
        benchmark="perf",
        dataset="perf",
        episode_id=str(number // 8),
        step_index=number % 8,
        episode_length=8,
        instruction="",
        screenshot="s.png",
        screenshot_size=(1080, 2400),
        action=drawn[0],
    )
    return StepExecutions(task, tuple(counts), np.array(list(counts.values()), dtype=np.int64), counts[drawn[0]])


def decided(numbers: range) -> tuple[int, float, float]:
    """How many steps, the seconds for their figures, and those for making them up, which does not count."""
    made, spent = 0.0, 0.0
    for number in numbers:
        began = time.perf_counter()
        step = study_step(number)
        made += time.perf_counter() - began
        began = time.perf_counter()
        decide(step)
        spent += time.perf_counter() - began
    return len(numbers), spent, made


def print_one_step() -> None:
    rng = np.random.default_rng(0)
    ones = np.ones(EXECUTIONS, dtype=np.int64)
    cases = [(f"clicks, {kind}", clicks(rng, kind), PEER_CLICKS) for kind in ("six targets", "whole numbers", "uniform")]
    for length in (20, 60):
        for kind in ("random letters", "random words", "one sentence, edited"):
            cases.append((f"texts of up to {length}, {kind}", texts(rng, kind, length), PEER_TEXTS))
    for name, actions, peer in cases:
        settings = ClusterSettings()
        best = min(timeit.repeat(partial(cluster, actions, ones, settings), repeat=30, number=1)) * 1e3
        found = int(cluster(actions, ones, settings).max()) + 1
        print(f"  {name:44} {best:8.2f} ms   {found:4} decisions   (GUIEvalKit {peer:.0f} ms)")


def print_study(steps: int, processes: int) -> None:
    parts = [range(at, min(at + 50, steps)) for at in range(0, steps, 50)]
    if processes > 1:
        with multiprocessing.Pool(processes) as pool:
            done = pool.map(decided, parts, chunksize=1)
    else:
        done = [decided(part) for part in parts]
    spent = sum(each[1] for each in done)
    print(f"  {steps:,} steps of {EXECUTIONS}: {spent:.1f} s of one core, {spent / processes:.1f} s on {processes}")


def print_sensitivity(steps: int) -> None:
    made = [study_step(number) for number in range(steps)]
    began = time.perf_counter()
    measure(made, ClusterSettings())
    plain = time.perf_counter() - began
    began = time.perf_counter()
    sensitivity(made, ClusterSettings())
    print(f"  {steps} steps: figures {plain:.2f} s, all tables of sensitivity {time.perf_counter() - began:.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}")
    print(f"one step of {EXECUTIONS} executions, all different:")
    print_one_step()
    print("a study:")
    print_study(options.steps, options.processes)
    print_sensitivity(min(100, options.steps))
