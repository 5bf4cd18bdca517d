"""Edge cases that change published totals, one test each, by hand and on both sides of each border.

They concern the judging of a step, by named protocols. How runs are added up, and replies that hold two actions at once, are
tested where figures and importers are; more of the resizing of images is in ``tests/vocabulary/test_frames.py``.
"""

from __future__ import annotations

from dataclasses import replace

from guieval.actions import Action, Click, LongPress, Open, Point, Press, Scroll, Stop, Type, Wait, path_direction
from guieval.evaluation import ActionEvaluator, ClickRule, StepRules, TextRule, get_protocol, list_protocols
from guieval.frames import smart_resize
from guieval.steps import StepTaskModel
from tests.evaluation.verdicts import Step, right
from tests.rows import every_row

AT, FAR = Point(500, 500), Point(900, 900)


def typed_right(protocol: str, task: StepTaskModel, predicted: Action) -> bool:
    return ActionEvaluator(protocol).judge(task, predicted).type_match


def verdicts(task: StepTaskModel, predicted: Action, *protocols: str) -> list[bool]:
    return [right(protocol, task, predicted) for protocol in protocols]


def by_containment() -> list[str]:
    return [name for name in list_protocols() if get_protocol(name).rules.text.compare.startswith("containment")]


def test_1_an_empty_text_is_right_under_every_containment_rule(step: Step) -> None:
    task = step(Type(text="coffee"))
    assert {"guievalkit", "agentcpm", "qwen-gist", "ui-s1-sop", "coat-official", "ac-curated"} <= set(by_containment())
    for protocol in by_containment():
        assert right(protocol, task, Type(text=""))
        assert not right(protocol, task, Type(text="x"))
    assert not any(verdicts(task, Type(text=""), "osatlas", "gui-r1", "magicgui", "uground-ac"))


def test_2_a_box_at_the_edge_grows_centred_or_keeps_its_size_where_it_is_cut(step: Step) -> None:
    # [0, 100] x1.2: centred [-10, 110]; cut at 0 with its size of 120 kept [0, 120].
    task = step(Click(point=FAR), [[0, 0, 100, 100]])
    assert verdicts(task, Click(point=Point(110, 50)), "qwen-gist", "agentcpm") == [True, True]
    assert verdicts(task, Click(point=Point(111, 50)), "qwen-gist", "agentcpm") == [False, True]
    assert verdicts(task, Click(point=Point(120, 120)), "qwen-gist", "agentcpm") == [False, True]
    assert verdicts(task, Click(point=Point(121, 50)), "qwen-gist", "agentcpm") == [False, False]


def test_3_the_border_is_in_or_out(step: Step) -> None:
    # 0.14 of the screen: at most for OS-Atlas, less for GUI-R1. 140 px of 1000: less for GUI-R1's reward.
    task = step(Click(point=AT))
    protocols = ("osatlas", "gui-r1", "ui-agile")
    assert verdicts(task, Click(point=Point(639, 500)), *protocols) == [True, True, True]
    assert verdicts(task, Click(point=Point(640, 500)), *protocols) == [True, False, False]
    assert verdicts(task, Click(point=Point(641, 500)), *protocols) == [False, False, False]
    square = task.model_copy(update={"screenshot_size": (1000, 1000)})
    assert right("gui-r1-reward", square, Click(point=Point(639, 500)))
    assert not right("gui-r1-reward", square, Click(point=Point(640, 500)))
    boxed = step(Click(point=AT), targets=[[400, 400, 600, 600]], dataset="screenspot")
    edge = Click(point=Point(600, 500))
    assert verdicts(boxed, edge, "seeclick-official", "gui-r1-grounding", "onekey") == [True, False, False]
    assert all(verdicts(boxed, Click(point=Point(599, 500)), "seeclick-official", "gui-r1-grounding", "onekey"))


def test_4_fourteen_per_cent_of_each_side_of_the_width_or_of_the_diagonal(step: Step) -> None:
    # On 1080 x 2400: 0.14 on each axis (151.2 px across, 336 px down), a circle of 151.2 px, and one of 368.45 px.
    task = step(Click(point=AT))
    protocols = ("osatlas", "ui-r1", "os-genesis")
    for x, y, expected in (
        (639, 500, [True, True, True]),  # 150 px across
        (641, 500, [False, False, True]),  # 152 px across
        (841, 500, [False, False, True]),  # 368 px across
        (843, 500, [False, False, False]),  # 370 px across
        (500, 562, [True, True, True]),  # 148 px down
        (500, 564, [True, False, True]),  # 153 px down
        (500, 639, [True, False, True]),  # 333 px down
        (500, 641, [False, False, True]),  # 338 px down
        (500, 655, [False, False, False]),  # 372 px down
    ):
        assert verdicts(task, Click(point=Point(x, y)), *protocols) == expected


