"""Protocols of toolkits and papers that score several phone benchmarks by one set of rules."""

from __future__ import annotations

from dataclasses import replace

from guieval.actions import ActionType
from guieval.evaluation.click_rule import ClickRule
from guieval.evaluation.leniencies import (
    AnyLongPress,
    AnyPointedAction,
    AnyWrittenAction,
    ClickForType,
    CornerForPress,
    LongPressIsClick,
    RecentIsHome,
    WaitIsStop,
)
from guieval.evaluation.protocol import EXACT_MATCH, SUCCESS_RATE, FailurePolicy, Metric, Protocol
from guieval.evaluation.rules import OpenRule, ScrollRule, StepRules
from guieval.evaluation.text_rule import TextRule

_CLICK: frozenset[ActionType] = frozenset({"CLICK"})
_POINTED: frozenset[ActionType] = frozenset({"CLICK", "LONG_PRESS"})
_WRITTEN: frozenset[ActionType] = frozenset({"OPEN", "TYPE", "SCROLL"})
_OPEN: frozenset[ActionType] = frozenset({"OPEN"})

_AROUND_TARGET = ClickRule(inside="elements", which="around-reference", enlarge=1.2, clip=True, fallback=0.14)
_NEAREST_5 = ClickRule(inside="elements", which="nearest", enlarge=1.2, clip=True, nearest=5, fallback=0.04)
_WITHIN_14_PER_CENT = ClickRule(inside="nothing", fallback=0.14)

_PHONE_SETS = {
    "androidcontrol": "ac-valtest-finish-noopen-10161",
    "aitz": "aitz-test-4724",
    "gui-odyssey": "gui-odyssey-random-29426",
}
_PHONE_AND_CHINESE_SETS = {**_PHONE_SETS, "cagui": "cagui-agent-4516"}
_GAPS_IN_ODYSSEY = (
    "On GUI-Odyssey episodes are split at gaps of the step numbers; here they are the data's own, which changes the "
    "metrics of whole episodes but not those of steps."
)
_EMPTY_TEXT = "An empty text is part of every text, so typing nothing is always right."
_SHORT_TOUCH = "A touch with a duration below 200 ms is a wait there and not a tap; here it is a tap."

_GUIEVALKIT_SETS = {**_PHONE_AND_CHINESE_SETS, "androidcontrol": "ac-valtest-finish-10814"}
_GUIEVALKIT = StepRules(click=_AROUND_TARGET, tap_limit=200.0)
_GUIEVALKIT_VARIANTS = {
    "androidcontrol": replace(_GUIEVALKIT, click=_NEAREST_5),
    "gui-odyssey": replace(_GUIEVALKIT, click=_WITHIN_14_PER_CENT, leniencies=(RecentIsHome(),)),
}
_GUIEVALKIT_LEFT_OUT = FailurePolicy("left-out", "left-out", "left-out")
_GUIEVALKIT_GAP = FailurePolicy("zero", "zero", "zero")

_AGENTCPM = StepRules(click=_AROUND_TARGET, tap_limit=200.0, leniencies=(WaitIsStop(),))
_MAGICGUI = StepRules(
    click=_AROUND_TARGET,
    text=TextRule("token-f1", threshold=0.5, form="unbracketed", part_of_word=True),
    tap_limit=200.0,
    leniencies=(ClickForType(), CornerForPress(0.15)),
)

_ANSWERED = (
    Metric("type match of answered steps, without OPEN", "type", without=_OPEN),
    Metric("exact match of answered steps, without OPEN", "exact", without=_OPEN),
    Metric("success rate of answered steps, without OPEN", "success", without=_OPEN),
    Metric("goal progress", "progress", without=_OPEN, average="episodes"),
)
_OSATLAS = StepRules(
    # whole thousandths: 140 of them, which 0.14 of the screen would miss, as fractions of them are not exact
    click=ClickRule(inside="nothing", measure="canvas", canvas=(1000.0, 1000.0), fallback=140.0),
    text=TextRule("equal-or-token-f1", threshold=0.5, form="as-given", above=True, span="second-token"),
    button_types=True,
    status_types=True,
)
_OSATLAS_WHOLE_TEXT = replace(_OSATLAS, text=replace(_OSATLAS.text, span="whole"))
_OSATLAS_WHOLE_ACTION = replace(_OSATLAS, text=replace(_OSATLAS.text, compare="token-f1", span="action"))
_OSATLAS_FIGURES = (Metric("SR", "exact"), Metric("type", "type"), Metric("grounding", "exact-given-type", over=_CLICK))
_GUI_R1_TEXT = TextRule("token-f1", threshold=0.5, form="unbracketed", part_of_word=True)

