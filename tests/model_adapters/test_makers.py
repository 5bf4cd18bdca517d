"""Damaged responses, read by makers' own readers and by ours: every difference has its name, and every name a difference."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from guieval.actions import Action, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Unsupported, Wait
from guieval.errors import ParseError
from guieval.registry import list_adapters
from tests.conftest import REPOSITORY
from tests.rows import every_row

from .damages import DAMAGES
from .makers import DIFFERENCES, FAMILIES, FOLDER, LENIENCIES, NO_READER, OURS, Family, kind, page_row, published, table_of
from .steps import adapter, step

PAGE = (REPOSITORY / "docs" / "models.md").read_text(encoding="utf-8")
SAME = ("same", "neither")


@every_row("family", FAMILIES, ids=lambda family: family.title)
def test_a_response_is_read_as_its_makers_read_it(family: Family) -> None:
    """Or the difference has a name, and no name is without a response."""
    kinds = [(row.damage, kind(family, row)) for row in table_of(family)[1]]
    own = {damage for damage, found in kinds if found.endswith(OURS)}
    others = {found for _, found in kinds if found not in SAME and not found.endswith(OURS)}
    assert own <= LENIENCIES.keys()
    assert others == DIFFERENCES.get(family.title, {}).keys()


def test_no_name_is_left_over() -> None:
    used = {row.damage for family in FAMILIES for row in table_of(family)[1] if kind(family, row).endswith(OURS)}
    assert used == LENIENCIES.keys()
    assert DIFFERENCES.keys() <= {family.title for family in FAMILIES}
    assert {path.stem for path in FOLDER.iterdir()} == {family.title for family in FAMILIES}


@every_row("family", FAMILIES, ids=lambda family: family.title)
def test_what_is_published_is_damaged_and_read(family: Family) -> None:
    """The table holds the adapter's own form as it is, and damages of most kinds."""
    rows = table_of(family)[1]
    assert {row.text for row in rows if row.damage == "as published"} == set(published(family)), "python -m perf.makers FOLDER"
    assert {row.damage for row in rows} <= DAMAGES.keys()
    assert len({row.damage for row in rows}) >= 10
    assert any(kind(family, row) == "same" for row in rows)


@every_row("family", FAMILIES, ids=lambda family: family.title)
def test_the_page_lists_every_leniency(family: Family) -> None:
    assert page_row(family) in PAGE.splitlines(), "docs/models.md: regenerate it: python -m perf.makers --table"


def test_the_page_says_what_each_leniency_is() -> None:
    assert all(f"- {damage}: {why}" in PAGE for damage, why in LENIENCIES.items())


def test_an_adapter_has_a_table_or_the_page_says_why_it_has_none() -> None:
    assert {family.adapter for family in FAMILIES} | NO_READER.keys() == set(list_adapters())
    assert all(f"- `{name}`: {why}" in PAGE for name, why in NO_READER.items())


def _repaired() -> Iterator[tuple[str, str, Action]]:
    """Responses that makers' readers took, and ours refused or read in part."""
    call = "<tool_call>\n<function=mobile_use>\n<parameter=action>\n{}\n</parameter>{}\n</function>\n</tool_call>"
    place = '\n<parameter=coordinate>\n[500, "750"]\n</parameter>'
    click = Click(point=Point(500 * 1000 / 999, 750 * 1000 / 999))
    yield "qwen3_5", call.format("click", place), click
    yield (
        "qwen3_5",
        call.format("click", place.replace('"', "")).replace("mobile_use>", "mobile_use><function=mobile_use>"),
        click,
    )
    text = "\n<parameter=text>\nhello\n</parameter>"
    yield "qwen3_5", call.format("type", f"</parameter>{text}"), Type(text="hello")
    yield "qwen3_5", call.format("type", f"\n<parameter=text>{text}"), Type(text="hello")
    call = '<tool_call>\n{"name": mobile_use", "arguments": {"action": "wait", "time": 1}}\n</tool_call>'
    yield "qwen3_vl", call, Wait()
    action = "<action>\n{}\n</action>"
    yield "scalecua", action.format("open_app(app='Google Maps')"), Open(app="Google Maps")
    yield "scalecua", action.format("wait(seconds=1"), Wait()
    yield "scalecua", action.format("open_app(app_name=“Google Maps”)"), Open(app="Google Maps")
    yield (
        "minicpm_gui",
        "actions:\ntap, <point> 500 750</point>\nactions:\ntap, <point> 7 7</point>",
        Click(point=Point(500, 750)),
    )
    path = Scroll(point=Point(500, 500), direction="up", distance=300)
    yield "minicpm_gui", "actions:\nswipe, from 500 500 to 500 200", path
    venus = "<think>\nI see it.\n</think>\n<action>\n{}\n</action>"
    yield "ui_venus_navi", venus.format("Launch(app='Google Maps)"), Open(app="Google Maps")
    yield "ui_venus_navi", venus.format("Type(content=hello world')"), Type(text="hello world")
    yield "ui_venus_navi", venus.format("Finished(content=')"), Stop()
    yield "autoglm_phone", 'do(action="Type", text="hello"）', Type(text="hello")
    yield "autoglm_phone", 'finish(message="All done."）', Stop()
    yield "autoglm_phone", '<think>Done.</think>\n<answer>finish(message="All "done"."', Stop()
    yield "os_atlas", 'actions:\nCLICK <point>[[500,"750"]]</point>', Click(point=Point(500, 750))
    answer = "<think> I see it. </think> <answer>[{'action': 'ACTION', 'KEY': [546, 1806]}]</answer>"
    yield "ui_r1", answer.replace("ACTION", "click").replace("KEY", "point"), Click(point=Point(500, 750))
    yield "gui_r1", answer.replace("ACTION", "long_press").replace("KEY", "coordinate"), LongPress(point=Point(500, 750))
    code = "## Code:\n```python\n{}\n```"
    yield "opencua", code.format("pyautogui.press(keys=['enter']))"), Press(button="ENTER")
    yield "opencua", code.format("computer.terminate(status='failure'"), Stop(status="impossible")
    yield "opencua", code.format("pyautogui.write(message='hello')")[:-1], Type(text="hello")
    yield from (("uground", text, Click(point=Point(500, 750))) for text in ("500, 750", "(500, 750,)", "(500, 750)\n(7, 7)"))
    yield "gui_g2", "[500,1770,592,1842,]", Click(point=Point(500, 750))
    call = '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", "point": [546, 1806]}}\n</tool_call>'
    yield "se_gui", call, Click(point=Point(500, 750))


