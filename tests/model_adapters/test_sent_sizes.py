"""The size in which a hosted model is sent a screenshot."""

from __future__ import annotations

import math
import random

import pytest

from guieval.actions import Click, Point
from guieval.frames import Size
from guieval.models import ModelConfig
from guieval.registry import build_model
from guieval.testing.conformance.adapters import example_step
from tests.rows import every_row

STANDARD = {"max_side": 1568, "patch": 28, "max_patches": 1568}
HIGH = {"max_side": 2576, "patch": 28, "max_patches": 4784}


def sent(options: dict[str, int], size: Size) -> Size:
    model = build_model(ModelConfig(name="m", adapter="anthropic_computer", options=options))
    (image,) = model.prepare_input(example_step(Click(point=Point(500.0, 500.0)), size=size), ()).images
    return image.resize or size


@every_row(
    ("options", "size", "expected"),
    [
        (STANDARD, (200, 200), (200, 200)),
        (STANDARD, (1092, 1092), (1092, 1092)),
        (STANDARD, (1920, 1080), (1456, 819)),
        (STANDARD, (2000, 1500), (1270, 952)),  # by the page's program; its table has 1269
        (STANDARD, (3840, 2160), (1456, 819)),
        (STANDARD, (1075, 1520), (924, 1307)),
        (HIGH, (1920, 1080), (1920, 1080)),
        (HIGH, (2000, 1500), (2000, 1500)),
        (HIGH, (3840, 2160), (2576, 1449)),
        (HIGH, (1075, 1520), (1075, 1520)),
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
