"""Choosing what is run: splits, subsets, files of episodes, samples, damaged episodes, and the shipped sample sets."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Action, Open, Stop, Wait
from guieval.data.sample_sets import get_sample_set, list_sample_sets, sets_of, step_digest
from guieval.data.selection import Choice, Selection, labels_of_set, select
from guieval.errors import UsageError
from guieval.registry import benchmarks, load_benchmark
from tests.data.placed import Placed, placed
from tests.rows import every_row
from tests.scripted import ACTIONS, CLICK

TEST = (placed("1", ACTIONS), placed("2", ACTIONS[:2], "shop"), placed("2", ACTIONS[:3], "work"))
TRAIN = (placed("3", ACTIONS, "shop", "train"), placed("a/b#1", ACTIONS[:2], "work", "train"))
BENCHMARK = Placed([*TEST, *TRAIN, placed("5", ACTIONS[:1], "extra", "validation")])


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


def test_damage_outside_of_what_is_asked_for_is_not_reported_as_left_out() -> None:
    test = [placed(name, ACTIONS) for name in ("1", "bad 2", "4")]
    damaged = Placed([*test, placed("bad 3", ACTIONS, split="train")]).skipping_damaged()
    selection = select(damaged, Choice())
    assert selection.text == "all 2 episodes of split test, 1 damaged left out" and "bad 2" in selection.damaged[0]
    drawn = select(damaged, Choice(limit=1))
    assert drawn.text == "1 episode, drawn with seed 0 from the 2 of split test, 1 damaged left out"
    with pytest.raises(UsageError, match=r"no readable episode among those selected; the first damaged one: .* bad 3"):
        select(damaged, Choice(split="train"))
    with pytest.raises(UsageError, match="has no episode"):
        select(Placed([]), Choice())


Steps = set[tuple[str, int]]
UNIFIED = {"swipe": "SCROLL", "system_button": "PRESS"}
"""Words of UI-S1's file that are not the unified ones in lower case."""


def rows(file: Path) -> list[Any]:
    """The lines of a packed JSONL file, or a packed JSON list."""
    if not file.is_file():
        pytest.skip(f"no {file}")
    text = gzip.decompress(file.read_bytes()).decode()
    if text.startswith("["):
        return list(json.loads(text))
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="module")
def official(shared_data: Path) -> dict[str, list[dict[str, Any]]]:
    """UI-S1's raw steps of the official test split, by episode."""
    episodes = rows(shared_data / "ui_s1" / "android_control_evaluation_std.jsonl.gz")
    return {str(each["episode_id"]): each["steps"] for each in episodes}


def members(name: str) -> Steps:
    """The named steps of a shipped set."""
    sample_set = get_sample_set(name)
    return {(episode, index) for episode in sample_set.ids for index in sample_set.counted(episode)}


def whole(official: Mapping[str, Sequence[Any]], *, finish: bool = False) -> Steps:
    return {(episode, index) for episode, steps in official.items() for index in range(len(steps) + finish)}


def types(official: Mapping[str, Sequence[Any]], steps: Steps) -> Counter[str]:
    own = (official[name][at]["action_content"]["action"] if at < len(official[name]) else "stop" for name, at in steps)
    return Counter(UNIFIED.get(word, word.upper()) for word in own)


def test_every_manifest_is_whole_and_named_as_its_file() -> None:
    names = list_sample_sets()
    assert len(names) >= 50
    for name in names:
        sample_set = get_sample_set(name)  # reading it checks its counts and its hash
        assert sample_set.name == name
        assert str(sample_set.steps) == name.rpartition("-")[2], "the name ends with the number of steps"
        if "CLICK" in sample_set.types:  # the sets that take in unnamed episodes cannot tell clicks and long presses apart
            assert sum(sample_set.types.values()) == sample_set.steps
        else:
            assert not sample_set.types or (sample_set.unnamed and sum(sample_set.types.values()) == sample_set.steps - 5504)


def test_the_hash_is_over_sorted_lines_of_episode_and_step() -> None:
    assert step_digest({"9": [0], "10": range(2)}) == sha256(b"10#0\n10#1\n9#0\n").hexdigest()


def test_the_whole_splits_are_what_the_loaders_say_is_published() -> None:
    """A set without ids and a benchmark's published counts must not tell two stories."""
    compared = 0
    for name in list_sample_sets():
        sample_set = get_sample_set(name)
        part = (sample_set.split, sample_set.subset, sample_set.groups)
        for kind in benchmarks().values():
            if kind.dataset in sample_set.datasets and kind.published and not sample_set.ids:
                counts = [each for each in kind.published if (each.split, each.subset, dict(each.groups)) == part]
                assert [each.steps for each in counts] == [sample_set.steps], f"{name}: {part}"
                assert counts[0].episodes in (None, sample_set.episodes), name
                compared += 1
    assert compared >= 30


