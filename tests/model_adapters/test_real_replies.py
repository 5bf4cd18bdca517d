"""Replies that real models gave, read by their family's adapter and compared with what the source says they mean."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from guieval.actions import Action, Click, Point, Scroll, Type
from guieval.errors import ParseError
from guieval.frames import Size
from guieval.models import ABCModel
from guieval.registry import list_adapters
from guieval.testing.conformance.adapters import SETTINGS
from tests.rows import every_row

from .replies import EXPLAINED, FAMILIES, OTHERS, Family, Row, readings, rows, screenshot_sizes
from .steps import adapter, step


def read(model: ABCModel, row: Row, size: Size, **changes: Any) -> Action | None:
    try:
        return model.parse_response(step(screenshot_size=size, **changes), row.text).action
    except ParseError:
        return None


@every_row("family", FAMILIES, ids=lambda family: family.title)
def test_every_reply_is_read_or_refused(family: Family, shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever a model wrote: an action or a reason, and what its source read too; every kind of difference is explained."""
    model = adapter(family.adapter, **family.options)
    found = list(readings(family, model, shared_data, screenshot_sizes(shared_data)))
    assert found
    assert all((reading.action is None) == bool(reading.reason) for reading in found)
    compared = [reading for reading in found if reading.difference is not None]
    differences = Counter(reading.difference for reading in compared if reading.difference)
    assert not differences.keys() - EXPLAINED.get(family.title, {}).keys(), "a difference without an explanation"
    agreed = len(compared) - differences.total()
    assert agreed >= family.agreement * len(compared)
    counts = Counter("action" if reading.action else "no action" for reading in found)
    counts["compared with the source"], counts["same"] = len(compared), agreed
    _report(capsys, family.title, counts)


@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.ci)])
def test_no_recorded_reply_of_any_family_breaks_another(every: int, shared_data: Path) -> None:
    """All 3,110 rows, most of them in a foreign format: an action, or one reason in words, and nothing else raised."""
    texts = [
        row.text for file in sorted({family.file for family in FAMILIES} | OTHERS.keys()) for row in rows(shared_data, file)
    ]
    assert len(texts) == 3110
    for name in list_adapters():
        model = adapter(name)
        for task in [step(setting=setting) for setting in SETTINGS]:
            for text in texts[::every]:
                try:
                    model.parse_response(task, text)
                except ParseError as error:
                    assert str(error).strip() and "\n" not in str(error), name


def test_the_table_names_every_file_and_every_explanation_is_needed(shared_data: Path) -> None:
    files = {path.stem for path in (shared_data / "model_outputs").glob("*.jsonl")}
    assert files == {family.file for family in FAMILIES} | OTHERS.keys()
    sizes = screenshot_sizes(shared_data)
    for family in FAMILIES:
        if explained := EXPLAINED.get(family.title):
            found = readings(family, adapter(family.adapter, **family.options), shared_data, sizes)
            assert {reading.difference for reading in found if reading.difference} == explained.keys(), family.title
    assert EXPLAINED.keys() <= {family.title for family in FAMILIES}
    assert {family.adapter for family in FAMILIES} <= set(list_adapters())


def test_qwen3_vl(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The one reply that was found, of the authors' own notebook, on a screen of 1440 x 3120."""
    (row,) = rows(shared_data, "qwen3_vl")
    parsed = adapter("qwen3_vl").parse_response(step(screenshot_size=(1440, 3120)), row.text)
    assert parsed.action == Click(point=Point(447 / 999 * 1000, 81 / 999 * 1000))
    assert parsed.conclusion == "I tapped on the search bar to begin searching for Musk."
    assert parsed.thought is not None
    assert parsed.thought.endswith("This will allow me to type in the search query.")
    _report(capsys, "qwen3_vl", Counter({"read": 1}))


def test_ui_tars_1_5(shared_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nine replies on phones, whose source states its own reading in whole thousandths.

    Type, text and the finger's direction agree (the source also takes a scroll's word as the content's). Points differ
    throughout, by one rule: the source divides the model's pixels, which are those of the resized image, by the size of
    the original, which is up to 1.1 % too far right and 0.5 % too low. A scroll's point it does not read at all.
    """
    model = adapter("ui_tars_1_5")
    counts: Counter[str] = Counter()
    for row in rows(shared_data, "ui_tars"):
        if "CAGUI" not in row.notes:
            continue
        width, height = size = (int(row.note(r"img (\d+)x")), int(row.note(r"img \d+x(\d+)")))
        action = read(model, row, size)
        assert row.expected is not None
        if isinstance(action, Type):
            assert action.text == row.expected["TYPE"]
            counts["same text"] += 1
        elif isinstance(action, Scroll):
            assert action.direction == row.expected["to"]
            assert row.expected["POINT"] == [500, 500]
            counts["same direction"] += 1
        else:
            assert isinstance(action, Click)
            native = model.frame(step(screenshot_size=size)).encode(action.point, size)
            assert [math.floor(native[0] / width * 1000 + 1e-6), math.floor(native[1] / height * 1000 + 1e-6)] == row.expected[
                "POINT"
            ]
            assert action.point == pytest.approx(row.expected["POINT"], abs=12)
            counts["same pixels, source divides by the original size"] += 1
    _report(capsys, "ui_tars_1_5", counts)
    assert counts == {"same text": 1, "same direction": 2, "same pixels, source divides by the original size": 6}


def test_the_authors_worked_example(shared_data: Path) -> None:
    """The tutorial's reply on its own screenshot: x / new_width * width, y / new_height * height."""
    from PIL import Image

    folder = shared_data / "ui_tars_coordinates"
    with Image.open(folder / "coordinate_process_image.png") as image:
        size = image.size
    action = (
        adapter("ui_tars_1_5")
        .parse_response(step(screenshot_size=size), "Thought: xxx\nAction: click(start_box='(197,525)')")
        .action
    )
    assert isinstance(action, Click)
    width, height = (round(side / 28) * 28 for side in size)
    assert action.point == pytest.approx((197 / width * 1000, 525 / height * 1000))


def _report(capsys: pytest.CaptureFixture[str], family: str, counts: Counter[str]) -> None:
    with capsys.disabled():
        print(f"\n{family}: " + "; ".join(f"{count} {what}" for what, count in counts.most_common()))
