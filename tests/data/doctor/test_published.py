"""Published counts beside what is there."""

from __future__ import annotations

from typing import Any

from guieval.data.benchmark import PublishedCount
from guieval.data.doctor.counts import Counts, Verdict, compare
from tests.rows import every_row

# Nine episodes of two clicks and a stop: six test ones of app t (one subset each of a and b in turn), three training ones of o.
DATA = Counts()
for number in range(9):
    app, split = ("o", "train") if number % 3 == 0 else ("t", "test")
    DATA.add(split, "ab"[number % 2], [({"app": app}, "CLICK"), ({"app": app}, "CLICK"), ({"app": app}, "STOP")])


def count(name: str, steps: int | None, **more: Any) -> PublishedCount:
    return PublishedCount(name, steps, "a paper", **more)


@every_row(
    ("result", "verdict", "sentence"),
    [
        (count("all", 27, episodes=9), "agrees", "all: 9 episodes, 27 steps (a paper)"),
        (count("all", 27, types={"CLICK": 18, "STOP": 9}), "agrees", "all: 27 steps (a paper)"),
        (count("o", 9, episodes=3, groups={"app": "o"}), "agrees", "o: 3 episodes, 9 steps (a paper)"),
        (count("train", 9, split="train"), "agrees", "train: 9 steps (a paper)"),
        (count("b", 12, episodes=4, subset="b"), "agrees", "b: 4 episodes, 12 steps (a paper)"),
        (count("b, o", 3, subset="b", groups={"app": "o"}), "agrees", "b, o: 3 steps (a paper)"),
        (count("one", 1, split="val"), "absent", "one: 0 of 1 step (a paper)"),
        (count("all", 1_000, episodes=300), "part", "all: 9 of 300 episodes, 27 of 1,000 steps (a paper)"),
        # what kinds of steps a part holds says nothing yet
        (count("all", 30, types={"CLICK": 20}), "part", "all: 27 of 30 steps (a paper)"),
        # where only episodes are published
        (count("all", None, episodes=9), "agrees", "all: 9 episodes, 27 steps (a paper)"),
        (count("all", None, episodes=508), "part", "all: 9 of 508 episodes, 27 steps (a paper)"),
        (count("all", None, episodes=8), "differs", "all: 9 episodes instead of 8, 27 steps (a paper)"),
        (count("one", None, episodes=1, split="val"), "absent", "one: 0 of 1 episode, 0 steps (a paper)"),
        (count("all", 25, episodes=9), "differs", "all: 9 episodes, 27 steps instead of 25 (a paper)"),
        (count("all", 30, episodes=8), "differs", "all: 9 episodes instead of 8, 27 of 30 steps (a paper)"),
        (
            count("all", 27, types={"CLICK": 20, "TYPE": 7, "STOP": 9}),
            "differs",
            "all: 27 steps, 18 CLICK instead of 20, 0 TYPE instead of 7 (a paper)",
        ),
    ],
)
def test_a_count_is_compared_with_the_same_part_of_the_data(result: PublishedCount, verdict: Verdict, sentence: str) -> None:
    [comparison] = compare([result], DATA)
    assert (comparison.verdict, str(comparison)) == (verdict, sentence)


@every_row(
    ("result", "nearest"),
    [
        ((count("with a finish step", 27), count("without", 18)), "with a finish step"),
        ((count("without", 18), count("with a finish step", 28)), "with a finish step"),
        ((count("more episodes", 27, episodes=12), count("these", 27, episodes=10)), "these"),
        ((count("typed", 27, types={"TYPE": 27}), count("clicked", 27, types={"CLICK": 18})), "clicked"),
    ],
)
def test_of_several_figures_for_one_part_the_nearest_is_meant(result: tuple[PublishedCount, ...], nearest: str) -> None:
    assert [each.published.name for each in compare(result, DATA)] == [nearest]
    apart = compare([*result, count("train", 9, split="train")], DATA)
    assert [each.published.name for each in apart] == [nearest, "train"]