def test_androidcontrol_sets_are_those_of_the_real_files(official: dict[str, list[dict[str, Any]]], shared_data: Path) -> None:
    listed = (shared_data / "os_atlas_eval" / "ac_idx.txt").read_text().split()
    atlas = {(each.split("_")[1], int(each.split("_")[3])) for each in listed}
    kind = {(name, at): step["action_content"]["action"] for name, steps in official.items() for at, step in enumerate(steps)}
    expected = {
        "ac-test-8444": whole(official),
        "ac-osatlas-7708": atlas,
        "ac-no-wait-long-press-7868": {step for step in kind if kind[step] not in ("wait", "long_press")},
        "ac-test-finish-9987": whole(official, finish=True),
        "ac-valtest-finish-10814": whole(official, finish=True),
        "ac-valtest-finish-noopen-10161": {step for step in whole(official, finish=True) if kind.get(step) != "open"},
    }
    for name, steps in expected.items():
        sample_set = get_sample_set(name)
        assert members(name) == steps, name
        if sample_set.unnamed is None:
            assert sample_set.types == types(official, steps), name
        else:  # 137 validation episodes with 690 steps, 45 of them open_app, and a finish step each
            left_out = 45 if sample_set.unnamed.without_types else 0
            assert sample_set.steps == len(steps) + 690 - left_out + 137
            assert sample_set.types["STOP"] == 1680
    assert set(sets_of("androidcontrol")) == {*expected, "ac-uground-500"}


def test_uground_steps_are_the_screenshots_it_names(official: dict[str, list[dict[str, Any]]], shared_data: Path) -> None:
    """The instruction beside each screenshot is that step's own, or *terminate* on the screenshot after the last step."""
    named: Steps = set()
    for row in rows(shared_data / "uground_offline" / "AndroidControl__plan_gpt-4o_low.jsonl.gz"):
        episode, index = str(row["episode_id"]), int(row["image"].rpartition("_")[2].removesuffix(".png"))
        steps = official[episode]
        message = steps[index]["step_instruction"] if index < len(steps) else "terminate"
        assert row["instruction"] == message
        named.add((episode, index))
    assert len(named) == 500 and members("ac-uground-500") == named
    assert get_sample_set("ac-uground-500").types == types(official, named)


@pytest.mark.ci
@every_row(
    ("bench", "folder", "name"),
    [
        ("ui-r1", "ui_r1", "ac-no-wait-long-press-7868"),
        ("screenspot-pro", "screenspot_pro_format_annotations", "screenspot-pro-cad-261"),
        ("androidcontrol", "ui_s1", "ac-test-8444"),
        ("androidcontrol-low", "ui_s1", "ac-osatlas-7708"),
        ("androidcontrol", "ui_s1", "ac-no-wait-long-press-7868"),
        ("ui-vision", "screenspot_pro_format_annotations", "ui-vision-spatial-1935"),
    ],
)
def test_real_data_fills_its_sets(shared_data: Path, bench: str, folder: str, name: str) -> None:
    benchmark, sample_set = load_benchmark(bench, shared_data / folder), get_sample_set(name)
    selection = select(benchmark, Choice(sample_set=name))
    assert (len(selection.plan), sum(map(len, selection.plan.values()))) == (sample_set.episodes, sample_set.steps)
    assert labels_of_set(benchmark, selection, sample_set)[1] == []
    assert selection.title == name and selection.sha256 == sample_set.sha256


def test_a_set_over_a_split_can_be_narrowed_and_sampled(shared_data: Path) -> None:
    benchmark = load_benchmark("androidcontrol", shared_data / "ui_s1")
    drawn = select(benchmark, Choice(sample_set="ac-osatlas-7708", limit=20, seed=1))
    assert len(drawn.plan) == 20 and "20 episodes, drawn with seed 1 from the 1,412 of sample set ac-osatlas-7708" in drawn.text
    with pytest.raises(UsageError, match=r"counts a finish step .* prepared with finish steps"):
        select(benchmark, Choice(sample_set="ac-test-finish-9987"))
    with pytest.raises(UsageError, match="is of aitz, but the data set of benchmark 'androidcontrol' is androidcontrol; its"):
        select(benchmark, Choice(sample_set="aitz-test-4724"))
    with pytest.raises(UsageError, match=r"is all the data of 1,272 episodes and 1,272 steps, but .* has 149 episodes"):
        select(load_benchmark("screenspot-v2", shared_data / "screenspot"), Choice(sample_set="screenspot-v2-1272"))


