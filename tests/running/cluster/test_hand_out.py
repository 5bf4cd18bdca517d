"""Episodes are given out once each, in ascending order, fewer at a time towards the end."""

from __future__ import annotations

from pathlib import Path

from guieval.running.cluster import HandOut, dealt_first
from guieval.running.cluster.worker import MOST_AT_ONCE
from tests.running.cluster.conftest import open_scripted
from tests.scripted import ACTIONS, CLICK, ScriptedEngine, make_episode, reply_with


def test_every_position_is_given_once_in_order_and_few_at_the_end() -> None:
    hand_out = HandOut({9, 4, *range(10, 110)}, 4)
    given: list[list[int]] = []
    while hand_out.left:
        given.append(hand_out.take())
    assert [position for few in given for position in few] == [4, 9, *range(10, 110)]
    sizes = [len(few) for few in given]
    assert sizes == sorted(sizes, reverse=True)
    assert 1 < max(sizes) <= MOST_AT_ONCE and sizes[-16:] == [1] * 16
    assert hand_out.take() == []


def test_the_longest_episodes_come_first(tmp_path: Path) -> None:
    episodes = [make_episode("one", [CLICK]), make_episode("four", ACTIONS), make_episode("other", [CLICK])]
    run = open_scripted(tmp_path, episodes, ScriptedEngine(lambda request: reply_with(CLICK)))
    assert [ref.key.episode_id for ref in dealt_first(run.run.selection)] == ["four", "one", "other"]