def test_5_elements_around_the_target_are_chosen_once_they_have_grown(step: Step) -> None:
    # [100, 500] x1.2 is [60, 540]: it holds a target at 540 only once it is enlarged. 0.14 is too little from there.
    for target, hit in ((500, True), (540, True), (541, False)):
        task = step(Click(point=Point(target, 500)), [[100, 400, 500, 600]], dataset="aitz")
        predicted = Click(point=Point(100, 500))
        assert verdicts(task, predicted, "guievalkit", "agentcpm", "magicgui") == [hit] * 3


def test_6_the_five_nearest_boxes_are_nearest_to_the_target_or_to_the_prediction(step: Step) -> None:
    column = [[490, 100 * i + 90, 510, 100 * i + 110] for i in range(9)]  # centres 100, 200, ... 900
    task = step(Click(point=Point(500, 110)), column)
    protocols = ("agentcpm", "mimo-vl", "guievalkit", "clawgui")
    assert verdicts(task, Click(point=Point(500, 500)), *protocols) == [True, True, True, True]
    assert verdicts(task, Click(point=Point(500, 600)), *protocols) == [False, False, False, True]
    assert verdicts(task, Click(point=Point(500, 650)), *protocols) == [False, False, False, False]


def test_7_a_labelled_long_press_is_a_click_or_not(step: Step) -> None:
    task = step(LongPress(point=AT))
    protocols = ("agentcpm", "magicgui", "guievalkit", "osatlas")
    assert verdicts(task, Click(point=AT), *protocols) == [True, True, False, False]
    assert verdicts(task, LongPress(point=AT), *protocols) == [False, False, True, True]
    elsewhere = step(LongPress(point=AT), dataset="cagui")
    assert verdicts(elsewhere, LongPress(point=AT), "agentcpm", "guievalkit") == [True, True]


def test_8_waiting_is_ending_or_not(step: Step) -> None:
    for reference, predicted in ((Wait(), Stop()), (Stop(), Wait()), (Stop(status="impossible"), Stop())):
        task = step(reference)
        assert right("agentcpm", task, predicted)
        assert right("guievalkit", task, predicted) is (reference.type == predicted.type)
        assert right("magicgui", task, predicted) is (reference.type == predicted.type)
        assert not right("osatlas", task, predicted)  # COMPLETE and IMPOSSIBLE are two types there
    assert not typed_right("agentcpm", step(Wait()), Press(button="BACK"))


def test_11_up_to_200_ms_a_press_is_a_tap(step: Step) -> None:
    task = step(Click(point=AT))
    for protocol in ("guievalkit", "agentcpm", "magicgui"):
        assert right(protocol, task, LongPress(point=AT, duration=200))
        assert not typed_right(protocol, task, LongPress(point=AT, duration=201))
        assert not typed_right(protocol, task, LongPress(point=AT))  # 1000 ms where none is given
    assert not typed_right("osatlas", task, LongPress(point=AT, duration=200))
    # A label says its type itself: GUI-Odyssey's preparation writes 0 ms beside every labelled long press.
    labelled = step(LongPress(point=AT, duration=0), dataset="gui-odyssey")
    assert verdicts(labelled, LongPress(point=AT), "guievalkit", "agentcpm", "magicgui") == [True] * 3
    assert verdicts(labelled, Click(point=AT), "guievalkit", "agentcpm", "magicgui") == [False] * 3


def test_13_a_scroll_as_a_word_or_as_two_points_of_the_finger_or_of_the_content(step: Step) -> None:
    # However a format writes it, one finger direction is compared: the nearest axis of a path, a tie being vertical.
    assert path_direction((500, 800), (510, 200)) == "up"
    assert path_direction((200, 500), (800, 510)) == "right"
    assert path_direction((0, 0), (100, 100)) == "down"
    assert path_direction((5, 5), (5, 5)) is None
    up, down, left, far_up = (
        Scroll.model_validate({"point": point, "direction": word})
        for point, word in ((AT, "up"), (AT, "down"), (AT, "left"), (FAR, "up"))
    )
    task = step(up)
    protocols = ("guievalkit", "infigui-r1", "clawgui", "ui-s1-sop")
    assert verdicts(task, far_up, *protocols) == [True, True, True, True]  # where it begins does not matter
    assert verdicts(task, down, *protocols) == [False, False, False, True]  # UI-S1's loop takes any scroll
    assert verdicts(task, left, *protocols) == [False, False, False, True]
    # UI-S1's reward swaps up and down: right of a label that tells the content's way, upside down without one.
    content = step(up, extras={"direction_label": "down"})
    assert right("ui-s1-reward-match", content, up)
    assert not right("ui-s1-reward-match", content, down)
    assert right("ui-s1-reward-match", task, down)
    assert not right("ui-s1-reward-match", task, up)
    # OS-Genesis also takes the way its prompt names, which is the content's.
    result = task.model_copy(update={"instruction": "Scroll up"})
    assert right("os-genesis", result, down)
    assert not right("os-genesis", task, down)
    # Android in the Wild asks for the axis alone.
    assert verdicts(task, down, "aitw-original") == [True]
    assert verdicts(task, left, "aitw-original") == [False]