def test_a_refusal_stays_one_whatever_follows() -> None:
    parsed = adapter("ui_venus_1_5").parse_response(step(setting="grounding"), "[-1,-1] The icon is not there.")
    assert parsed.action == Stop(status="impossible")


@every_row("name, text, action", _repaired)
def test_what_a_makers_reader_takes_is_not_refused(name: str, text: str, action: Action) -> None:
    assert adapter(name).parse_response(step(), text).action == action


def test_a_place_is_written_as_its_makers_reader_needs_it() -> None:
    assert "[546,1806]" in adapter("ui_ins").render(step(), Click(point=Point(500, 750)))


TOOL = '<tool_call>\n{"name": "mobile_use", "arguments": {"action": "%s"}}\n</tool_call>'


@every_row(
    "name, text, known",
    [
        *(("qwen3_vl", TOOL % name, kind) for name, kind in (("type", "TYPE"), ("system_button", "PRESS"))),
        ("gui_owl", TOOL % "open", "OPEN"),
        ("mai_ui", TOOL.replace('"}}', '", "coordinate": [500, 500]}}') % "swipe", "SCROLL"),
        *(("mai_ui", TOOL % "terminate", "STOP"), ("ui_tars", "Action: scroll(start_box='(500,500)')", "SCROLL")),
        ("ui_venus_navi", "<think>I see.</think><action>Launch()</action>", "OPEN"),
        ("ui_venus_navi", "<think>I see.</think><action>Scroll()</action>", "SCROLL"),
        ("os_atlas", "thoughts:\nI see it.\nactions:\nTYPE", "TYPE"),
        ("os_genesis", 'action: {"action_type":"open_app"}', "OPEN"),
        ("step_gui", "<THINK> I see. </THINK>\nexplain:Type.\taction:TYPE\tsummary:Tap it.", "TYPE"),
        ("cogagent", "Grounded Operation: LAUNCH(url='None')", "OPEN"),
        ("gui_r1", "<answer>[{'action': 'scroll', 'point': [-100, -100]}]</answer>", "SCROLL"),
    ],
)
def test_an_action_without_its_argument_counts_by_its_type(name: str, text: str, known: str) -> None:
    """As makers' readers give it; ``TYPE`` without a text is no ``TYPE`` of an empty one."""
    action = adapter(name).parse_response(step(), text).action
    assert isinstance(action, Unsupported) and action.known == known and action.problem


@every_row(
    "name, text",
    [
        # which key is pressed decides what the action is
        ("fara", '<tool_call>\n{"name": "computer_use", "arguments": {"action": "key"}}\n</tool_call>'),
        *(("cogagent", "Grounded Operation: KEY_PRESS()"), ("aguvis", "Action: Press it.\npyautogui.press()")),
        ("ui_tars_2", "<seed:tool_call><function=click><parameter=po"),
        ("qwen3_5", "<tool_call>\n<function=mobile_use>\n<parameter=action>\nclick\n</parameter>\n<parameter=coor"),
        ("ui_tars", "Action: type(content=“it's)"),
    ],
)
def test_what_does_not_decide_on_an_action_is_none(name: str, text: str) -> None:
    with pytest.raises(ParseError):
        adapter(name).parse_response(step(), text)
