"""The corpus of published responses, and what an adapter writes into the past: both are read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from guieval.actions import Point, Scroll
from guieval.conformance import check_adapter
from guieval.conformance.commands.new_adapter import adapter_source
from guieval.conformance.published import agrees, published_groups, published_responses_are_read
from guieval.models import ABCModel
from guieval.registry import list_adapters, load_model
from tests.rows import every_row

from .steps import adapter

OURS = {"ocr_baseline", "ocr_errant", "openai_tools", "tiny_policy"}
"""The adapters whose format is this project's own: no maker publishes responses for them."""


def test_every_family_with_makers_has_published_responses() -> None:
    rows = {name: sum(len(group.rows) for group in published_groups(adapter(name))) for name in list_adapters()}
    assert {name for name, count in rows.items() if not count} == OURS
    page = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")
    assert f"{sum(rows.values())} rows for {len(rows) - len(OURS)} adapters" in page


@every_row("name", list_adapters)
def test_published_responses_are_read_as_their_makers_mean_them(name: str) -> None:
    assert list(published_responses_are_read(adapter(name))) == []


GROUP = """
- source: example.org words.md
  form: '{"action": "tap", "point": CALL}'
  rows:
    - {line: 1, call: '%s', action: {type: CLICK, point: [500, 250]}}
"""


def plug_in(folder: Path, responses: str | None) -> ABCModel:
    file = folder / "my_agent.py"
    file.write_text(adapter_source("my_agent"))
    if responses is not None:
        (folder / "responses").mkdir()
        (folder / "responses" / "my_agent.yaml").write_text(responses)
    return load_model("my-agent", adapter=str(file))


@every_row(
    ("responses", "message"),
    [
        *((None, ""), (GROUP % "[500, 250]", ""), (GROUP % "[250, 500]", "means .* and is read as Click")),
        *((GROUP % "]", r"example.org words.md:1\) is not read: the response"), (GROUP.replace("rows", "lines") % "1", "rows")),
    ],
)
def test_a_plug_ins_own_rows_are_checked(tmp_path: Path, responses: str | None, message: str) -> None:
    found = [each for each in check_adapter(plug_in(tmp_path, responses)) if each.check == "published responses"]
    if not message:
        assert found == []
    else:
        with pytest.raises(AssertionError, match=message):
            assert not found, str(found[0])


def test_a_row_states_only_what_its_words_fix() -> None:
    scroll = Scroll(point=Point(500.0, 250.4), direction="up", distance=12.0)
    assert agrees({"type": "SCROLL", "direction": "up"}, scroll)
    assert agrees({"point": [500, 250]}, scroll) and not agrees({"point": [500, 252]}, scroll)
    assert not agrees({"direction": "down"}, scroll) and not agrees({"type": "CLICK"}, scroll)
    assert not agrees({"device": None}, scroll)