def test_14_an_app_is_opened_by_clicking_its_icon_or_not(step: Step) -> None:
    icon = [100.0, 100.0, 200.0, 200.0]
    task = step(Open(app="Clock"), [icon])
    protocols = ("qwen-gist", "ui-s1-sop", "infigui-r1", "guievalkit", "ui-s1-reward-match")
    inside, outside = Click(point=Point(210, 150)), Click(point=Point(239, 150))
    assert verdicts(task, inside, *protocols) == [True, True, True, False, False]
    # Just outside the grown box InfiGUI-R1's 0.04 of the longer side, 96 px or 89 thousandths across, still reaches.
    assert verdicts(task, Click(point=Point(211, 150)), *protocols) == [False, False, True, False, False]
    assert verdicts(task, Click(point=Point(238, 150)), *protocols) == [False, False, True, False, False]
    assert verdicts(task, outside, *protocols) == [False] * 5
    assert [typed_right(protocol, task, outside) for protocol in protocols] == [True, True, True, False, False]
    assert not any(verdicts(step(Open(app="Clock")), inside, *protocols))  # no icon is known
    assert all(verdicts(task, Open(app="clock"), *protocols))
    # In UGround's scorer the text of the element decides.
    named = step(Open(app="Clock"), [icon], extras={"box_texts": ["Clock, 2 alarms"]})
    assert right("uground-ac", named, Click(point=Point(200, 150)))
    assert not right("uground-ac", named, Click(point=Point(201, 150)))
    assert not right("uground-ac", task, Click(point=Point(200, 150)))


@every_row(
    ("reference", "predicted", "second_token", "whole"),
    [
        ("hello world", "hello there everybody", True, False),  # whole: 1 of 2 and 1 of 3, 0.4
        ("hello world", "say hello world", False, True),  # whole: 2 of 2 and 2 of 3, 0.8
        ("hello world", "hello", False, True),  # "[hello" and "[hello]"; whole: 2/3
        ("hello world", "hello moon", True, False),  # whole: 0.5, and more is asked for
        ("hello world", "hello world", True, True),
        ("Clock", "clock", True, True),
    ],
)
def test_15_token_f1_of_the_second_token_or_of_the_whole_text(
    step: Step, reference: str, predicted: str, second_token: bool, whole: bool
) -> None:
    protocols = ("osatlas", "osatlas-intended")
    assert verdicts(step(Type(text=reference)), Type(text=predicted), *protocols) == [second_token, whole]
    assert verdicts(step(Open(app=reference)), Open(app=predicted), *protocols) == [second_token, whole]


def test_15_tokens_count_once_or_as_often_as_they_occur(step: Step) -> None:
    # {a, b} and {a, c, d}: 2 * (1/2 * 1/3) / (5/6) = 0.4. a a a b and a a c d: 2 of 4 and 2 of 4, 0.5.
    task, predicted = step(Type(text="a a a b")), Type(text="a a c d")
    once = StepRules(click=ClickRule("targets"), text=TextRule("token-f1", threshold=0.45))
    often = replace(once, text=replace(once.text, tokens="multiset"))
    assert not once.judge(task, task.action, predicted).exact_match
    assert often.judge(task, task.action, predicted).exact_match
    assert not replace(often, text=replace(often.text, threshold=0.51)).judge(task, task.action, predicted).exact_match


def test_19_a_coordinate_of_zero_counts_as_missing(step: Step) -> None:
    task = step(Click(point=Point(10, 10)))
    assert right("ui-r1", task, Click(point=Point(1, 1)))  # pixel (1, 2)
    for corner in (Point(0, 10), Point(10, 0), Point(0.9, 10)):  # 0.9 thousandths of 1080 px are pixel 0
        assert not right("ui-r1", task, Click(point=corner))
        assert typed_right("ui-r1", task, Click(point=corner))
        assert right("osatlas", task, Click(point=corner))


def test_20_resizing_depends_on_the_factor_and_rounds_halves_to_even() -> None:
    assert smart_resize((1080, 2400), factor=28) == (1092, 2408)
    assert smart_resize((1080, 2400), factor=32) == (1088, 2400)
    assert smart_resize((280, 70), min_pixels=1) == (280, 56)  # 2.5 x 28: half up would be 84
    assert smart_resize((280, 98), min_pixels=1) == (280, 112)  # 3.5 x 28
