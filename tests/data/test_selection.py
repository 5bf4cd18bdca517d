"""Choosing what is run: splits, subsets, files of episodes, samples and damaged episodes, through the public functions."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from guieval.data.selection import Choice, Selection, select
from guieval.errors import UsageError
from tests.data.placed import Placed, placed
from tests.rows import every_row
from tests.scripted import ACTIONS

BENCHMARK = Placed(
    [
        placed("1", ACTIONS),
        placed("2", ACTIONS[:2], "shop"),
        placed("2", ACTIONS[:3], "work"),
        placed("3", ACTIONS, "shop", "train"),
        placed("a/b#1", ACTIONS[:2], "work", "train"),
        placed("5", ACTIONS[:1], "extra", "validation"),
    ]
)


def chosen(selection: Selection) -> dict[str, list[int]]:
    return {"/".join(filter(None, key[1:])): list(steps) for key, steps in selection.plan.items()}


def listed(folder: Path, *lines: str) -> Choice:
    file = folder / "episodes.txt"
    file.write_text("\n".join(lines) + "\n")
    return Choice(episodes=file)


def test_the_test_split_is_run_unless_another_is_asked_for() -> None:
    default = select(BENCHMARK, Choice())
    assert chosen(default) == {"1": [0, 1, 2, 3], "shop/2": [0, 1], "work/2": [0, 1, 2]}
    assert (default.title, default.text) == ("split test", "all 3 episodes of split test")
    assert list(chosen(select(BENCHMARK, Choice(split="train")))) == ["shop/3", "work/a/b#1"]
    every = select(BENCHMARK, Choice(split="all"))
    assert (len(every.plan), every.title, every.text) == (6, "all", "all 6 episodes")
    train = select(Placed([placed("1", ACTIONS, split="train")]), Choice())
    assert (len(train.plan), train.text) == (1, "the only episode")


def test_subsets_narrow_the_split_down() -> None:
    both = select(BENCHMARK, Choice(subsets=("shop", "work")))
    assert list(chosen(both)) == ["shop/2", "work/2"] and both.text == "all 2 episodes of split test, subsets shop, work"
    assert list(chosen(select(BENCHMARK, Choice(subsets=("shop",), split="all")))) == ["shop/2", "shop/3"]
    with pytest.raises(UsageError, match=r"no subset 'shopp' \(did you mean 'shop'\?\); it has 'extra', 'shop', 'work'"):
        select(BENCHMARK, Choice(subsets=("shopp",)))
    with pytest.raises(UsageError, match=r"has no subsets; leave out --subset nosub$"):
        select(Placed([placed("1", ACTIONS)]), Choice(subsets=("nosub",)))
    with pytest.raises(UsageError, match=r"no split 'tset' .did you mean 'test'.*'all' takes every split"):
        select(BENCHMARK, Choice(split="tset"))
    with pytest.raises(UsageError, match="and subset extra; this subset is in split validation: add --split"):
        select(BENCHMARK, Choice(subsets=("extra",)))


def test_a_file_names_episodes_and_steps(tmp_path: Path) -> None:
    """Ids are looked up before anything is taken for a step, whatever characters they are made of."""
    choice = listed(tmp_path, "1#3", "work/2", "", "  a/b#1", "1#0", "work/2#1", "shop/3#2")
    selection = select(BENCHMARK, choice)
    assert chosen(selection) == {"1": [0, 3], "work/2": [0, 1, 2], "shop/3": [2], "work/a/b#1": [0, 1]}
    assert selection.text == "all 4 episodes, as listed in episodes.txt"
    assert list(chosen(select(BENCHMARK, Choice("train", episodes=choice.episodes)))) == ["shop/3", "work/a/b#1"]
    (tmp_path / "episodes.txt").write_text(json.dumps([1, "work/2#1"]))
    assert chosen(select(BENCHMARK, choice)) == {"1": [0, 1, 2, 3], "work/2": [1]}


@every_row(
    ("lines", "message"),
    [
        (["1", "33"], r"line 2: unknown episode '33' \(did you mean '3'\?\)"),
        (["2"], "line 1: the episode '2' is in several subsets; write one of shop/2, work/2"),
        (["1#4"], "line 1: episode '1' has no step 4; its 4 steps are counted from 0"),
        (["1#" + "9" * 5000], "unknown episode '1#999"),
        (["shop/1"], "unknown episode 'shop/1'"),
        (["", " "], "lists no episode"),
        (['["1", 2.5]'], r"entry 2: expected an episode id, got 2\.5"),
        (['["1"'], "not a JSON list"),
    ],
)
def test_a_line_that_cannot_be_meant_is_named(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        select(BENCHMARK, listed(tmp_path, *lines))


def test_a_list_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        select(BENCHMARK, Choice(episodes=tmp_path / "none"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe1")
    with pytest.raises(UsageError, match="not UTF-8"):
        select(BENCHMARK, Choice(episodes=tmp_path / "binary"))


def test_a_limit_draws_whole_episodes_by_its_seed() -> None:
    many = Placed([placed(str(number), ACTIONS[: 1 + number % 4]) for number in range(40)])
    drawn = select(many, Choice(limit=5, seed=3))
    assert [ref.key.episode_id for ref in drawn.refs] == [str(n) for n in sorted(random.Random(3).sample(range(40), 5))]
    assert [len(steps) for steps in drawn.plan.values()] == [ref.length for ref in drawn.refs]
    assert drawn.text == "5 episodes, drawn with seed 3 from the 40 of split test" and drawn.title == "split test, 5 of 40"
    assert select(many, Choice(limit=40)).text == "all 40 episodes of split test"


def test_damaged_episodes_are_left_out_only_on_request() -> None:
    damaged = Placed([placed("bad 1", ACTIONS), placed("2", ACTIONS), placed("bad 3", ACTIONS)])
    assert len(select(damaged, Choice()).plan) == 3  # nothing is loaded to make a plan
    damaged = damaged.skipping_damaged()
    for _ in range(2):
        selection = select(damaged, Choice())
        assert list(chosen(selection)) == ["2"] and len(selection.damaged) == 2
    assert selection.text == "the only episode of split test, 2 damaged left out"
    assert selection.to_json()["damaged"] == {"episodes": 2, "first": list(selection.damaged)}
    assert "bad 1, field action" in selection.damaged[0]
    none = Placed([placed("bad", ACTIONS)]).skipping_damaged()
    told = r"no readable episode among those selected; the first damaged one: file\.json, episode bad"
    with pytest.raises(UsageError, match=told):
        select(none, Choice())


def test_damage_outside_of_what_is_asked_for_is_not_reported_as_left_out() -> None:
    damaged = Placed(
        [placed("1", ACTIONS), placed("bad 2", ACTIONS), placed("bad 3", ACTIONS, split="train"), placed("4", ACTIONS)]
    )
    damaged = damaged.skipping_damaged()
    selection = select(damaged, Choice())
    assert selection.text == "all 2 episodes of split test, 1 damaged left out" and "bad 2" in selection.damaged[0]
    drawn = select(damaged, Choice(limit=1))
    assert drawn.text == "1 episode, drawn with seed 0 from the 2 of split test, 1 damaged left out"
    with pytest.raises(UsageError, match=r"no readable episode among those selected; the first damaged one: .* bad 3"):
        select(damaged, Choice(split="train"))


def test_a_benchmark_without_episodes_is_refused() -> None:
    with pytest.raises(UsageError, match="holds no episode"):
        select(Placed([]), Choice())
