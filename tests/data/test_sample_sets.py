"""Sample sets: the shipped manifests against the real files they come from, and what data fills them."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Action, Open, Stop, Wait
from guieval.data.sample_sets import get_sample_set, list_sample_sets, sets_of, step_digest
from guieval.data.selection import Choice, Selection, select, type_differences
from guieval.errors import UsageError
from guieval.registry import benchmarks, load_benchmark
from tests.data.placed import Placed, placed
from tests.rows import every_row
from tests.scripted import CLICK

Steps = set[tuple[str, int]]
UNIFIED = {
    "click": "CLICK",
    "long_press": "LONG_PRESS",
    "swipe": "SCROLL",
    "type": "TYPE",
    "open": "OPEN",
    "system_button": "PRESS",
    "wait": "WAIT",
}


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
    return Counter(
        UNIFIED[official[episode][index]["action_content"]["action"]] if index < len(official[episode]) else "STOP"
        for episode, index in steps
    )


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
    kind = {
        (name, index): step["action_content"]["action"] for name, steps in official.items() for index, step in enumerate(steps)
    }
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


def test_the_episodes_that_os_atlas_leaves_out_are_the_known_131(shared_data: Path) -> None:
    file = shared_data.parent / "reference" / "androidcontrol_sample_sets.json"
    if not file.is_file():
        pytest.skip(f"no {file}")
    known = json.loads(file.read_text())
    test, atlas = get_sample_set("ac-test-8444").ids, get_sample_set("ac-osatlas-7708").ids
    assert set(test) == set(map(str, known["official_test_episodes"]))
    assert set(test) - set(atlas) == set(map(str, known["osatlas_7708_excluded_episodes"]))


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


def check_filled(bench: str, data: Path, name: str) -> None:
    benchmark = load_benchmark(bench, data)
    sample_set = get_sample_set(name)
    selection = select(benchmark, Choice(sample_set=name))
    assert (len(selection.plan), counted(selection)) == (sample_set.episodes, sample_set.steps)
    assert type_differences(benchmark, selection, sample_set) == []
    assert selection.title == name and selection.sha256 == sample_set.sha256


def test_real_data_fills_its_sets(shared_data: Path) -> None:
    check_filled("ui-r1", shared_data / "ui_r1", "ac-no-wait-long-press-7868")
    check_filled("screenspot-pro", shared_data / "screenspot_pro_format_annotations", "screenspot-pro-cad-261")


@pytest.mark.ci
@every_row(
    ("bench", "folder", "name"),
    [
        ("androidcontrol", "ui_s1", "ac-test-8444"),
        ("androidcontrol-low", "ui_s1", "ac-osatlas-7708"),
        ("androidcontrol", "ui_s1", "ac-no-wait-long-press-7868"),
        ("ui-vision", "screenspot_pro_format_annotations", "ui-vision-spatial-1935"),
    ],
)
def test_large_real_data_fills_its_sets(shared_data: Path, bench: str, folder: str, name: str) -> None:
    check_filled(bench, shared_data / folder, name)


def test_a_set_over_a_split_can_be_narrowed_and_sampled(shared_data: Path) -> None:
    benchmark = load_benchmark("androidcontrol", shared_data / "ui_s1")
    drawn = select(benchmark, Choice(sample_set="ac-osatlas-7708", limit=20, seed=1))
    assert len(drawn.plan) == 20 and "20 episodes, drawn with seed 1 from the 1,412 of sample set ac-osatlas-7708" in drawn.text
    with pytest.raises(UsageError, match=r"counts a finish step .* prepared with finish steps"):
        select(benchmark, Choice(sample_set="ac-test-finish-9987"))
    told = "is of aitz, but the data set of benchmark 'androidcontrol' is androidcontrol; its sets"
    with pytest.raises(UsageError, match=told):
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
    made = {
        "name": "made-up",
        "title": "A set made by a test",
        "datasets": ["scripted"],
        "used_by": "a test",
        "source": "a test",
        "episodes": len(counted) + rest["episodes"],
        "steps": steps,
        "sha256": step_digest(counted),
        **values,
    }
    file = folder / "made-up.json"
    file.write_text(json.dumps({key: value for key, value in made.items() if value is not None}))
    get_sample_set.cache_clear()
    return str(file)


def data(lengths: Mapping[str, int], *, last: Action = CLICK, **splits: str) -> Placed:
    return Placed([placed(name, [CLICK] * (n - 1) + [last], split=splits.get(name, "test")) for name, n in lengths.items()])


def chosen(selection: Selection) -> dict[str, list[int]]:
    return {key.episode_id: list(steps) for key, steps in selection.plan.items()}


def counted(selection: Selection) -> int:
    return sum(map(len, selection.plan.values()))


def test_other_episodes_do_not_count_and_the_datas_order_stays(tmp_path: Path) -> None:
    name = write_set(tmp_path, without={"2": [0, 2]})
    selection = select(data({"3": 2, "9": 5, "2": 4, "1": 3}), Choice(sample_set=name))
    assert chosen(selection) == {"3": [0, 1], "2": [1, 3], "1": [0, 1, 2]}
    assert list(chosen(selection)) == ["3", "2", "1"]
    assert selection.text.startswith("all 3 episodes of sample set made-up (sha256 ") and selection.title == "made-up"


def test_a_finish_step_that_the_data_has_and_the_set_does_not_is_left_out(tmp_path: Path) -> None:
    name = write_set(tmp_path)
    assert chosen(select(data(LONGER, last=Stop()), Choice(sample_set=name))) == {
        name: list(range(length)) for name, length in LENGTHS.items()
    }
    told = "episode '1' has 4 steps there and 3 in the set, and its last one is CLICK, not a finish"
    with pytest.raises(UsageError, match=told):
        select(data(LONGER), Choice(sample_set=name))


def test_a_finish_step_counts_where_the_set_includes_it(tmp_path: Path) -> None:
    name = write_set(tmp_path, finish=True, without={"1": [0]})
    assert chosen(select(data(LONGER, last=Stop()), Choice(sample_set=name)))["1"] == [1, 2, 3]
    with pytest.raises(UsageError, match="episode '1' has 3 steps and none: the data must be prepared with finish steps"):
        select(data(LENGTHS), Choice(sample_set=name))


def test_single_steps_can_be_all_that_counts(tmp_path: Path) -> None:
    name = write_set(tmp_path, finish=True, only={"1": [3], "2": [0], "3": [1, 2]})
    assert chosen(select(data(LONGER, last=Stop()), Choice(sample_set=name))) == {"1": [3], "2": [0], "3": [1, 2]}


def test_data_that_holds_the_counted_steps_alone_fills_the_set(tmp_path: Path) -> None:
    name = write_set(tmp_path, without={"1": [1], "2": [0, 3]})
    assert chosen(select(data({"1": 2, "2": 2, "3": 2}), Choice(sample_set=name))) == {"1": [0, 1], "2": [0, 1], "3": [0, 1]}
    with pytest.raises(UsageError, match="episode '1' has 2 steps there and 3 in the set; 1 episodes differ: 1"):
        select(data({"1": 2, "2": 4, "3": 2}), Choice(sample_set=name))


def test_what_is_missing_is_counted_and_named(tmp_path: Path) -> None:
    ids = {str(number): 2 for number in range(10)}
    name = write_set(tmp_path, ids=ids)
    with pytest.raises(UsageError, match=r"needs 10 named episodes, and .* has 2 of them; missing: 2, 3, 4, 5, 6 and 3 more$"):
        select(data({"0": 2, "1": 2, "x": 2}), Choice(sample_set=name))
    with pytest.raises(UsageError, match="2 episodes differ: 4, 7"):
        select(data({**ids, "4": 1, "7": 5}), Choice(sample_set=name))


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
    split = select(data({**others, **LENGTHS}, v="validation", w="validation", t="train"), Choice(sample_set=name))
    assert list(chosen(split)) == ["v", "w", "1", "2", "3"]
    unsplit = select(data({"v": 2, "w": 3, **LENGTHS}), Choice(sample_set=name))  # as GUIEvalKit's folder: one split for all
    assert chosen(unsplit) == chosen(split)
    told = r"needs the 2 episodes of split validation, with 5 steps that count, and .* has 1 with 2"
    with pytest.raises(UsageError, match=told):
        select(data({"v": 2, "w": 3, **LENGTHS}, v="validation", w="train"), Choice(sample_set=name))


def test_episodes_without_published_ids_may_lose_steps_by_their_type(tmp_path: Path) -> None:
    rest = {"split": "validation", "episodes": 1, "steps": 2, "without_types": ["OPEN"]}
    name = write_set(tmp_path, unnamed=rest, finish=True)
    named = [placed(each, [CLICK] * length + [Stop()]) for each, length in LENGTHS.items()]
    val = placed("v", [Open(app="Clock"), CLICK, Wait(), Stop()], split="validation")
    selection = select(Placed([*named, val]), Choice(sample_set=name))
    assert chosen(selection)["v"] == [1, 2, 3]


def test_a_whole_part_is_filled_by_split_subset_and_groups(tmp_path: Path) -> None:
    rows = (("1", "icon", "test"), ("2", "text", "test"), ("3", "icon", "train"))
    benchmark = Placed([placed(name, [CLICK], split=split, groups={"element": element}) for name, element, split in rows])
    nothing: dict[str, Any] = {"ids": {}, "sha256": None}
    name = write_set(tmp_path, **nothing, episodes=1, steps=1, split="test", groups={"element": "icon"})
    selection = select(benchmark, Choice(sample_set=name))
    assert chosen(selection) == {"1": [0]}
    assert selection.text == "the only episode of sample set made-up (a whole part, by its counts)"
    name = write_set(tmp_path, **nothing, episodes=506, steps=4724, split="test")
    told = r"is the split test of 506 episodes and 4,724 steps, but .* has 2 episodes and 2 steps"
    with pytest.raises(UsageError, match=told):
        select(benchmark, Choice(sample_set=name))


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


def test_an_unknown_set_answers_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"unknown sample set 'ac-test-8443' \(did you mean 'ac-test-8444'\?\)"):
        get_sample_set("ac-test-8443")
    with pytest.raises(UsageError, match="cannot be read"):
        get_sample_set("none.json")


def test_an_id_in_two_subsets_is_never_guessed(tmp_path: Path) -> None:
    twice = Placed([placed("1", [CLICK] * 3, subset) for subset in ("a", "b")])
    with pytest.raises(UsageError, match=r"names the episode '1', which .* has in several"):
        select(twice, Choice(sample_set=write_set(tmp_path)))
