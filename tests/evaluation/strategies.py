"""Random steps, actions and rules, for properties of judging."""

from __future__ import annotations

from typing import get_args

from hypothesis import strategies as st

from guieval import actions as act
from guieval.evaluation import ClickRule, Leniency, OpenRule, ScrollRule, StepRules, TextRule
from guieval.evaluation.click_rule import ClickReference, Inside, Measure, Which
from guieval.evaluation.leniencies import (
    AnyLongPress,
    AnyPointedAction,
    AnyWrittenAction,
    ClickForType,
    CornerForPress,
    LongPressIsClick,
    NodeText,
    PromptDirection,
    RecentIsHome,
    WaitIsStop,
)
from guieval.evaluation.rules import PressComparison, ScrollComparison, StopComparison
from guieval.evaluation.text_rule import Similarity, Span, TextComparison, TextForm, Tokens
from guieval.steps import StepTaskModel

# A coarse grid beside free floats, so that points meet borders and box centres tie.
coordinate = st.integers(0, 25).map(lambda k: 40.0 * k) | st.floats(0, 1000)
points = st.builds(act.Point, coordinate, coordinate)
directions = st.sampled_from(act.DIRECTIONS)
texts = st.sampled_from(["", "a", "A b", " b ", "Clock", "clock app", "[clock]", "a a b", "İ"])
clicks = st.builds(lambda point: act.Click(point=point), points)
presses_held = st.builds(
    lambda point, duration: act.LongPress(point=point, duration=duration), points, st.sampled_from([0.0, 200.0, 200.5, 1000.0])
)
opens = st.builds(lambda app: act.Open(app=app), texts)
actions: st.SearchStrategy[act.Action] = st.one_of(
    clicks,
    clicks,
    presses_held,
    st.builds(lambda point, direction: act.Scroll(point=point, direction=direction), points, directions),
    st.builds(lambda text: act.Type(text=text), texts),
    opens,
    st.builds(lambda button: act.Press(button=button), st.sampled_from(act.BUTTONS)),
    st.just(act.Wait()),
    st.builds(lambda status: act.Stop(status=status), st.sampled_from(["finish", "impossible"])),
)
names = st.sampled_from(["drag", "Drag", "hotkey", ""])
arguments = st.sampled_from(
    [{}, {"n": 1}, {"n": 1.0}, {"n": True}, {"keys": ["ctrl", "c"], "n": 1}, {"n": 1, "keys": ["ctrl", "c"]}]
)
unsupported = st.builds(lambda name, given: act.Unsupported(name=name, arguments=given), names, arguments)
incomplete = st.builds(lambda name, known: act.Unsupported(name=name, known=known), names, st.sampled_from(act.ACTION_TYPES))
whole: st.SearchStrategy[act.Action] = actions | unsupported
"""What a label can be."""
anything = whole | incomplete
sides = st.tuples(coordinate, coordinate).map(sorted)
box = st.tuples(sides, sides).map(lambda xy: [xy[0][0], xy[1][0], xy[0][1], xy[1][1]])
boxes = st.lists(box, max_size=9)
labels = st.fixed_dictionaries(
    {},
    optional={
        "direction_label": st.sampled_from([*act.DIRECTIONS, "no direction"]),
        "polygon": st.lists(st.lists(coordinate, min_size=2, max_size=2), max_size=6),
        "text_patterns": st.lists(st.sampled_from(["a.*", "[bB]?", "(", ".*k", "a{99999999999999}"]), max_size=2),
        "box_texts": st.lists(st.sampled_from(["Clock app", "a", "Go BACK", "", None]), max_size=9),
    },
)


@st.composite
def tasks(draw: st.DrawFn) -> StepTaskModel:
    return StepTaskModel(
        benchmark="test",
        dataset=draw(st.sampled_from(["androidcontrol", "aitz", "gui-odyssey"])),
        episode_id="e",
        step_index=0,
        episode_length=1,
        setting=draw(st.sampled_from(["high", "low"])),
        instruction=draw(st.sampled_from(["", "Scroll up and down"])),
        low_level_instruction=draw(st.sampled_from([None, "Scroll down"])),
        screenshot="s.png",
        screenshot_size=draw(st.sampled_from([(1080, 2400), (1000, 500)])),
        action=draw(whole),
        alternatives=tuple(draw(st.lists(whole, max_size=2))),
        targets=draw(boxes),
        elements=draw(boxes),
        extras=draw(labels),
    )


thresholds = st.sampled_from([0.0, 0.14, 0.5, 0.8, 1.0])
click_rules = st.builds(
    ClickRule,
    enlarge=st.sampled_from([0.5, 1.0, 1.2, 2.4]),
    clip=st.booleans(),
    inside=st.sampled_from(get_args(Inside)),
    which=st.sampled_from(get_args(Which)),
    nearest=st.integers(1, 6),
    fallback=st.none() | thresholds | st.sampled_from([40.0, 151.2, 368.0]),
    strict=st.booleans(),
    polygon=st.booleans(),
    measure=st.sampled_from(get_args(Measure)),
    canvas=st.sampled_from([(1080.0, 2400.0), (1000.0, 1000.0)]),
    fallback_strict=st.booleans(),
    zero_is_missing=st.booleans(),
    whole_pixels=st.booleans(),
    far_edge=st.sampled_from([0.0, 1.0]),
    reference=st.sampled_from(get_args(ClickReference)),
    by_node=st.booleans(),
)
text_rules = st.builds(
    TextRule,
    compare=st.sampled_from(get_args(TextComparison)),
    threshold=thresholds,
    form=st.sampled_from(get_args(TextForm)),
    above=st.booleans(),
    similarity=st.sampled_from(get_args(Similarity)),
    tokens=st.sampled_from(get_args(Tokens)),
    span=st.sampled_from(get_args(Span)),
    part_of_word=st.booleans(),
)
LENIENCIES: tuple[Leniency, ...] = (
    WaitIsStop(),
    LongPressIsClick(),
    LongPressIsClick("both"),
    LongPressIsClick("prediction"),
    AnyLongPress(),
    AnyPointedAction(),
    AnyWrittenAction(),
    ClickForType(),
    CornerForPress(),
    CornerForPress(0.5),
    RecentIsHome(),
    NodeText(),
    PromptDirection(),
)
FIELDS: dict[str, st.SearchStrategy[object]] = {
    "click": click_rules,
    "text": text_rules,
    "scroll": st.builds(ScrollRule, compare=st.sampled_from(get_args(ScrollComparison))),
    "open": st.builds(OpenRule, icon=st.none() | click_rules, text=st.none() | text_rules),
    "stop": st.sampled_from(get_args(StopComparison)),
    "tap_limit": st.none() | st.just(200.0),
    "press": st.sampled_from(get_args(PressComparison)),
    "button_types": st.booleans(),
    "status_types": st.booleans(),
    "leniencies": st.lists(st.sampled_from(LENIENCIES), max_size=3, unique=True).map(tuple),
}
"""What each field of the step rules may be."""

step_rules = st.builds(StepRules, **FIELDS)
