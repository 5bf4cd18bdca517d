"""Coordinate frames: the sizes models see, and conversions there and back."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from guieval.actions import Point
from guieval.frames import PER_999, PER_1000, PIXELS, RELATIVE, Frame, Normalised, ResizedPixels, Size, smart_resize
from tests.rows import every_row

FRAMES: tuple[Frame, ...] = (
    *(RELATIVE, PER_999, PER_1000, PIXELS, Normalised(1.0, digits=2)),
    *(ResizedPixels(), ResizedPixels(32, 4 * 32 * 32, 16384 * 32 * 32), ResizedPixels(28, 830_000, 937_664)),
)
coordinates = st.floats(0.0, 1000.0)
points = st.builds(Point, coordinates, coordinates)
sizes = st.tuples(st.integers(1, 5000), st.integers(1, 5000)).filter(lambda size: max(size) <= 200 * min(size))
frames = st.sampled_from(FRAMES)
SCREEN = (1080, 2400)


@every_row(
    ("factor", "min_pixels", "max_pixels", "expected"),
    [
        (28, 4 * 28 * 28, 16384 * 28 * 28, (1092, 2408)),
        (28, 830_000, 937_664, (644, 1428)),
        (28, 256 * 28 * 28, 1280 * 28 * 28, (672, 1484)),
        (32, 4 * 32 * 32, 16384 * 32 * 32, (1088, 2400)),
    ],
)
def test_smart_resize_of_a_phone_screen(factor: int, min_pixels: int, max_pixels: int, expected: Size) -> None:
    assert smart_resize(SCREEN, factor, min_pixels, max_pixels) == expected


@every_row(
    ("frame", "native"),
    [
        (ResizedPixels(), (546, 1806)),
        (ResizedPixels(28, 830_000, 937_664), (322, 1071)),
        (ResizedPixels(28, 256 * 28 * 28, 1280 * 28 * 28), (336, 1113)),
        (PER_999, (500, 749)),
        (PER_1000, (500, 750)),
        (PIXELS, (540, 1800)),
        (RELATIVE, (0.5, 0.75)),
    ],
)
def test_one_target_in_every_frame(frame: Frame, native: tuple[float, float]) -> None:
    assert frame.quantise(Point(500, 750), SCREEN) == native
    decoded = frame.decode(*native, SCREEN)
    assert decoded == (pytest.approx((500.5, 749.7), abs=0.06) if frame is PER_999 else Point(500, 750))


@every_row(("side", "multiple"), [(70, 56), (98, 112), (126, 112), (154, 168), (69, 56), (71, 84)])
def test_ties_go_to_the_even_multiple(side: int, multiple: int) -> None:
    assert smart_resize((280, side), min_pixels=1) == (280, multiple)
    assert PER_1000.quantise(Point(0.5, 1.5), SCREEN) == (0, 2)
    assert PER_1000.quantise(Point(2.5, 999.5), SCREEN) == (2, 1000)


@given(sizes, st.sampled_from((28, 32)), st.integers(1, 100), st.integers(1000, 20000))
def test_resized_sides_are_multiples_within_the_limits(size: Size, factor: int, low: int, high: int) -> None:
    area = factor * factor
    width, height = smart_resize(size, factor, low * area, high * area)
    assert width % factor == height % factor == 0 and min(width, height) >= factor
    # The limits are far apart, as processors set them: rounding up to meet the lower one may not pass the upper one. A side
    # is at least one factor long, whatever the upper limit says.
    assert width * height >= low * area
    assert width * height <= high * area or min(width, height) == factor


@given(sizes, st.sampled_from((28, 32)))
def test_a_resized_size_stays_as_it_is(size: Size, factor: int) -> None:
    once = smart_resize(size, factor)
    assume(max(once) <= 200 * min(once))
    assert smart_resize(once, factor) == once


@every_row("size", [(0, 10), (10, 0), (201, 1), (1, 2001)])
def test_sizes_no_processor_takes_are_refused(size: Size) -> None:
    with pytest.raises(ValueError, match=f"{size[0]} x {size[1]}"):
        smart_resize(size)


@given(frames, points, sizes)
def test_encoding_and_decoding_are_inverse(frame: Frame, point: Point, size: Size) -> None:
    width, height = frame.extent(size)
    x, y = frame.encode(point, size)
    back = frame.decode(min(x, width), min(y, height), size)
    assert math.isclose(back.x, point.x, rel_tol=1e-12, abs_tol=1e-9)
    assert math.isclose(back.y, point.y, rel_tol=1e-12, abs_tol=1e-9)


@given(frames, points, sizes)
def test_writing_and_reading_a_point_errs_by_half_a_unit_at_most(frame: Frame, point: Point, size: Size) -> None:
    unit = 10.0**-frame.digits if isinstance(frame, Normalised) and frame.digits else 1.0
    x, y = frame.quantise(point, size)
    assert unit != 1.0 or (isinstance(x, int) and isinstance(y, int))
    for native, exact in zip(frame.encode(frame.decode(x, y, size), size), frame.encode(point, size), strict=True):
        assert abs(native - exact) <= unit / 2 * (1 + 1e-6)


@given(frames, sizes)
def test_corners_are_corners(frame: Frame, size: Size) -> None:
    assert frame.decode(0, 0, size) == Point(0, 0)
    assert frame.decode(*frame.extent(size), size) == Point(1000, 1000)
    assert frame.encode(Point(1000, 1000), size) == frame.extent(size)


@given(frames, sizes, st.sampled_from((-1.0, math.nan, math.inf, -math.inf)), st.booleans())
def test_what_lies_outside_is_refused(frame: Frame, size: Size, bad: float, first: bool) -> None:
    with pytest.raises(ValueError, match="outside"):
        frame.decode(*((bad, 0.0) if first else (0.0, bad)), size)


@given(frames, sizes)
def test_one_step_past_the_far_edge_is_refused(frame: Frame, size: Size) -> None:
    width, height = frame.extent(size)
    for x, y in ((width + 1, 0.0), (0.0, height + 1)):
        with pytest.raises(ValueError, match="outside"):
            frame.decode(x, y, size)


def test_frames_that_differ_have_names_that_differ() -> None:
    names = [RELATIVE.name, PER_999.name, PER_1000.name, PIXELS.name, ResizedPixels(28).name, ResizedPixels(32).name]
    assert len(set(names)) == len(names)


def test_the_published_coordinate_sample_of_ui_tars(shared_data: Path) -> None:
    """README_coordinates.md of UI-TARS: int(x / new_width * width), int(y / new_height * height)."""
    from guieval.data.screenshots import probe

    folder = shared_data / "ui_tars_coordinates"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    sample = json.loads((folder / "sample.json").read_text(encoding="utf-8"))
    assert "(197,525)" in sample["raw_response"]
    size = probe((folder / sample["image"]).read_bytes()).size
    frame = ResizedPixels(28, 100 * 28 * 28, 16384 * 28 * 28)
    assert frame.extent(size) == (1932, 1092)
    x, y = PIXELS.encode(frame.decode(197, 525, size), size)
    assert (int(x), int(y)) == (int(197 / 1932 * 1920), int(525 / 1092 * 1080)) == (195, 519)
