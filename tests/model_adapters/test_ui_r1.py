from __future__ import annotations

from typing import Any

from guieval.actions import ActionType, Open, Press, Type, Unsupported
from guieval.registry import load_model

from .steps import CLICK, GROUNDING, adapter, scroll
from .tables import means, reads, refuses, writes

MODEL = adapter("ui_r1")
WHOLE = "[{'action': 'click', 'coordinate': [546, 1806]}]"
test_the_direct_form_has_no_thought = writes(load_model("ui-r1-e-3b"), (CLICK, f"<answer>{WHOLE}</answer>"))
test_what_it_cannot_say = writes(
    MODEL, *((action, None) for action in (Type(text="a"), Open(app="a"), scroll("up"), Press(button="HOME")))
)

test_the_form_with_a_thought = writes(MODEL, (CLICK, f"<think> a </think> <answer>{WHOLE}</answer>"), thought="a")

test_tolerances = means(
    MODEL,
    CLICK,
    ("next step", f"<think> a </think> <answer>{WHOLE}</answer>\n<think> b </think> <answer>[{{'action': 'scroll'}}]</answer>"),
    ("rehearsed answer", f"<think> a <answer>[{{'action': 'scroll'}}]</answer> </think> <answer>{WHOLE}</answer>"),
    *(("fence without tags", f"```python\n{WHOLE}\n```"), ("fence in the answer", f"<answer>```json\n{WHOLE}\n```</answer>")),
    ("no list", "<answer>{'action': 'click', 'coordinate': [546, 1806]}</answer>"),
    ("the base model's word", "<answer>[{'action': 'left_click', 'coordinate': [546, 1806]}]</answer>"),
    ("several actions", f"<answer>{WHOLE[:-1]}, {{'action': 'navigate_back'}}]</answer>"),
    ("special token and trailing prose", f"<answer>{WHOLE}</answer><|im_end|> That is it."),
)

PROBLEMS = {"SCROLL": "it has no direction", "OPEN": "it names no app", "TYPE": "it states no text"}


def typed(known: ActionType, name: str, **arguments: Any) -> Unsupported:
    """An action of which the prompt asks for the type alone."""
    return Unsupported(name=name, arguments=arguments, known=known, problem=PROBLEMS[known])


test_what_the_format_can_say = reads(
    MODEL,
    ("{'action': 'open_app', 'app_name': 'Maps'}", Open(app="Maps")),
    ("{'action': 'input_text', 'text': 'hello'}", Type(text="hello")),
    wrap=lambda action: f"<think> a </think> <answer>[{action}]</answer>",
)

test_refusals = refuses(
    MODEL,
    *(("<think> I would click [546, 1806] </think>", "no answer"), ("<answer></answer>", "no readable JSON")),
    *(("<answer>[]</answer>", "not an action"), ("<answer>[{}]</answer>", "is not an action")),
    ("<answer>[{'action': 'click'}]</answer>", "lacks 'coordinate'", "CLICK"),
    ("<answer>[{'action': 'scroll', 'coordinate': [0, 0]}]</answer>", "no direction", "SCROLL"),
    ("<answer>[{'action': 'open_app'}]</answer>", "no app", "OPEN"),
    ("<answer>[{'action': 'input_text', 'coordinate': [0, 0]}]</answer>", "no text", "TYPE"),
    ("<answer>[{'action': 'click', 'coordinate': [546]}]</answer>", "not a point"),
    ("<answer>[{'action': 'click', 'coordinate': [5460, 1806]}]</answer>", "outside", "CLICK"),
    ("<answer>[{'action': 'click', 'coordinate': [546, 18", "no readable JSON"),
    ("<answer>[{'action': 'swipe', 'coordinate': [1, 2]}]</answer>", "'swipe' is not an action"),
    ("<answer>[{'coordinate': [546, 1806]}]</answer>", "not an action"),
    ("<answer>[546, 1806]</answer>", "is not an action"),
)

test_a_place_alone_is_an_answer_to_a_grounding_query = means(
    MODEL,
    CLICK,
    *("[546, 1806]", "[[546, 1806]]", "[[536, 1796], [556, 1816]]", "[{'coordinate': [546, 1806]}]"),
    wrap=lambda answer: f"<answer>{answer}</answer>",
    task=GROUNDING,
)