# Small sets over scripted data: every way in which data may fit, or not.

LENGTHS = {"1": 3, "2": 4, "3": 2}
LONGER = {"1": 4, "2": 5, "3": 3}


def write_set(folder: Path, **changes: Any) -> str:
    """A manifest over the scripted data set, its counts and its hash computed here; the path to give as a name."""
    values: dict[str, Any] = {"ids": LENGTHS, **changes}
    finish = values.get("finish", False)
    counted: dict[str, Iterable[int]] = {}
    for name, length in values["ids"].items():
        left_out = values.get("without", {}).get(name, ())
        counted[name] = values.get("only", {}).get(name, [i for i in range(length + finish) if i not in left_out])
    rest = values.get("unnamed") or {"episodes": 0, "steps": 0}
    steps = sum(len(list(each)) for each in counted.values()) + rest["steps"] + rest["episodes"] * finish
    numbers = {"episodes": len(counted) + rest["episodes"], "steps": steps, "sha256": step_digest(counted)}
    made = {"name": "made-up", "title": "A set", "datasets": ["scripted"], "used_by": "a test", "source": "a test"}
    made |= numbers | values
    file = folder / "made-up.json"
    file.write_text(json.dumps({key: value for key, value in made.items() if value is not None}))
    get_sample_set.cache_clear()
    return str(file)


def data(lengths: Mapping[str, int], *, last: Action = CLICK, **splits: str) -> Placed:
    return Placed([placed(name, [CLICK] * (n - 1) + [last], split=splits.get(name, "test")) for name, n in lengths.items()])


def taken(benchmark: Placed, name: str) -> dict[str, list[int]]:
    return chosen(select(benchmark, Choice(sample_set=name)))


def test_other_episodes_do_not_count_and_the_datas_order_stays(tmp_path: Path) -> None:
    name = write_set(tmp_path, without={"2": [0, 2]})
    selection = select(data({"3": 2, "9": 5, "2": 4, "1": 3}), Choice(sample_set=name))
    assert chosen(selection) == {"3": [0, 1], "2": [1, 3], "1": [0, 1, 2]}
    assert list(chosen(selection)) == ["3", "2", "1"]
    assert selection.text.startswith("all 3 episodes of sample set made-up (sha256 ") and selection.title == "made-up"


def test_a_finish_step_that_the_data_has_and_the_set_does_not_is_left_out(tmp_path: Path) -> None:
    filled = taken(data(LONGER, last=Stop()), name := write_set(tmp_path))
    assert filled == {each: list(range(length)) for each, length in LENGTHS.items()}
    with pytest.raises(UsageError, match="'1' has 4 steps there and 3 in the set, and its last one is CLICK, not a finish"):
        taken(data(LONGER), name)


def test_a_finish_step_counts_where_the_set_includes_it_and_single_steps_can_be_all_that_counts(tmp_path: Path) -> None:
    name = write_set(tmp_path, finish=True, without={"1": [0]})
    assert taken(data(LONGER, last=Stop()), name)["1"] == [1, 2, 3]
    with pytest.raises(UsageError, match="episode '1' has 3 steps and none: the data must be prepared with finish steps"):
        taken(data(LENGTHS), name)
    only = {"1": [3], "2": [0], "3": [1, 2]}
    assert taken(data(LONGER, last=Stop()), write_set(tmp_path, finish=True, only=only)) == only


def test_data_that_holds_the_counted_steps_alone_fills_the_set(tmp_path: Path) -> None:
    name = write_set(tmp_path, without={"1": [1], "2": [0, 3]})
    assert taken(data({"1": 2, "2": 2, "3": 2}), name) == {"1": [0, 1], "2": [0, 1], "3": [0, 1]}
    with pytest.raises(UsageError, match="episode '1' has 2 steps there and 3 in the set; 1 episodes differ: 1"):
        taken(data({"1": 2, "2": 4, "3": 2}), name)


def test_what_is_missing_is_counted_and_named(tmp_path: Path) -> None:
    ids = {str(number): 2 for number in range(10)}
    name = write_set(tmp_path, ids=ids)
    with pytest.raises(UsageError, match=r"needs 10 named episodes, and .* has 2 of them; missing: 2, 3, 4, 5, 6 and 3 more$"):
        taken(data({"0": 2, "1": 2, "x": 2}), name)
    with pytest.raises(UsageError, match="2 episodes differ: 4, 7"):
        taken(data({**ids, "4": 1, "7": 5}), name)
    twice = Placed([placed("1", [CLICK] * 3, subset) for subset in ("a", "b")])
    with pytest.raises(UsageError, match=r"names the episode '1', which .* has in several"):
        taken(twice, write_set(tmp_path))


