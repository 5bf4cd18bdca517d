"""The episodes format: what a line means, what is reported for a wrong one, and records that survive writing and reading."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from guieval.benchmarks._examples.episodes import FRAMES, write_episodes
from guieval.benchmarks._examples.episodes import screenshot as screenshot_of
from hypothesis import given, settings
from hypothesis import strategies as st

from guieval import actions as act
from guieval.data.benchmark import ABCBenchmark
from guieval.data.episodes.format import EpisodeLine, StepLine
from guieval.data.episodes.write import episode_line
from guieval.data.screenshots import read_screenshot
from guieval.errors import DataError, UsageError
from guieval.registry import load_benchmark
from guieval.steps import Episode, StepTaskModel
from tests.conftest import REPOSITORY
from tests.json_values import read_json
from tests.rows import every_row

SIZE = (1080, 2400)
PHONE = (360, 800)


def step(**changes: Any) -> dict[str, Any]:
    values = {"screenshot": "a.png", "screenshot_size": list(SIZE), "action": {"type": "CLICK", "point": [540, 1200]}}
    return values | changes


def line(**changes: Any) -> dict[str, Any]:
    return {"episode_id": "e", "instruction": "go", "frame": "pixels", "steps": [step()], **changes}


def folder_of(root: Path, *lines: Any) -> Path:
    root.mkdir(exist_ok=True)
    texts = (each if isinstance(each, str) else json.dumps(each) for each in lines)
    (root / "episodes.jsonl").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return root


def loaded(root: Path, *lines: Any, **options: Any) -> list[Episode]:
    return list(load_benchmark("episodes", folder_of(root, *lines), **options))


def only(root: Path, **changes: Any) -> StepTaskModel:
    [episode] = loaded(root, line(**changes))
    return episode.steps[0]


def test_places_of_device_actions_are_in_the_frame_too(tmp_path: Path) -> None:
    drag = {"type": "DRAG", "start": [540, 600], "end": [1080, 2400]}
    action = {"type": "UNSUPPORTED", "name": "drag", "arguments": {"point": [1, 2]}, "device": drag}
    read = only(tmp_path / "a", steps=[step(action=action)])
    device = act.Drag(start=act.Point(500.0, 250.0), end=act.Point(1000.0, 1000.0))
    assert read.action == act.Unsupported(name="drag", arguments={"point": [1, 2]}, device=device)
    written = read_json(episode_line(Episode(steps=(read,))))
    assert written["frame"] == "pixels" and written["steps"][0]["action"]["device"] == drag
    to = {**action, "device": {"type": "DRAG", "start": None, "end": [540, 600]}}
    assert act.executable(only(tmp_path / "b", steps=[step(action=to)]).action) == act.Drag(end=act.Point(500.0, 250.0))
    with pytest.raises(DataError, match=r"steps.0.action.device.end: "):
        only(tmp_path / "c", steps=[step(action={**action, "device": {**drag, "end": [540, 2401]}})])
    with pytest.raises(DataError, match="field frame: is missing"):
        only(tmp_path / "d", frame=None, steps=[step(action=action)])


@every_row(
    ("frame", "point", "unified", "box"),
    [
        ("pixels", [540, 1800], (500.0, 750.0), [108, 240, 1080, 2400]),
        ("relative", [0.5, 0.75], (500.0, 750.0), [0.1, 0.1, 1, 1]),
        ("unified", [500, 750], (500.0, 750.0), [100, 100, 1000, 1000]),
        ("pixels", [1080, 0], (1000.0, 0.0), [108, 240, 1080, 2400]),
    ],
)
def test_points_and_boxes_are_in_the_frame_of_their_line(
    frame: str, point: list[float], unified: tuple[float, float], box: list[float], tmp_path: Path
) -> None:
    action = {"type": "LONG_PRESS", "point": point, "duration": 700}
    scroll = {"type": "SCROLL", "point": point, "direction": "left"}
    found = only(tmp_path, frame=frame, steps=[step(action=action, alternatives=[scroll], targets=[box])])
    assert found.action == act.LongPress(point=act.Point(*unified), duration=700)
    assert found.alternatives == (act.Scroll(point=act.Point(*unified), direction="left"),)
    assert found.targets == act.Boxes([[100, 100, 1000, 1000]])


def test_what_a_line_does_not_say_has_its_default(tmp_path: Path) -> None:
    found = only(tmp_path)
    assert (found.benchmark, found.dataset, found.subset, found.split) == ("episodes", "episodes", "", "test")
    assert (found.setting, found.low_level_instruction, found.alternatives, len(found.targets)) == ("high", None, (), 0)
    assert (found.groups, found.extras, found.episode_length) == ({}, {}, 1)


def test_a_line_does_not_speak_for_the_next(tmp_path: Path) -> None:
    result = step(low_level_instruction="tap it")
    low = line(episode_id="a", dataset="androidcontrol", setting="low", steps=[result])
    first, second = loaded(tmp_path, low, line(episode_id="b", steps=[result]))
    assert (first.steps[0].dataset, first.steps[0].setting) == ("androidcontrol", "low")
    assert (second.steps[0].dataset, second.steps[0].setting) == ("episodes", "high")
    benchmark = load_benchmark("episodes", tmp_path)
    assert (benchmark.dataset, benchmark.setting) == ("androidcontrol", "low")
    benchmark = load_benchmark("episodes", folder_of(tmp_path, line(setting="easy", dataset=""), line(episode_id="b")))
    assert (benchmark.dataset, benchmark.setting) == ("", "high")
    assert [episode.key.episode_id for episode in benchmark.skipping_damaged()] == ["b"]


def test_a_step_may_have_its_own_instruction_and_any_button(tmp_path: Path) -> None:
    recent = {"type": "PRESS", "button": "RECENT"}
    [episode] = loaded(tmp_path, line(steps=[step(), step(instruction="now this", action=recent)]))
    assert [each.instruction for each in episode.steps] == ["go", "now this"]
    assert episode.steps[1].action == act.Press(button="RECENT")
    assert episode.steps[1].action in load_benchmark("episodes", tmp_path).action_space


def test_the_size_of_a_screenshot_is_read_from_the_image_when_it_is_not_given(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("RGB", (200, 100)).save(tmp_path / "a.png")
    found = only(tmp_path, steps=[{"screenshot": "a.png", "action": {"type": "CLICK", "point": [50, 50]}}])
    assert found.screenshot_size == (200, 100)
    assert found.action == act.Click(point=act.Point(250.0, 500.0))


def stepped(**changes: Any) -> dict[str, Any]:
    return line(steps=[step(**changes)])


def acted(**action: Any) -> dict[str, Any]:
    return stepped(action=action)


UNSIZED = {"screenshot": "b.png", "action": {"type": "WAIT"}}
UNKNOWN = {"episode": "e", "instruction": "go", "steps": [step()]}


@every_row(
    ("wrong", "result"),
    [
        (line(instrction="go"), "line 2, field instrction: is not known (did you mean 'instruction'?)"),
        (stepped(extras={"text_patterns": "tea"}), "steps.0.extras: text_patterns must be a list of regular"),
        (stepped(extras={"text_patterns": ["tea("]}), "steps.0.extras: 'tea(' is not a regular expression"),
        (stepped(extras={"polygon": [[1, 2], [3, 4], [5]]}), "polygon must be a list of at least three [x, y]"),
        (stepped(low_level_instuction="x"), "field steps.0.low_level_instuction: is not known (did you mean 'low_level_in"),
        (line(steps=[{"screenshot": "a.png", "screenshot_size": [1, 1]}]), "line 2, field steps.0.action: is missing"),
        (line(frame="pixel"), "expected 'unified', 'pixels' or 'relative' (did you mean 'pixels'?) (got 'pixel')"),
        (UNKNOWN, "field episode: is not known (did you mean 'episode_id'?)"),
        ({"episode_id": "e", "instruction": "go", "steps": [step()]}, "field frame: is missing, but step 0 has places; exp"),
        ({"instruction": "go", "steps": [step()]}, "line 2, field episode_id: is missing"),
        (line(setting="low"), "line 2, field steps.0.low_level_instruction: is missing, but the setting 'low' gives the model"),
        (stepped(screenshot_size=[10**30, 5], targets=[[0, 0, 1, 1]]), "line 2, field steps.0.screenshot_size.0: "),
        (line(instruction=7), "line 2, field instruction: expected text (got 7)"),
        (line(steps=[step(), step(screenshot_size=[1080, "2400"])]), "line 2, field steps.1.screenshot_size.1: "),
        (stepped(screenshot_size=[0, 5]), "line 2, field steps.0.screenshot_size.0: "),
        (stepped(targets=[[1, 2, 3]]), "line 2, field steps.0.targets.0.3: is missing"),
        (stepped(targets=[[1, 2, 3, "4"]]), "line 2, field steps.0.targets.0.3: "),
        (acted(type="CLICK", point=[10**400, 5]), "field steps.0.action.point: int too large"),
        (line(**acted(type="CLICK", point=[1, 10**400]) | {"frame": "unified"}), "field steps.0.action.point: int too large"),
        (acted(type="TAP", point=[1, 1]), "field steps.0.action.type: expected 'CLICK', "),
        (acted(type="SCROL", point=[1, 1]), "(did you mean 'SCROLL'?) (got 'SCROL')"),
        (acted(point=[1, 1]), "field steps.0.action.type: is missing"),
        (acted(type="SCROLL", point=[1, 1], directon="up"), "action.directon: is not known (did you mean 'direction'?)"),
        (acted(type="CLICK"), "line 2, field steps.0.action.point: is missing"),
        (acted(type="CLICK", point=[1, True]), "steps.0.action.point: expected [x, y], got [1, True]"),
        (acted(type="CLICK", point=[1081, 5]), "steps.0.action.point: (1081, 5) lies outside the 1080"),
        (line(frame="relative"), "steps.0.action.point: (540, 1200) lies outside the 1 x 1 frame"),
        (line(frame="unified"), "line 2, field steps.0.action.point.y: expected 1000 or less (got 1200.0)"),
        (stepped(alternatives=[{"type": "WAIT"}, {"type": "CLICK", "point": [-1, 0]}]), "alternatives.1.point: (-1, 0) lies"),
        (stepped(groups={"app": 3}), "line 2, field steps.0.groups.app: "),
        (line(steps=[]), "line 2, field steps: must not be empty"),
        (line(steps=[5]), "line 2, field steps.0: expected an object (got 5)"),
        (line(episode_id=""), "line 2, field episode_id: must not be empty"),
        (line(episode_id="first"), "line 2, field episode_id: 'first' is already on line 1"),
        ('{"episode_id": "e",', "line 2: is not JSON (EOF while parsing"),
        ("[]", "line 2: expected an object (got [])"),
        (line(steps=[UNSIZED]), "field steps.0.screenshot_size: is missing, and cannot be taken from the image: the"),
    ],
)
def test_a_mistake_is_reported_by_file_line_and_field(wrong: Any, result: str, tmp_path: Path) -> None:
    lines = (line(episode_id="first"), wrong, line(episode_id="last"))
    with pytest.raises(DataError, match=re.escape(result)) as caught:
        loaded(tmp_path, *lines)
    assert str(caught.value).startswith(f"{tmp_path / 'episodes.jsonl'}, line 2")
    kept = load_benchmark("episodes", tmp_path).skipping_damaged()
    assert [episode.key.episode_id for episode in kept] == ["first", "last"] and len(kept.skipped) == 1


def test_a_folder_without_episodes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no episodes.jsonl or episodes.jsonl.gz; .* `guieval data prepare episodes "):
        load_benchmark("episodes", tmp_path)
    folder_of(tmp_path, "", "  ")
    with pytest.raises(DataError, match=r"has no episode$"):
        load_benchmark("episodes", tmp_path).index()


def test_blank_lines_a_byte_order_mark_and_a_missing_last_newline_do_no_harm(tmp_path: Path) -> None:
    first, second = (json.dumps(line(episode_id=name)).encode() for name in "ab")
    (tmp_path / "episodes.jsonl").write_bytes(b"\xef\xbb\xbf" + first + b"\r\n\n  \n" + second)
    benchmark = load_benchmark("episodes", tmp_path)
    assert [episode.key.episode_id for episode in benchmark] == ["a", "b"]
    assert [benchmark.load(ref).key.episode_id for ref in reversed(benchmark.index())] == ["b", "a"]


def test_a_packed_file_and_a_file_of_another_name_are_read(tmp_path: Path) -> None:
    text = json.dumps(line(split="train", subset="s")).encode() + b"\n"
    (tmp_path / "episodes.jsonl.gz").write_bytes(gzip.compress(text))
    (tmp_path / "more.jsonl").write_bytes(text.replace(b'"e"', b'"f"'))
    assert [str(episode.key) for episode in load_benchmark("episodes", tmp_path)] == ["episodes/s/e"]
    assert [ref.split for ref in load_benchmark("episodes", tmp_path, file="more.jsonl").index()] == ["train"]
    assert [str(episode.key) for episode in load_benchmark("episodes", tmp_path, file="more.jsonl")] == ["episodes/s/f"]
    with pytest.raises(UsageError, match=r"has no mor\.jsonl \(did you mean 'more\.jsonl'\?\);"):
        load_benchmark("episodes", tmp_path, file="mor.jsonl")
    with pytest.raises(UsageError, match="option file is 2024; expected text"):
        load_benchmark("episodes", tmp_path, file=2024)
    (tmp_path / "episodes.jsonl.gz").write_bytes(gzip.compress(text)[:-9])
    with pytest.raises(DataError, match=r"episodes\.jsonl\.gz: is damaged: it cannot be unpacked"):
        list(load_benchmark("episodes", tmp_path))


def test_a_file_that_changes_under_the_reader_is_noticed(tmp_path: Path) -> None:
    benchmark = load_benchmark("episodes", folder_of(tmp_path, line(episode_id="a"), line(episode_id="b")))
    refs = benchmark.index()
    folder_of(tmp_path, line(episode_id="b"), line(episode_id="a"))
    with pytest.raises(DataError, match="line 1, field episode_id: is not episode episodes/a any more"):
        benchmark.load(refs[0])


def test_the_index_is_a_sequence_of_references(tmp_path: Path) -> None:
    lines = line(episode_id="a", split="x"), line(episode_id="b", split="y", steps=[step()] * 3)
    refs = load_benchmark("episodes", folder_of(tmp_path, *lines)).index()
    assert [(ref.key.episode_id, ref.split, ref.length) for ref in refs] == [("a", "x", 1), ("b", "y", 3)]
    assert refs[-1] == refs[1:][0] == list(refs)[1]
    with pytest.raises(IndexError):
        refs[2]


def test_every_frame_gives_the_phone_back(tmp_path: Path) -> None:
    played = write_episodes(tmp_path, episodes=3, size=PHONE)
    lines = (tmp_path / "episodes.jsonl").read_text(encoding="utf-8").splitlines()
    assert [read_json(line)["frame"] for line in lines] == list(FRAMES)
    benchmark = load_benchmark("episodes", tmp_path)
    assert (benchmark.dataset, benchmark.setting, benchmark.protocol) == ("synthetic", "high", "guievalkit")
    for phone, episode in zip(played, benchmark, strict=True):
        assert [step.instruction for step in episode.steps] == [phone.task.instruction] * len(phone)
        for index, (result, step) in enumerate(zip(phone.steps, episode.steps, strict=True)):
            assert (step.screenshot, step.screenshot_size) == (screenshot_of(phone, index), PHONE)
            assert read_screenshot(tmp_path, step.screenshot, PHONE).format == "png"
            assert step.low_level_instruction == result.instruction
            assert len(step.alternatives) == len(result.alternatives)
            for ours, theirs in zip((step.action, *step.alternatives), (result.action, *result.alternatives), strict=True):
                if isinstance(theirs, act.Click | act.LongPress | act.Scroll):
                    assert isinstance(ours, act.Click | act.LongPress | act.Scroll)
                    assert ours.point == pytest.approx(theirs.point, abs=1e-9)
                    ours = ours.model_copy(update={"point": theirs.point})
                assert ours == theirs
            assert step.targets.array == pytest.approx(result.targets.array, abs=1e-9)


def test_the_documented_example_is_what_is_read(tmp_path: Path) -> None:
    [text] = re.findall(r"```json\n(.*?)```", (REPOSITORY / "docs" / "episodes.md").read_text(encoding="utf-8"), re.DOTALL)
    coffee, search = loaded(tmp_path, *map(json.loads, re.split(r"\n(?=\{)", text.strip())))
    assert coffee.steps[1].action == act.Click(point=act.Point(500.0, 500.0))
    assert coffee.steps[1].alternatives == (act.Click(point=act.Point(850.0, 500.0)),)
    assert coffee.steps[1].targets == act.Boxes([[100, 450, 900, 550]])
    assert coffee.steps[2].action == act.Scroll(point=act.Point(500.0, 750.0), direction="up")
    assert [each.action.type for each in coffee.steps] == ["OPEN", "CLICK", "SCROLL", "STOP"]
    first, second = search.steps
    assert first.action == act.Click(point=act.Point(500.0, 62.5))
    assert (second.split, second.dataset, second.extras) == ("train", "my-lab-tasks", {"annotator": "B"})


def test_every_field_is_documented() -> None:
    text = (REPOSITORY / "docs" / "episodes.md").read_text(encoding="utf-8")
    episode, steps = text.split("## An episode")[1].split("## A step")
    for part, fields in ((episode, EpisodeLine.model_fields), (steps, StepLine.model_fields)):
        assert [name for name in fields if f"| `{name}` |" not in part] == []


coordinates = st.floats(0, 1000)
points = st.builds(act.Point, coordinates, coordinates)
pixels = st.builds(
    lambda x, y: act.Point(x / 2 * 1000.0 / SIZE[0], y / 2 * 1000.0 / SIZE[1]), st.integers(0, 2160), st.integers(0, 4800)
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def actions(places: st.SearchStrategy[act.Point]) -> st.SearchStrategy[act.Action]:
    return st.one_of(
        st.builds(act.Click, point=places),
        st.builds(act.LongPress, point=places, duration=st.floats(0, 1e6)),
        st.builds(act.Scroll, point=places, direction=st.sampled_from(["up", "down", "left", "right"])),
        st.builds(act.Type, text=texts),
        st.builds(act.Open, app=texts),
        st.builds(act.Press, button=st.sampled_from(["BACK", "RECENT"])),
        st.builds(act.Wait, duration=st.floats(0, 1e6)),
        st.builds(act.Stop, status=st.sampled_from(["finish", "impossible"])),
        st.builds(
            act.Unsupported,
            name=texts,
            arguments=st.dictionaries(texts, st.one_of(st.integers(), texts, st.none())),
            device=st.none() | st.builds(act.Drag, start=st.none() | places, end=places),
        ),
    )


PLACED: dict[str, Any] = {"benchmark": "episodes", "dataset": "d", "subset": "part", "split": "train", "setting": "grounding"}
PLACED |= {"episode_id": "e/1", "step_index": 0, "episode_length": 1, "screenshot": "s.png", "screenshot_size": SIZE}


def steps_of(places: st.SearchStrategy[act.Point], boxes: st.SearchStrategy[act.Boxes]) -> st.SearchStrategy[StepTaskModel]:
    return st.builds(
        StepTaskModel,
        **{name: st.just(value) for name, value in PLACED.items()},
        instruction=texts,
        low_level_instruction=st.none() | texts,
        action=actions(places),
        alternatives=st.lists(actions(places), max_size=2).map(tuple),
        targets=boxes,
        groups=st.dictionaries(texts, texts, max_size=2),
        extras=st.dictionaries(texts, st.one_of(st.integers(), st.floats(allow_nan=False), texts, st.lists(texts)), max_size=2),
    )


finite = st.floats(allow_nan=False, allow_infinity=False)
box_lists = st.lists(st.tuples(finite, finite, finite, finite), max_size=3).map(act.Boxes)
pixel_boxes = st.lists(st.tuples(pixels, pixels).map(lambda pair: (*pair[0], *pair[1])), max_size=3).map(act.Boxes)


def read_back(root: Path, episode: Episode) -> Episode:
    (root / "episodes.jsonl").write_bytes(episode_line(episode) + b"\n")
    [found] = load_benchmark("episodes", root)
    return found


@settings(max_examples=60)
@given(first=steps_of(points, box_lists), second=steps_of(points, box_lists))
def test_what_is_written_is_read_back_equal(
    first: StepTaskModel, second: StepTaskModel, tmp_path_factory: pytest.TempPathFactory
) -> None:
    both = Episode(
        steps=tuple(each.model_copy(update={"step_index": n, "episode_length": 2}) for n, each in enumerate((first, second)))
    )
    assert read_back(tmp_path_factory.getbasetemp(), both) == both


@settings(max_examples=40)
@given(step=steps_of(pixels, pixel_boxes))
def test_whole_and_half_pixels_are_written_as_such_and_come_back_bit_for_bit(
    step: StepTaskModel, tmp_path_factory: pytest.TempPathFactory
) -> None:
    episode = Episode(steps=(step,))
    assert read_json(episode_line(episode))["frame"] == "pixels"
    [found] = read_back(tmp_path_factory.getbasetemp(), episode).steps
    assert found == step
    assert found.targets.array.tobytes() == step.targets.array.tobytes()


def test_an_episode_that_no_line_can_hold_is_reported(tmp_path: Path) -> None:
    found = only(tmp_path)
    for changes in ({"instruction": "half an emoji \ud83d"}, {"extras": {"callable": print}}):
        with pytest.raises(DataError, match="episode episodes/e: cannot be written as JSON"):
            episode_line(Episode(steps=(found.model_copy(update=changes),)))
    steps = [found.model_copy(update={"step_index": n, "episode_length": 2, "split": f"s{n}"}) for n in range(2)]
    with pytest.raises(DataError, match="episode episodes/e, step 1, field split: differs from that of step 0"):
        episode_line(Episode(steps=tuple(steps)))


def test_real_episodes_of_ui_s1_are_read_back_equal(shared_data: Path, tmp_path: Path) -> None:
    native: ABCBenchmark = load_benchmark("androidcontrol", shared_data / "ui_s1")
    episodes = [native.load(ref) for ref in native.index()[:200]]
    (tmp_path / "episodes.jsonl").write_bytes(b"".join(episode_line(episode) + b"\n" for episode in episodes))
    found = load_benchmark("episodes", tmp_path)
    renamed = [each.model_copy(update={"benchmark": "episodes"}) for episode in episodes for each in episode.steps]
    assert [each for episode in found for each in episode.steps] == renamed
    assert re.findall(rb'"frame":"(\w+)"', (tmp_path / "episodes.jsonl").read_bytes()) == [b"pixels"] * 200
