"""Steps and replies in every family's format: recorded ones of real models, and written ones, right, wrong and damaged.

The tests and ``perf/rewards.py`` go by them. A step's label is made up where the recorded reply's own is not known; what is
compared is how two paths judge one pair, and for that any label will do.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from guieval.actions import Action, Box, Boxes, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.errors import ParseError
from guieval.history.modes import get_mode
from guieval.journal import SCHEMA, Journal
from guieval.models import ABCModel
from guieval.registry import list_adapters, load_benchmark
from guieval.steps import EpisodeKey, Sample, StepOutcome, StepRecord, StepTaskModel
from tests.model_adapters.replies import FAMILIES, OTHERS, rows, screenshot_sizes, size_of, target_of
from tests.model_adapters.steps import PHONE, adapter, step

UNJUDGED = StepOutcome(verdict="wrong")
"""What stands in a journal before it is judged again."""


class Pair(NamedTuple):
    """A step, and what a model answered to it."""

    task: StepTaskModel
    text: str


class Answered(NamedTuple):
    """The pairs that one model's adapter reads; ``source`` says where the replies are from."""

    source: str
    model: ABCModel
    pairs: list[Pair]


def tasks(count: int, seed: int = 0, **changes: Any) -> list[StepTaskModel]:
    """Steps with labels of every kind, with alternatives, boxes and without, on data sets that protocols know apart."""
    rng = random.Random(seed)
    return [step(**{**_label(rng), "episode_id": f"e{number}", "episode_length": 1, **changes}) for number in range(count)]


def actions(count: int, tasks: Sequence[StepTaskModel], seed: int = 1) -> list[Action | None]:
    """Answers to steps: a third right or nearly so, the others of any kind, some none at all."""
    rng = random.Random(seed)
    return [_answer(rng, tasks[number % len(tasks)]) for number in range(count)]


def recorded(shared_data: Path) -> Iterator[Answered]:
    """Every recorded reply of a family that has an adapter, and the others read by one that is not theirs."""
    sizes = screenshot_sizes(shared_data)
    rng = random.Random(3)
    for family in FAMILIES:
        model = adapter(family.adapter, **family.options)
        pairs: list[Pair] = []
        for row in rows(shared_data, family.file):
            if not family.which(row):
                continue
            size = size_of(row, sizes)
            tried = (size,) if size is not None else family.sizes
            label = _label(rng)
            target = None if size is None else target_of(row, size)
            if target is not None:
                label = {"action": Click(point=Box(*target).centre), "targets": Boxes([target])}
            chosen = next((each for each in tried if _reads(model, row.text, each, family.setting(row))), tried[0])
            label |= {"screenshot_size": chosen, "setting": family.setting(row)}
            pairs.append(_pair(len(pairs), row.text, **label))
        yield Answered(f"model_outputs/{family.title}", model, pairs)
    foreign = adapter("qwen2_5_vl")
    texts = [row.text for file in sorted(OTHERS) for row in rows(shared_data, file)]
    yield Answered("model_outputs, no adapter", foreign, [_pair(n, text, **_label(rng)) for n, text in enumerate(texts)])


def kairos(shared_data: Path) -> Answered:
    """OS-Atlas's action of every step of OS-Kairos, with the teacher's as the label."""
    model = adapter("os_atlas")
    with gzip.open(shared_data / "kairos_test" / "Kairos_test_inputscore.json.gz", "rt", encoding="utf-8") as stream:
        lines = json.load(stream)
    pairs: list[Pair] = []
    for line in lines:
        text, label = (f"actions:\n{line[key]}" for key in ("osatlas_action", "teacher_action"))
        reference = _read(model, label)
        if reference is not None:
            pairs.append(_pair(len(pairs), text, action=reference, instruction=line["task"], dataset="os-kairos"))
    return Answered("kairos_test", model, pairs)


def os_atlas(shared_data: Path) -> Answered:
    """The reference answers of OS-Atlas's evaluation, each as an answer to every step of its file."""
    model = adapter("os_atlas")
    pairs: list[Pair] = []
    for file in sorted((shared_data / "os_atlas_eval").glob("*.jsonl")):
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
        answers = [line["conversations"][1]["value"] for line in lines]
        for label in answers:
            reference = _read(model, label)
            if reference is not None:
                pairs += [_pair(len(pairs) + n, text, action=reference) for n, text in enumerate(answers)]
    return Answered("os_atlas_eval", model, [Pair(_named(n, pair.task), pair.text) for n, pair in enumerate(pairs)])


def written(episodes: int = 4) -> Iterator[Answered]:
    """The demo's steps answered in every family's format: the reference, another step's, a random action, cut and doubled."""
    benchmark = load_benchmark("demo", episodes=episodes)
    steps = [task for ref in benchmark.index() for task in benchmark.load(ref).steps]
    for name in list_adapters():
        model, rng = adapter(name), random.Random(4)
        texts: list[tuple[StepTaskModel, str]] = []
        for task in steps:
            for action in (task.action, rng.choice(steps).action, _any(rng)):
                try:
                    text = model.render(task, action, "I look at the screen.", None)
                except ValueError:  # no word for it in this format
                    continue
                texts += [(task, text), (task, text[: rng.randrange(1 + len(text))]), (task, text + "\n" + text)]
        yield Answered(f"written/{name}", model, [Pair(_named(n, task), text) for n, (task, text) in enumerate(texts)])


