"""The size in which a model is sent a screenshot, and in which frame it is therefore answered."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import PIL.Image
import pytest

from guieval.actions import Click, Point
from guieval.conformance.examples import example_step
from guieval.data.screenshots import picture, read_screenshot
from guieval.frames import ResizedPixels, Size
from guieval.models import ABCModel, ImageRef, ModelConfig
from guieval.registry import build_model, load_model
from guieval.steps import Setting
from tests.rows import every_row

from .steps import CLICK, PHONE, adapter, step

LIMITED: dict[str, Any] = {"min_pixels": 256 * 28 * 28, "max_pixels": 1280 * 28 * 28}


@every_row(
    ("model", "size", "setting", "sent", "native"),
    [
        (adapter("qwen2_5_vl"), PHONE, "high", None, (546, 1806)),
        (adapter("qwen2_5_vl", **LIMITED), PHONE, "high", (672, 1484), (336, 1113)),
        (adapter("gui_owl", **LIMITED), PHONE, "high", (672, 1484), (336, 1113)),
        # 330 x 210 rounds to 12 x 8 patches of 28; 75,264 pixels are below the computer prompt's 100 * 28 * 28, and grow by
        # sqrt(78,400 / 69,300)
        (adapter("gui_owl"), (330, 210), "high", None, (168, 168)),
        (adapter("gui_owl"), (330, 210), "grounding", (364, 224), (182, 168)),
        # 12,800 patches of 28 x 28; 4000 x 4000 shrinks to the largest square of whole patches below that
        (adapter("ui_s1"), (4000, 4000), "high", (3164, 3164), (1582, 2373)),
        (adapter("ui_s1"), PHONE, "high", None, (546, 1806)),
        (load_model("infigui-r1-3b"), PHONE, "high", None, (546, 1806)),
        # 6400 tokens: 2986 x 1679 before rounding down to multiples of 28; 5600 tokens: 2793 x 1571
        (load_model("infigui-r1-3b"), (3840, 2160), "high", (2968, 1652), (1484, 1239)),
        (load_model("infigui-r1-3b"), (3840, 2160), "grounding", (2772, 1568), (1386, 1176)),
        (adapter("infigui_r1", max_pixels=1280 * 28 * 28), PHONE, "high", (672, 1484), (336, 1113)),
        (adapter("infigui_r1", max_pixels=1280 * 28 * 28), PHONE, "grounding", (672, 1484), (336, 1113)),
        # 1440 x 3120 rounds to 1428 x 3108 = 4,438,224 pixels, above 4096 tokens: divided by sqrt(4,492,800 / 3,211,264) =
        # 1.1828, that is 1217.4 x 2637.8, and rounded down to multiples of 28
        (adapter("mimo_vl"), (1440, 3120), "high", (1204, 2632), (602, 1974)),
        (adapter("mimo_vl"), PHONE, "high", None, (546, 1806)),
        (adapter("gui_r1", min_pixels=262144, max_pixels=1280 * 28 * 28), PHONE, "high", (672, 1484), (336, 1113)),
        (adapter("ui_r1", max_pixels=1_003_520), PHONE, "high", (672, 1484), (336, 1113)),  # README of Qwen2.5-VL
        (load_model("ui-venus-navi-7b"), PHONE, "high", (644, 1428), (322, 1071)),
        (load_model("ui-venus-navi-72b"), PHONE, "high", None, (546, 1806)),
        (load_model("ui-venus-ground-7b"), PHONE, "high", None, (546, 1806)),
        (load_model("ui-venus-ground-72b"), PHONE, "high", (1204, 2632), (602, 1974)),
        # the longer side is at most 1120
        (adapter("agentcpm_gui"), (1080, 2400), "high", (504, 1120), (500, 750)),
        (adapter("agentcpm_gui"), (1152, 2376), "high", (543, 1120), (500, 750)),
        (adapter("agentcpm_gui"), (1920, 1080), "high", (1120, 630), (500, 750)),
        (adapter("agentcpm_gui"), (540, 1080), "high", None, (500, 750)),
    ],
    ids=lambda value: value.config.name if isinstance(value, ABCModel) else None,
)
def test_one_place_on_a_screen_in_the_size_that_is_sent(
    model: ABCModel, size: Size, setting: Setting, sent: Size | None, native: tuple[float, float]
) -> None:
    task = step(screenshot_size=size, setting=setting)
    assert model.prepare_input(task, ()).images == (ImageRef(task, sent),)
    frame = model.frame(task)
    assert frame.quantise(CLICK.point, size) == native
    assert sent is None or not isinstance(frame, ResizedPixels) or frame.extent(size) == sent
    written = model.render(task, CLICK)
    assert all(str(number) in written for number in native)
    assert model.parse_response(task, written).action == CLICK


@every_row(
    ("name", "size", "shown", "text", "point"),
    [
        ("phi-ground-4b-7c", PHONE, (302, 672), "<box>120, 740, 180, 760</box>", (500, 750)),  # 302.4 of 1008 pixels
        ("phi-ground-4b-7c", (300, 200), (1008, 672), "<point>250, 500</point>\n<point>1, 1</point>", (250, 500)),
        ("phi-ground-4b-7c", (1001, 2400), (280, 672), "[279, 0, 279, 0]", (1000, 0)),  # the edge is at 278.06
        ("phi-ground-4b-7c", PHONE, (302, 672), "(301, 750)", None),  # on the white part
        ("phi-ground-any", (1920, 1080), (1680, 945), "<x>5000</x><y>1875</y>", (500, 200)),
    ],
)
def test_a_place_on_a_canvas(name: str, size: Size, shown: Size, text: str, point: tuple[float, float] | None) -> None:
    model, task = load_model(name), step(screenshot_size=size, setting="grounding")
    (image,) = model.prepare_input(task, ()).images
    assert (image.resize, image.size) == (shown, (1680, 1008) if name == "phi-ground-any" else (1008, 672))
    action = model.parse_response(task, text).action
    assert isinstance(action, Click) is (point is not None)
    assert not isinstance(action, Click) or action.point == pytest.approx(point)


def test_a_canvas_is_white_beside_the_screenshot(tmp_path: Path) -> None:
    PIL.Image.new("RGB", (40, 20), (255, 0, 0)).save(tmp_path / "s.png")
    image = picture(read_screenshot(tmp_path, "s.png", (40, 20), (20, 10), canvas=(30, 25)).data)
    assert image.size == (30, 25) and image.getpixel((19, 9)) == (255, 0, 0)
    assert image.getpixel((20, 0)) == image.getpixel((0, 10)) == (255, 255, 255)


STANDARD = {"max_side": 1568, "patch": 28, "max_patches": 1568}
HIGH = {"max_side": 2576, "patch": 28, "max_patches": 4784}


def sent(options: dict[str, int], size: Size) -> Size:
    model = build_model(ModelConfig(name="m", adapter="anthropic_computer", options=options))
    (image,) = model.prepare_input(example_step(Click(point=Point(500.0, 500.0)), size=size), ()).images
    return image.resize or size


@every_row(
    ("options", "size", "expected"),
    [
        *((STANDARD, (200, 200), (200, 200)), (STANDARD, (1092, 1092), (1092, 1092)), (STANDARD, (1920, 1080), (1456, 819))),
        (STANDARD, (2000, 1500), (1270, 952)),  # by the page's program; its table has 1269
        *((STANDARD, (3840, 2160), (1456, 819)), (STANDARD, (1075, 1520), (924, 1307)), (HIGH, (1920, 1080), (1920, 1080))),
        *((HIGH, (2000, 1500), (2000, 1500)), (HIGH, (3840, 2160), (2576, 1449)), (HIGH, (1075, 1520), (1075, 1520))),
    ],
)
def test_anthropics_own_examples(options: dict[str, int], size: Size, expected: Size) -> None:
    """The tables of platform.claude.com, "Vision" and "Coordinates and bounding boxes", as of 22 August 2026."""
    assert sent(options, size) == expected


@pytest.mark.parametrize("options", [STANDARD, HIGH, {"max_side": 6000, "patch": 32, "max_patches": 10_000}])
def test_a_size_that_is_sent_is_within_all_limits_and_a_longer_side_is_not(options: dict[str, int]) -> None:
    side, patch, most = options["max_side"], options["patch"], options["max_patches"]

    def fits(size: Size) -> bool:
        across, along = (math.ceil(each / patch) for each in size)
        return max(across, along) * patch <= side and across * along <= most

    draw = random.Random(1)
    for _ in range(150):
        size = draw.randint(30, 9000), draw.randint(30, 9000)
        long, short = sorted(sent(options, size), reverse=True)
        assert fits((long, short)) and long <= max(size)
        assert abs(short - long * min(size) / max(size)) <= 0.5 + 1e-9, "its proportions"
        assert long == max(size) or not fits((long + 1, max(1, round((long + 1) * min(size) / max(size))))), "enlarged"


def test_without_patches_the_side_and_the_pixels_count() -> None:
    assert sent({"max_side": 1568, "max_pixels": 1_150_000}, (2000, 1000)) == (1516, 758)
    assert sent({}, (4000, 3000)) == (4000, 3000)
