"""Perturbed steps: where distractors are, what stays as it was, and what runs on them say."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from guieval.actions import Boxes, Click
from guieval.data.benchmark import ABCBenchmark, EpisodeRef
from guieval.errors import DataError, UsageError
from guieval.frames import PER_999
from guieval.metrics.paired import mcnemar
from guieval.perturbed.benchmark import Perturbed
from guieval.perturbed.kinds import KINDS, variants
from guieval.perturbed.scenes import DrawingSettings
from guieval.registry import load_benchmark
from guieval.steps import StepTaskModel
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY
from tests.perturbed.lured import follows

LURES = [kind.name for kind in KINDS.values() if kind.lure]
AGENT = ("--model", "lured", "--adapter", REPOSITORY / "tests" / "perturbed" / "lured.py", "--set", "engine=local")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "guieval" / "perturbed"


def recorded(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> ABCBenchmark:
    """A recorded set; UI-S1's AndroidControl with screens of other episodes, since its own are not published with it."""
    if name == "demo":
        return load_benchmark("demo", None, episodes=3)
    shared: Path = request.getfixturevalue("shared_data")
    if name == "screenspot":
        return load_benchmark(name, shared / name)
    folder = tmp_path / "ui_s1"
    folder.mkdir()
    shutil.copy(shared / "ui_s1" / "android_control_evaluation_std.jsonl.gz", folder)
    benchmark = load_benchmark(name, folder)
    screens = sorted((shared / "androidcontrol_screens").glob("*/*.webp"))
    for number, step in enumerate(step for ref in shortest(benchmark, 2) for step in benchmark.load(ref).steps):
        (folder / step.screenshot).parent.mkdir(exist_ok=True)
        with Image.open(screens[number % len(screens)]) as image:
            image.convert("RGB").resize(step.screenshot_size).save(folder / step.screenshot, compress_level=1)
    return benchmark


def shortest(benchmark: ABCBenchmark, most: int) -> list[EpisodeRef]:
    return sorted((ref for ref in benchmark.index() if ref.length != 2), key=lambda ref: ref.length)[:most]


def steps(
    benchmark: ABCBenchmark, drawing: DrawingSettings, most: int = 2
) -> Iterator[tuple[StepTaskModel, StepTaskModel, ABCBenchmark]]:
    """The steps of some episodes as they are, and perturbed."""
    drawn = Perturbed(benchmark, drawing, lambda task: PER_999)
    for ref in shortest(benchmark, most):
        yield from ((*pair, drawn) for pair in zip(benchmark.load(ref).steps, drawn.load(ref).steps, strict=True))


def pixels(root: Path, name: str) -> NDArray[np.int16]:
    with Image.open(root / name) as image:
        return np.asarray(image.convert("RGB"), dtype=np.int16)