def run_of(directory: Path, answered: Answered) -> Path:
    """The pairs as a run left them: a journal whose raw replies are yet to be read and judged."""
    mode = get_mode("offline")
    space = answered.model.action_space.to_json()
    manifest = {
        "schema": SCHEMA,
        "config": {"model": answered.model.config.name, "thinking": None},
        "model": answered.model.config.model_dump(mode="json"),
        "benchmark": {"name": "b"},
        "protocol": {"name": "guievalkit"},
        "mode": {"name": mode.name, "history": mode.history, "stop": mode.stop},
        "action_spaces": {"model": space, "benchmark": space},
    }
    plan = {pair.task.episode_key: range(1) for pair in answered.pairs}
    with Journal(directory) as journal:
        journal.start(manifest, plan, [_ref(key) for key in plan])
        for pair in answered.pairs:
            sample = Sample(raw_response=pair.text, outcome=UNJUDGED)
            journal.append(StepRecord(task=pair.task, samples=(sample,)))
    return directory


def _ref(key: EpisodeKey) -> Any:
    from guieval.data.benchmark import EpisodeRef

    return EpisodeRef(key, 1)


def _pair(number: int, text: str, **changes: Any) -> Pair:
    return Pair(step(**{**changes, "episode_id": f"e{number}", "episode_length": 1}), text)


def _named(number: int, task: StepTaskModel) -> StepTaskModel:
    return task.model_copy(update={"episode_id": f"e{number}", "step_index": 0, "episode_length": 1})


def _reads(model: ABCModel, text: str, size: tuple[int, int], setting: Any) -> bool:
    try:
        model.parse_response(step(screenshot_size=size, setting=setting), text)
    except ParseError:
        return False
    return True


def _read(model: ABCModel, text: str) -> Action | None:
    try:
        return model.parse_response(step(), text).action
    except ParseError:
        return None


def _point(rng: random.Random) -> Point:
    return Point(rng.choice([0.0, 250.0, 500.0, 1000.0, rng.uniform(0, 1000)]), rng.uniform(0, 1000))


_KINDS: tuple[Callable[[random.Random], Action], ...] = (
    lambda rng: Click(point=_point(rng)),
    lambda rng: Click(point=_point(rng)),
    lambda rng: Click(point=_point(rng)),
    lambda rng: LongPress(point=_point(rng), duration=rng.choice([100.0, 200.0, 1000.0])),
    lambda rng: Scroll.model_validate({"point": _point(rng), "direction": rng.choice(["up", "down", "left", "right"])}),
    lambda rng: Type(text=rng.choice(["", "coffee", "Coffee near the station", "tea"])),
    lambda rng: Open(app=rng.choice(["Maps", "Google Maps", "maps"])),
    lambda rng: Press.model_validate({"button": rng.choice(["BACK", "HOME", "ENTER"])}),
    lambda rng: Wait(),
    lambda rng: Stop.model_validate({"status": rng.choice(["finish", "impossible"])}),
    lambda rng: Unsupported(name=rng.choice(["drag", "hotkey"]), arguments={"n": rng.choice([1, 2])}),
)


def _any(rng: random.Random) -> Action:
    return rng.choice(_KINDS)(rng)


def _label(rng: random.Random) -> dict[str, Any]:
    """Action, alternatives, boxes and data set of a step."""
    action = _any(rng)
    boxes: list[list[float]] = []
    if isinstance(action, Click | LongPress) and rng.random() < 0.8:
        x, y = action.point
        width, height = rng.choice([0.0, 30.0, 120.0]), rng.choice([20.0, 60.0])
        boxes = [[x - width, y - height, x + width / 2, y + height]]
    for _ in range(rng.choice([0, 0, 2, 12])):
        x, y = rng.uniform(0, 900), rng.uniform(0, 900)
        boxes.append([x, y, x + rng.uniform(5, 100), y + rng.uniform(5, 100)])
    alternatives = tuple(_any(rng) for _ in range(rng.choice([0, 0, 0, 1, 2])))
    dataset = rng.choice(["androidcontrol", "aitz", "gui-odyssey", "hypertrack"])
    size = rng.choice([PHONE, (1000, 500)])
    given = {"action": action, "alternatives": alternatives, "targets": Boxes(boxes)}
    return {**given, "dataset": dataset, "screenshot_size": size}


def _answer(rng: random.Random, task: StepTaskModel) -> Action | None:
    if rng.random() < 0.05:
        return None
    if rng.random() < 0.6:
        return _any(rng)
    near = rng.choice((task.action, *task.alternatives))
    if isinstance(near, Click):
        x, y = (min(1000.0, max(0.0, side + rng.gauss(0, 30))) for side in near.point)
        return Click(point=Point(x, y))
    if isinstance(near, Type):
        return Type(text=near.text[: rng.randrange(1 + len(near.text))] + rng.choice(["", "x"]))
    return near
