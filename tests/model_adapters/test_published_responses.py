"""The corpus of published responses, and what an adapter writes into the past: both are read back."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from guieval.actions import Point, Scroll
from guieval.conformance import check_adapter
from guieval.conformance.published import agrees, published_groups, published_responses_are_read
from guieval.models import ABCModel, ModelConfig
from guieval.registry import list_adapters
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


PLUG_IN = """
from guieval.actions import ActionSpace, Click, Point
from guieval.errors import ParseError
from guieval.frames import PER_1000
from guieval.models import ABCModel, ParsedResponse, chat

class Agent(ABCModel):
    action_space = ActionSpace(types=frozenset({"CLICK"}))
    fixed_frame = PER_1000
    def prepare_input(self, task, history):
        words = (task.low_level_instruction if task.setting == "low" else task.instruction) or ""
        return chat(self.image(task), words)
    def parse_response(self, task, text):
        try:
            x, y = map(float, text.removeprefix("tap ").split(","))
            return ParsedResponse(Click(point=PER_1000.decode(x, y, task.screenshot_size)))
        except ValueError:
            raise ParseError("no tap") from None
    def write(self, task, action, thought, conclusion):
        return "tap {:g},{:g}".format(*self.write_place(task, action.point))
"""
GROUP = """
- source: example.org words.md
  form: tap CALL
  rows:
    - {line: 1, call: '%s', action: {type: CLICK, point: [500, 250]}}
"""


def plug_in(folder: Path, responses: str | None) -> ABCModel:
    (folder / "my_agent.py").write_text(PLUG_IN)
    if responses is not None:
        (folder / "responses").mkdir()
        (folder / "responses" / "my_agent.yaml").write_text(responses)
    spec = importlib.util.spec_from_file_location("my_agent", folder / "my_agent.py")
    assert spec is not None and spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules["my_agent"] = module  # inspect looks the file up there
    spec.loader.exec_module(module)
    made: ABCModel = module.Agent(ModelConfig(name="my-agent", adapter="my_agent"))
    return made


@every_row(
    ("responses", "message"),
    [
        *((None, ""), (GROUP % "500,250", ""), (GROUP % "250,500", "means .* and is read as Click")),
        *((GROUP % "left", r"example.org words.md:1\) is not read: no tap"), (GROUP.replace("rows", "lines") % "1,1", "rows")),
    ],
)
def test_a_plug_ins_own_rows_are_checked(
    tmp_path: Path, responses: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "my_agent", sys)  # taken out again afterwards
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