def test_damage_never_leaves_a_set_out_of_its_steps_silently(tmp_path: Path) -> None:
    benchmark = data({"1": 2, "bad": 2, "3": 2, "bad x": 2}).skipping_damaged()
    selection = select(benchmark, Choice(sample_set=write_set(tmp_path, ids={"1": 2, "3": 2})))
    assert selection.damaged == () and selection.text.startswith("all 2 episodes of sample set made-up (sha256 ")
    assert "damaged" not in selection.text
    with pytest.raises(UsageError, match=r"has 2 of them; missing: bad$") as refused:
        select(benchmark, Choice(sample_set=write_set(tmp_path, ids={"1": 2, "bad": 2, "3": 2})))
    assert "(2 damaged left out, first: file.json, episode bad, field action" in str(refused.value)


def test_episodes_without_published_ids_are_those_of_their_split(tmp_path: Path) -> None:
    rest = {"split": "validation", "episodes": 2, "steps": 5}
    name = write_set(tmp_path, unnamed=rest)
    others = {"v": 2, "w": 3, "t": 9}
    split = taken(data({**others, **LENGTHS}, v="validation", w="validation", t="train"), name)
    assert list(split) == ["v", "w", "1", "2", "3"]
    assert taken(data({"v": 2, "w": 3, **LENGTHS}), name) == split  # as GUIEvalKit's folder: one split for all
    with pytest.raises(UsageError, match=r"needs the 2 episodes of split validation, with 5 steps that .* has 1 with 2"):
        taken(data({"v": 2, "w": 3, **LENGTHS}, v="validation", w="train"), name)
    rest = {"split": "validation", "episodes": 1, "steps": 2, "without_types": ["OPEN"]}
    named = [placed(each, [CLICK] * length + [Stop()]) for each, length in LENGTHS.items()]
    val = placed("v", [Open(app="Clock"), CLICK, Wait(), Stop()], split="validation")
    assert taken(Placed([*named, val]), write_set(tmp_path, unnamed=rest, finish=True))["v"] == [1, 2, 3]


def test_a_whole_part_is_filled_by_split_subset_and_groups(tmp_path: Path) -> None:
    rows = (("1", "icon", "test"), ("2", "text", "test"), ("3", "icon", "train"))
    benchmark = Placed([placed(name, [CLICK], split=split, groups={"element": element}) for name, element, split in rows])
    nothing: dict[str, Any] = {"ids": {}, "sha256": None}
    name = write_set(tmp_path, **nothing, episodes=1, steps=1, split="test", groups={"element": "icon"})
    selection = select(benchmark, Choice(sample_set=name))
    assert chosen(selection) == {"1": [0]}
    assert selection.text == "the only episode of sample set made-up (a whole part, by its counts)"
    name = write_set(tmp_path, **nothing, episodes=506, steps=4724, split="test")
    with pytest.raises(UsageError, match=r"is the split test of 506 episodes and 4,724 steps, but .* has 2 episodes and 2"):
        taken(benchmark, name)


@every_row(
    ("changes", "message"),
    [
        ({"steps": 8}, "its ids make 3 episodes and 9 steps, not 3 and 8"),
        ({"sha256": "0"}, "the hash of its ids is"),
        ({"split": "test"}, "by ids, or by split"),
        ({"without": {"7": [0]}}, "'7' is in without or only"),
        ({"idz": {}}, "field idz"),
        ({"ids": {}, "episodes": 1, "steps": 1, "finish": True}, "without ids there is nothing"),
        ({"only": {"2": [3, 0]}}, r"steps of '2' must ascend and be below 4, got \[3, 0\]"),
        ({"only": {"2": [4]}}, r"steps of '2' must ascend and be below 4, got \[4\]"),
        ({"without": {"2": [-1]}}, r"steps of '2' must ascend"),
        ({"without": {"3": [0, 1]}}, "no step of '3' counts"),
        ({"only": {"3": []}}, "no step of '3' counts"),
        ({"only": {"3": [0]}, "without": {"3": [1]}}, "'3' is both in without and in only"),
        ({"ids": {"1": 0, "2": 3}}, r"field ids\.1: expected 1 or more"),
        ({"name": "ac-test-8444"}, "has the name 'ac-test-8444'; it must have its file's name"),
    ],
)
def test_a_manifest_of_ones_own_is_checked(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        get_sample_set(write_set(tmp_path, **changes))
