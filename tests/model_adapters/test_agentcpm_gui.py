from __future__ import annotations

from guieval.actions import Click, Point, Scroll, Stop
from guieval.history import HistoryEntry, reference_entry

from .steps import GROUNDING, adapter, outside, past, step
from .tables import means, reads, refuses, writes

MODEL = adapter("agentcpm_gui")
AT = Point(500.0, 750.0)


def test_past_turns_are_pairs_of_question_and_object() -> None:
    model = adapter("agentcpm_gui", max_images=4)
    own = HistoryEntry(
        step(step_index=2, screenshot="2.png"), Click(point=AT), "看", None, '{"thought":"看", "POINT":[500,750]}', "model"
    )
    reference = reference_entry(step(Scroll(point=AT, direction="up"), step_index=1, screenshot="1.png"))
    messages = model.prepare_input(step(step_index=3), (*past(1), reference, own)).messages
    assert [message.role for message in messages] == ["system"] + ["user", "assistant"] * 3 + ["user"]
    assert [message.parts[0] for message in messages[2:7:2]] == [
        '{"thought":"Open the settings","STATUS":"continue"}',
        '{"POINT":[500,750],"to":"up"}',
        '{"thought":"看","POINT":[500,750]}',
    ]
    silent = adapter("agentcpm_gui", thinking=False, max_images=2).prepare_input(step(step_index=3), (reference, own))
    assert [message.parts[0] for message in silent.messages[2:3]] == ['{"POINT":[500,750]}']


def test_grounding_has_a_prompt_for_texts() -> None:
    named = step(setting="grounding", instruction="QQ音乐", groups={"task": "text2point"})
    system, user = MODEL.prepare_input(named, ()).messages
    assert user.parts[1] == "屏幕上的文本：## Text\nQQ音乐\n"
    assert str(system.parts[0]).endswith('\n    输出：文本的相对坐标的中心点,{"POINT":[...,...]}为格式\n    ')


test_actions_as_the_readme_writes_them = writes(MODEL, (Scroll(point=AT, direction="down"), '{"POINT":[500,750],"to":"down"}'))

test_tolerances = reads(
    MODEL,
    ("several objects", '{"POINT":[500,750]}\n{"STATUS":"finish"}', Click(point=AT)),
    ("list of objects", '[{"POINT":[500,750]},{"PRESS":"BACK"}]', Click(point=AT)),
    ("quotes in the thought", '{"thought":"点击"会员"按钮","POINT":[500,750]}', Click(point=AT)),
    ("tags", '<think>x</think><act>{"POINT":[500,750]}</act>', Click(point=AT)),
    ("unclosed tag", '<think>x {"POINT":[500,750]}', Click(point=AT)),
    ("begun turn", ',"POINT":[500,750]}', Click(point=AT)),
    ("case", '{"point":[500,750],"To":"UP"}', Scroll(point=AT, direction="up")),
    ("status beside an action", '{"POINT":[500,750],"STATUS":"continue"}', Click(point=AT)),
    ("short touch", '{"POINT":[500,750],"duration":200}', Click(point=AT)),
    ("end with an action", '{"POINT":[500,750],"STATUS":"satisfied"}', Stop()),
    *(("feedback", '{"STATUS":"need_feedback"}', Stop(status="impossible")), ("outside", '{"CLEAR":null}', outside("CLEAR"))),
    ("outside, with a value", '{"DEEP_LINK":"maps://a"}', outside("DEEP_LINK", value="maps://a")),
    ("a thought that was given", 'POINT":[713,95]}', Click(point=Point(713.0, 95.0))),
)

test_a_place_alone_is_an_answer_only_to_a_query = means(
    MODEL, Click(point=AT), "[500, 750]", "POINT:[500,750]", '{"POINT":[500,750]}', task=GROUNDING
)

test_refusals = refuses(
    MODEL,
    *(('{"POINT":[500,7', "no readable JSON"), ('{"thought":"x"}', "has no action")),
    *(('{"STATUS":"continue"}', "has no action"), ('{"STATUS":"done"}', "is none of")),
    *(('{"POINT":[1,2],"TYPE":"x"}', "several actions"), ('{"to":"up"}', "lacks the POINT")),
    *(('{"POINT":[1,2],"to":[1,2]}', "no length", "SCROLL"), ('{"POINT":[1001,2]}', "outside", "CLICK")),
    *(('{"POINT":[NaN,2]}', "not a point"), ('{"POINT":[1]}', "not a point"), ('{"PRESS":"MENU"}', "is none of")),
    *(('{"TYPE":null}', "lacks 'TYPE'"), ('{"duration":-1}', "not a number of milliseconds")),
    *(('{"OPEN_APP":"x"}', "has no action"), ("[500, 750]", "not an object"), ("POINT:[500,750]", "not an object")),
)