PROTOCOLS = (
    Protocol(
        name="guievalkit",
        source="GUIEvalKit paper, section 3.3; xiaomi-research/guievalkit, guieval/eval/evaluator.py, guieval/main/compute.py",
        summary="elements x1.2 (AndroidControl: 5 nearest, else 0.04; elsewhere: around the reference, else 0.14)",
        rules=_GUIEVALKIT,
        variants=_GUIEVALKIT_VARIANTS,
        sample_sets=_GUIEVALKIT_SETS,
        metrics=(
            Metric("TARGET_NOT_OPEN type match", "type", without=_OPEN),
            Metric("TARGET_NOT_OPEN exact match", "exact", without=_OPEN),
            Metric("TARGET_NOT_OPEN progress", "progress", without=_OPEN, failure=_GUIEVALKIT_GAP),
            Metric("IN_UNIFIED type match", "type"),
            Metric("IN_UNIFIED exact match", "exact"),
            Metric("IN_UNIFIED progress", "progress", failure=_GUIEVALKIT_GAP),
        ),
        failure=_GUIEVALKIT_LEFT_OUT,
        notes=(
            "Responses that cannot be read leave the denominators, so a model gains by failing when it would be wrong; the "
            "share that is kept is reported with them (unified_action_ratio).",
            "Progress weighs episodes by their length, and a step left out before the first mismatch takes the progress of "
            "its whole episode; so does a step that opens an app in the progress without these (TARGET_NOT_OPEN).",
            "A response that clicks and types at once counts as whichever of the two is labelled.",
            _EMPTY_TEXT,
            _SHORT_TOUCH,
            "A box cut at the upper or left edge of the screen keeps its size, so it reaches further down or right.",
            _GAPS_IN_ODYSSEY,
        ),
        version=2,  # a labelled press is never a tap, however short
    ),
    Protocol(
        name="guievalkit-intended",
        source="xiaomi-research/guievalkit, as its paper's section 3.3 describes the metrics",
        summary="as guievalkit, with every failed step counted as wrong and the progress of the steps that are not left out",
        rules=_GUIEVALKIT,
        variants=_GUIEVALKIT_VARIANTS,
        sample_sets=_GUIEVALKIT_SETS,
        metrics=(
            Metric("type match, without OPEN", "type", without=_OPEN),
            Metric("exact match, without OPEN", "exact", without=_OPEN),
            Metric("step-weighted progress, without OPEN", "progress", without=_OPEN),
        ),
        notes=(_EMPTY_TEXT, _SHORT_TOUCH, _GAPS_IN_ODYSSEY),
        mends="guievalkit",
        version=2,  # a labelled press is never a tap, however short
    ),
    Protocol(
        name="agentcpm",
        source="AgentCPM-GUI paper; OpenBMB/AgentCPM-GUI, eval/utils/evaluator.py, run_eval_agent.py, eval_data/process_ac.py",
        summary="elements x1.2 (AndroidControl: 5 nearest, else 0.04; others: around the reference, else 0.14); wait is stop",
        rules=_AGENTCPM,
        variants={
            "androidcontrol": replace(_AGENTCPM, click=_NEAREST_5, leniencies=(WaitIsStop(), LongPressIsClick("label"))),
            "gui-odyssey": replace(_AGENTCPM, click=_WITHIN_14_PER_CENT, leniencies=(WaitIsStop(), RecentIsHome())),
        },
        datasets=frozenset(_PHONE_AND_CHINESE_SETS),
        sample_sets=_PHONE_AND_CHINESE_SETS,
        metrics=_ANSWERED,
        failure=FailurePolicy(missing="left-out"),
        notes=(
            "Waiting and ending are one type that is always right, whichever is labelled.",
            "On AndroidControl labelled long presses were made taps, so a long press is never right, and steps that open an "
            "app were dropped.",
            "Steps without a stored response leave every metric; responses that cannot be read are wrong.",
            "A labelled path of less than 0.04 of the screen is a tap there; loaders here decide it.",
            "A response whose click has no readable place counts as a click at (0, 0).",
            _EMPTY_TEXT,
            _SHORT_TOUCH,
            "A box cut at the upper or left edge of the screen keeps its size, so it reaches further down or right.",
            _GAPS_IN_ODYSSEY,
        ),
        version=2,  # a labelled press is never a tap, however short
    ),
    Protocol(
        name="magicgui",
        source="MagicGUI paper; MagicAgent-GUI/MagicGUI, utils/eval/utils/evaluator_honor.py",
        summary="as agentcpm with 0.14 everywhere, token F1 of at least 0.5, and any click for typing or typing for a click",
        rules=_MAGICGUI,
        variants={
            "androidcontrol": replace(
                _MAGICGUI,
                click=replace(_NEAREST_5, fallback=0.14),
                leniencies=(*_MAGICGUI.leniencies, LongPressIsClick("label")),
            ),
            "gui-odyssey": replace(_MAGICGUI, click=_WITHIN_14_PER_CENT, leniencies=(*_MAGICGUI.leniencies, RecentIsHome())),
        },
        datasets=frozenset(_PHONE_SETS),
        sample_sets=_PHONE_SETS,
        metrics=(
            *_ANSWERED,
            Metric("CLICK_SCROLL_TYPE type match", "type", over=frozenset({"CLICK", "SCROLL", "TYPE"})),
            Metric("CLICK_SCROLL_TYPE exact match", "exact", over=frozenset({"CLICK", "SCROLL", "TYPE"})),
        ),
        failure=FailurePolicy(missing="left-out"),
        notes=(
            "A click anywhere is right if typing is labelled, and any typed text is right if a click is labelled.",
            "A click in the upper left 15 % x 15 % of the screen is right wherever any button is labelled.",
            "The comment next to AndroidControl's distance speaks of Qwen's rule, which has 0.04 in place of 0.14.",
            "A predicted path that touches the coordinate 0 has no direction there.",
            "On AndroidControl the long presses made taps are among its clicks; here CLICK_SCROLL_TYPE leaves them out.",
            "Two empty texts share no token, so typing nothing is wrong even if nothing is labelled.",
            "On AndroidControl labelled long presses were made taps, and steps that open an app were dropped.",
            _SHORT_TOUCH,
            "Steps without a stored response leave every metric; responses that cannot be read are wrong.",
            _GAPS_IN_ODYSSEY,
        ),
        version=2,  # a labelled press is never a tap, however short
    ),
    Protocol(
        name="osatlas",
        source="OS-Atlas paper; OS-Copilot/OS-Atlas, eval/eval_scripts/android_control and odyssey, evaluation_unify.py",
        summary="0.14 of the screen; token F1 above 0.5, of the first word alone (AndroidControl) or of the action's name too",
        rules=_OSATLAS,
        variants={"gui-odyssey": _OSATLAS_WHOLE_ACTION},
        datasets=frozenset({"androidcontrol", "gui-odyssey"}),
        sample_sets={"androidcontrol": "ac-osatlas-7708"},
        metrics=_OSATLAS_FIGURES,
        notes=(
            "On AndroidControl the F1 of typed texts and app names is that of the second word of the written action, so of "
            '"TYPE [hello world]" only "[hello" counts: a text of several words is right when its first word is.',
            "A text of one word carries its closing bracket, so it never agrees with the first of several words.",
            "On GUI-Odyssey the F1 is that of the whole written action, whose own name always agrees, so two texts that share "
            "one of their two words are right.",
            "Places are whole thousandths there, predicted and labelled ones.",
            "Grounding divides by the clicks of the right type, so it rises when a model clicks less often. On GUI-Odyssey it "
            "also divides by long presses of the right type, whose hits it does not count; here by clicks alone.",
            "It reports sub-splits in which an episode counts only in the first list that names it, although they overlap.",
        ),
        version=2,  # distances are whole thousandths
    ),
    Protocol(
        name="osatlas-intended",
        source="OS-Atlas paper; OS-Copilot/OS-Atlas, eval/eval_scripts/android_control and odyssey, evaluation_unify.py",
        summary="0.14 of the screen; texts equal or token F1 above 0.5, of the whole text",
        rules=_OSATLAS_WHOLE_TEXT,
        datasets=frozenset({"androidcontrol", "gui-odyssey"}),
        sample_sets={"androidcontrol": "ac-osatlas-7708"},
        metrics=_OSATLAS_FIGURES,
        notes=("Places are whole thousandths there, predicted and labelled ones.",),
        mends="osatlas",
        version=2,  # distances are whole thousandths
    ),
    Protocol(
        name="gui-r1",
        source="GUI-R1 paper; ritzz-ai/GUI-R1, guir1/eval/eval_omni.py",
        summary="less than 0.14 of the screen, and token F1 of at least 0.5, whatever the predicted action's type",
        rules=StepRules(
            click=replace(_WITHIN_14_PER_CENT, fallback_strict=True),
            text=_GUI_R1_TEXT,
            button_types=True,
            status_types=True,
            leniencies=(AnyPointedAction(), AnyWrittenAction()),
        ),
        datasets=frozenset({"androidcontrol", "gui-odyssey"}),
        sample_sets={"androidcontrol": "ac-osatlas-7708"},
        metrics=(
            Metric("Type", "type"),
            Metric("Step", "exact", over=_POINTED | _WRITTEN),
            Metric("GR", "exact", over=_POINTED),
        ),
        notes=(
            "A place or a text is right even under another action's name; only Type asks for the name.",
            "Waiting, ending and pressing a button are in no metric but Type.",
            "Its responses give a scroll the place (-100, -100), which hits nothing; other formats say where a scroll begins, "
            "and such a place can hit here.",
            "A scroll's direction is compared as a text there, so a typed direction is right if a scroll is labelled.",
            "If one word is part of the other, a text is right, so typing one letter can be.",
            "A kind of action without a single hit falls out of the denominators there, as it has no entry in the table of "
            "hits.",
            "On GUI-Odyssey it takes a selection of its own, whose steps are not published as a list.",
        ),
    ),
    Protocol(
        name="gui-r1-reward",
        source="GUI-R1 paper; ritzz-ai/GUI-R1, verl/utils/reward_score/r1gui.py as of 2025",
        summary="the accuracy part of GUI-R1's reward: the type, clicks within 140 px, token F1 of at least 0.5; any app",
        rules=StepRules(
            click=ClickRule(inside="nothing", measure="pixels", fallback=140.0, fallback_strict=True),
            text=_GUI_R1_TEXT,
            open=OpenRule(text=TextRule("type-only")),
            button_types=True,
            status_types=True,
            leniencies=(AnyLongPress(),),
        ),
        datasets=frozenset({"androidcontrol", "gui-odyssey"}),
        metrics=(EXACT_MATCH,),
        notes=(
            "The reward is 0.8 times this and 0.2 times the form of the response.",
            "If the label is a box and no place, the point must be inside it; that is so in none of the data sets named here.",
            "Pixels are those of the image that the model saw there; here those of the screenshot.",
            "Later versions of the file compare app names and both ends of a swipe too.",
        ),
        version=2,  # a long press is right wherever it is
    ),
    Protocol(
        name="hypertrack-reward",
        source="HyperTrack / GUIEvalKit paper, section 2.2 (R_params of eq. 1)",
        summary="inside the target element's box; the scroll's direction; texts and app names letter for letter",
        rules=StepRules(click=ClickRule(inside="target-element"), text=TextRule("equal", form="as-given")),
        notes=(
            "The paper's target is the label's own box; here it is the step's target, or the smallest of its elements "
            "that contains the labelled place, so a click on a step without such a box is never right.",
            "Pressing a button and ending are not described; here the button must be equal, and any end agrees.",
        ),
    ),
    Protocol(
        name="onekey",
        source="ZTE GUI agent contest 2026, the organisers' test_runner.py (as in hzy1522/ZTE-code-for-student)",
        summary="strictly inside an accepted range; texts and app names letter for letter, or by the label's pattern",
        rules=StepRules(click=ClickRule(inside="target-element", strict=True), text=TextRule("equal", form="as-given")),
        metrics=(SUCCESS_RATE, EXACT_MATCH),
        notes=("If the data have no accepted range, it is the smallest element that contains the labelled place.",),
        version=2,  # an accepted range is a target, where the data say which
    ),
    Protocol(
        name="mobi-bench",
        source="MobiBench paper (arXiv 2512.12634); Mobi-Bench, environment/agentbench/agentbench_env.py (901df24)",
        summary="inside the box of an accepted click; any scroll, any app; texts equal but for case",
        rules=StepRules(
            click=ClickRule(inside="targets", which="around-reference", whole_pixels=True),
            text=TextRule("equal"),
            scroll=ScrollRule("type-only"),
            open=OpenRule(text=TextRule("type-only")),
            leniencies=(LongPressIsClick("prediction"),),
        ),
        datasets=frozenset({"mobi-bench"}),
        metrics=(Metric("task action success rate", "exact"), Metric("task instruction success rate", "success")),
        notes=(
            "The source embeds the typed and the accepted text (OpenAI's text-embedding-3-large) and asks for a cosine of at "
            "least 0.7. Here they must be equal but for case and outer blanks, much as in the source's second matcher, which "
            "measures reflection, so typing is judged more strictly.",
            "Typing requires the right field as well there; a unified action does not say where a text goes.",
            "An agent that names an element is judged by the element's centre, one that names a place by that place, cut to "
            "whole pixels.",
            "Waiting and pressing home are never right.",
            "After a wrong answer the source goes on from the next recorded screen and tells the agent that it took the "
            "default action, which is the mode soeval here.",
            "A response without an action is counted and asked again there, so such a step may count several times; here it "
            "counts once, as wrong. A task during which the program fails counts as failed, and its steps not at all.",
        ),
    ),
)