@pytest.mark.parametrize("name", ["demo", "androidcontrol", "screenspot"])
def test_a_distractor_is_where_its_record_says_and_off_the_target(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Else a click on the target would count as a lure, or one on the distractor would not."""
    benchmark = recorded(name, tmp_path, request)
    wrong, drawn = [], set()
    for kind in LURES:
        for variant in (kind, KINDS[kind].neutral or "") if name == "demo" else (kind,):
            for step, after, set_ in steps(benchmark, DrawingSettings(variant)):
                how = after.perturbation
                assert how is not None and pixels(set_.root, how.clean).shape == pixels(benchmark.root, step.screenshot).shape
                changed = np.abs(pixels(set_.root, after.screenshot) - pixels(set_.root, how.clean)).max(axis=2) > 24
                if how.skipped:
                    wrong += [f"{variant} {step.key}: drawn although {how.skipped}"] * bool(changed.any() or len(how.lure))
                    continue
                drawn.add(kind)
                (left, top, right, bottom), (width, height) = how.lure[0], step.screenshot_size
                inside = changed[round(top * height / 1000) : round(bottom * height / 1000)]
                inside = inside[:, round(left * width / 1000) : round(right * width / 1000)]
                outside = changed.sum() - inside.sum()
                wrong += [f"{variant} {step.key}: off the screen"] * (min(how.lure[0]) < 0 or max(how.lure[0]) > 1000)
                if kind == "popup-modal":
                    continue  # it covers what it likes, and dims the rest
                wrong += [f"{variant} {step.key}: nothing is in its box"] * (not inside.any())
                wrong += [f"{variant} {step.key}: {outside} pixels changed elsewhere"] * bool(outside > 0.08 * width * height)
                if isinstance(step.action, Click):
                    wrong += [f"{variant} {step.key}: on the target"] * bool(how.lure.containing(step.action.point).any())
                same = {"screenshot", "perturbation"}
                wrong += [f"{variant} {step.key}: another label"] * (
                    step.model_dump(exclude=same) != after.model_dump(exclude=same)
                )
    assert wrong == []
    assert drawn == set(LURES)


def test_the_same_bytes_for_the_same_seed_and_the_neutral_box_in_the_same_place(cache: Path) -> None:
    """Else models would be compared on different pictures, or a distractor with a box somewhere else."""
    benchmark = load_benchmark("demo", None, episodes=2)

    def seen(drawing: DrawingSettings) -> list[tuple[bytes, Boxes]]:
        shutil.rmtree(cache, ignore_errors=True)
        found = [(after, of.root) for _, after, of in steps(benchmark, drawing)]
        return [((root / each.screenshot).read_bytes(), each.perturbation.lure) for each, root in found if each.perturbation]

    one = seen(DrawingSettings("popup-free"))
    assert one == seen(DrawingSettings("popup-free"))
    others = [DrawingSettings(f"popup-{name}") for name in ("free", "free-neutral", "coordinate")]
    others += [
        DrawingSettings("popup-free", 0.6),
        DrawingSettings("popup-free", 1.0, "far"),
        DrawingSettings("popup-free", seed=1),
    ]
    places = [[box for _, box in seen(each)] for each in others]
    assert [each == places[0] for each in places] == [True, True, True, False, False, False]


def test_closing_is_right_for_a_dialog_and_the_text_names_its_own_place_in_the_models_frame() -> None:
    benchmark = load_benchmark("demo", None, episodes=1)
    for _, after, _ in steps(benchmark, DrawingSettings("popup-modal")):
        how = after.perturbation
        assert how is not None and isinstance(after.action, Click) and how.close == after.targets
        assert how.close.containing(after.action.point).all() and not how.lure.containing(after.action.point).any()
    aims = [after.perturbation for _, after, _ in steps(benchmark, DrawingSettings("popup-coordinate")) if after.perturbation]
    printed = [(how.obeys.point, how.lure) for how in aims if isinstance(how.obeys, Click)]
    assert printed and all(lure.containing(point).all() for point, lure in printed)


def test_a_border_moves_every_place_by_the_same_map() -> None:
    """Its inverse is right within half a pixel, else padded steps would be harder for their labels and not for the model."""
    for step, after, _ in steps(load_benchmark("demo", None, episodes=2), DrawingSettings("padding")):
        (width, height), (wide, high) = step.screenshot_size, after.screenshot_size
        border = (wide - width) / 2, (high - height) / 2

        def back(x: float, y: float) -> tuple[float, float]:
            return x * wide / 1000 - border[0], y * high / 1000 - border[1]  # noqa: B023

        pairs = [
            (box[at : at + 2], moved[at : at + 2])
            for box, moved in zip(step.targets, after.targets, strict=True)
            for at in (0, 2)
        ]
        if isinstance(step.action, Click) and isinstance(after.action, Click):
            pairs.append((step.action.point, after.action.point))
        for (x, y), moved in pairs:
            assert back(*moved) == pytest.approx((x * width / 1000, y * height / 1000), abs=0.5)
    sizes = {
        (before.screenshot_size, after.screenshot_size)
        for before, after, _ in steps(load_benchmark("demo", None, episodes=1), DrawingSettings("scale-0.7"))
    }
    assert sizes == {((360, 800), (252, 560))}


def test_what_cannot_be_drawn_is_said(guieval: CommandLine, tmp_path: Path) -> None:
    run = ("run", *AGENT, "--bench", "demo", "--limit", "1", "--out", tmp_path / "run", "--perturb")
    assert "unknown perturbation 'notifcation' (did you mean 'notification'?); known: popup-free" in guieval.sentence(
        *run, "notifcation"
    )
    assert "the theme of an app cannot be changed in a screenshot" in guieval.sentence(*run, "twin,theme")
    assert "online" in guieval.sentence("run", *AGENT, "--bench", "demo", "--mode", "online", "--perturb", "twin")
    assert "near" in guieval.sentence(*run, "twin", "--set", "perturb_placement=nearby")
    assert variants("twin, renamed") == [None, "twin", "renamed", "twin-neutral"]
    with pytest.raises(UsageError, match="known: popup-free"):
        variants("renamed-neutral")
    benchmark = load_benchmark("demo", tmp_path / "data", episodes=1)
    first = benchmark.load(benchmark.index()[0]).steps[0]
    before = sorted(path for path in benchmark.root.rglob("*"))
    list(steps(benchmark, DrawingSettings("twin"), 1))
    assert sorted(path for path in benchmark.root.rglob("*")) == before  # nothing is written into a data folder
    (benchmark.root / first.screenshot).write_bytes(b"no picture")
    with pytest.raises(DataError, match="is not a"):
        list(steps(benchmark, DrawingSettings("twin"), 1))


def test_a_run_counts_the_lures_that_neither_place_nor_box_explains(guieval: CommandLine, tmp_path: Path) -> None:
    """From the command to the table: clean, drawn and neutral runs, each with its identity, and the rates of a known agent."""
    out = tmp_path / "run"
    kinds = ("notification", "popup-modal", "popup-coordinate")
    done = guieval("run", *AGENT, "--bench", "demo", "--perturb", ",".join(kinds), "--limit", "5", "--out", out, "--json")
    assert done.code == 0, done.err
    names = {"clean", *kinds, "notification-neutral", "popup-modal-neutral", "popup-free-neutral"}
    assert {path.name for path in out.iterdir() if path.is_dir()} == names
    shown, found = (
        {each["kind"]["name"]: each for each in json.loads(text)["effects"]}
        for text in (done.out, guieval("study", "perturb", out, "--json").out)
    )
    assert shown == found
    records = [json.loads(line) for line in (out / "notification" / "steps.jsonl").read_text().splitlines()]
    tasks = [record["task"] for record in records]
    drawn = [(task["episode_id"], task["step_index"]) for task in tasks if "skipped" not in task["perturbation"]]
    lured, boxed = (sum(follows(*key, neutral=neutral) for key in drawn) for neutral in (False, True))
    note = found["notification"]
    assert (note["lure"]["n"], sum(note["skipped"].values())) == (len(drawn), len(tasks) - len(drawn))
    assert (note["lure"]["count"], note["neutral"]["count"], note["undrawn"]["count"]) == (lured, boxed, 0)
    assert note["attributable"]["value"] == pytest.approx((lured - boxed) / len(drawn))
    assert note["change"]["value"] == pytest.approx(-lured / len(drawn)) and note["clean"]["value"] == 1
    flags = np.arange(len(drawn)) >= lured
    assert note["test"]["p_value"] == pytest.approx(mcnemar(np.ones(len(drawn), np.bool_), flags).p_value)
    assert sum(note["verdicts"].values()) == len(drawn) and note["verdicts"]["lure"] == lured
    modal, printed = found["popup-modal"], found["popup-coordinate"]
    assert printed["obeyed"]["count"] == printed["lure"]["count"] > 0 and note["obeyed"]["value"] is None
    assert modal["verdicts"]["close"] + modal["verdicts"]["lure"] == modal["lure"]["n"] and "target" not in modal["verdicts"]
    assert "perturbed: notification" in guieval("score", out / "notification").out
    compared = guieval("compare", out / "notification", out / "clean")
    said = "differ by what is drawn into them (notification, strength 1, placement auto, seed 0, version 1 and nothing)"
    assert said in " ".join(compared.out.split())
    assert "perturb_seed" in guieval.sentence("run", "--resume", out / "notification", *AGENT[2:], "--set", "perturb_seed=3")
    assert "there is no perturbed run with its clean one" in guieval.sentence("study", "perturb", out / "notification")
    report = guieval("report", out / "notification", "--out", tmp_path / "page")
    assert report.code == 0, report.err
    chunk = next((tmp_path / "page").rglob("steps-0*.js")).read_text()
    assert '"lure":[[' in chunk and '"clean":"' in chunk
