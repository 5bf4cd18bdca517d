"""Protocols of papers that score AndroidControl by rules of their own.

What was read is the code at the place that ``source`` names; if only its descendants could be read, a note says so.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from guieval.actions import ActionType
from guieval.evaluation.click_rule import ClickRule
from guieval.evaluation.leniencies import LongPressIsClick, NeverNamed, NodeText, PromptDirection
from guieval.evaluation.protocol import TYPE_MATCH, FailurePolicy, Metric, Protocol
from guieval.evaluation.rules import OpenRule, ScrollRule, StepRules
from guieval.evaluation.text_rule import TextRule

_protocol = partial(Protocol, datasets=frozenset({"androidcontrol"}))
_CLICK: frozenset[ActionType] = frozenset({"CLICK"})
_POINTED: frozenset[ActionType] = frozenset({"CLICK", "LONG_PRESS"})
_TEST_8444 = {"androidcontrol": "ac-test-8444"}
_OSATLAS_7708 = {"androidcontrol": "ac-osatlas-7708"}
_SR = Metric("SR", "exact")

_DIAGONAL = math.sqrt((0.14 * 1080) ** 2 + (0.14 * 2400) ** 2)
"""368.5 px: 14 % of a 1080 x 2400 screen as OS-Genesis and ClawGUI count it, which is a circle two thirds of its width wide."""
_EQUAL_OR_F1 = TextRule("equal-or-token-f1", threshold=0.5, form="as-given", above=True)
_ANY_BOX = ClickRule(inside="elements", enlarge=1.2, fallback=0.04)
_ANY_BOX_LONGEST_SIDE = ClickRule(inside="elements", enlarge=1.2, fallback=0.04, measure="longest-side")
_TARGET_BOX = ClickRule(inside="target-element")
_NEAR = ClickRule(inside="nothing", fallback=0.04)
_WITHIN_14_PER_CENT = ClickRule(inside="nothing", fallback=0.14, fallback_strict=True)

_ZERO = FailurePolicy(unparseable="zero", missing="zero")
_CURATED = _protocol(
    name="ac-curated",
    source="AndroidControl-Curated paper (E_point); batechworks/AndroidControl_Curated, src/eval/utils.py",
    summary="less than 0.14 of the screen; one text in the other or token F1 of at least 0.5",
    rules=StepRules(
        click=_WITHIN_14_PER_CENT,
        text=TextRule("containment-or-token-f1", threshold=0.5, form="label-lowered", part_of_word=True),
        button_types=True,
        status_types=True,
    ),
    sample_sets=_OSATLAS_7708,
    metrics=(_SR,),
    notes=(
        "A prediction may be a box in the source, whose centre then counts; here it is a point.",
        "The source's Type metric asks for the right text and direction too, but not for the right place, and its Grounding "
        "metric does not ask for the right type, so neither is a share of type or exact matches and neither is given here.",
        "Text is compared by its part up to the next colon in the source, so of a web address only the scheme counts there.",
        "Only the label is lower-cased before one text is looked for in the other; words are compared in any case.",
        "The improved set corrects goals and accepts several actions on some steps; any of them counts, as alternatives do "
        "here.",
    ),
    version=2,  # the label alone is lower-cased
)

PROTOCOLS = (
    _protocol(
        name="ui-agile",
        source="UI-AGILE paper; KDEGroup/UI-AGILE, eval/android_control/eval.py",
        summary="less than 0.14 of the screen; typed texts and app names by token F1 of at least 0.5; the type must be right",
        rules=StepRules(
            click=_WITHIN_14_PER_CENT, text=TextRule("equal-or-token-f1", threshold=0.5), button_types=True, status_types=True
        ),
        sample_sets=_OSATLAS_7708,
        metrics=(Metric("action accuracy", "type"), _SR),
        notes=(
            "Its scroll labels were rewritten (androidcontrol_high_test_fixed_scroll_wo_direction); here they are "
            "AndroidControl's.",
            "Its grounding accuracy counts clicks that hit although their type is wrong, over labelled clicks and long "
            "presses; protocol gui-r1 gives that metric by the same rule.",
            "A response without a coordinate counts as a click at (0, 0) there, which can hit a target in that corner.",
            "Steps without a labelled place are skipped there; AndroidControl has none.",
            "Its prompt does not offer a long press, so all of them (7 in its set) count as wrong.",
        ),
    ),
    _protocol(
        name="os-genesis",
        source="OS-Genesis paper; OS-Copilot/OS-Genesis, evaluation/android_control/ac_eval.py",
        summary="a circle of 368 px; typed text equal or token F1 above 0.5; app names letter for letter",
        rules=StepRules(
            click=ClickRule(inside="nothing", measure="pixels", fallback=_DIAGONAL, whole_pixels=True),
            text=_EQUAL_OR_F1,
            open=OpenRule(text=TextRule("equal", form="as-given")),
            button_types=True,
            status_types=True,
            leniencies=(PromptDirection(),),
        ),
        metrics=(_SR, TYPE_MATCH),
        notes=(
            "The accepted circle is as wide as two thirds of a 1080 px screen: about 13.5 % of all places are hits.",
            "A click without a place is put at (-100, -100) there, from where it can reach a label near the upper left corner; "
            "here it is a response without an action.",
            "The circle has as many pixels on every screen, so it is smaller in proportion on a larger one.",
            "A scroll in the direction that the prompt names is right even if the label says the opposite.",
            "Its prompt has the screen's elements and the history too, so words found there count as named in the source.",
            "Actions that have no rule of their own are compared whole, so superfluous arguments make them wrong there.",
            "It reports sub-splits in which an episode counts only in the first list that names it, although they overlap.",
        ),
    ),
    _protocol(
        name="ui-genie",
        source="UI-Genie paper; Euphoria16/UI-Genie, src/ms-swift/eval_results_androidcontrol.py (bb7df6b)",
        summary="a circle of 0.14 of the screen's diagonal; one text in the other; app names also by token F1 above 0.5",
        rules=StepRules(
            click=ClickRule(inside="nothing", measure="diagonal", fallback=0.14, whole_pixels=True),
            text=TextRule("containment", form="single-spaced"),
            open=OpenRule(text=TextRule("containment-or-token-f1", above=True)),
            stop="status",
        ),
        failure=FailurePolicy(unparseable="left-out"),
        metrics=(
            Metric("action_acc", "exact"),
            Metric("type_match_acc", "type"),
            Metric("grounding_acc", "exact-given-place", over=_POINTED),
            Metric("ep_acc", "success", failure=FailurePolicy()),
        ),
        notes=(
            "The circle is about 368 px wide on a screen of 1080 x 2400: 13.5 % of all places are hits, as in os-genesis.",
            "Responses that are not JSON are left out of the shares of steps, and make their episode wrong.",
            "Its grounding_acc counts a click in place of a long press, and the other way round, as a miss.",
            "Its labels were rewritten from AndroidControl's, and its prompt is in a data file that is not in the repository.",
        ),
    ),
    _protocol(
        name="qwen-gist",
        source="LukeForeverYoung, gists 1f5d1949 and 274a073c, cited by Qwen2.5-VL issue 904 and MobileAgent issue 157",
        summary="any candidate element x1.2, else 0.04; an app may be opened by clicking its icon",
        rules=StepRules(click=_ANY_BOX, open=OpenRule(icon=_ANY_BOX)),
        sample_sets=_TEST_8444,
        notes=(
            "It was read through its descendants InfiGUI-R1, UI-S1 and AgentCPM-GUI, which name it as their base; that "
            "scrolls are compared by direction is taken from InfiGUI-R1.",
            "An empty text is part of every text, so typing nothing is always right.",
            "Candidate boxes can be containers larger than half the screen, so 22.6 % of all places are hits on average.",
        ),
    ),
    _protocol(
        name="infigui-r1",
        source="InfiGUI-R1 paper; InfiXAI/InfiGUI-R1, eval/android_control/evaluate_android_control.py",
        summary="any candidate element x1.2, else 0.04 of the longer side; an app may be opened by clicking its icon",
        rules=StepRules(click=_ANY_BOX_LONGEST_SIDE, open=OpenRule(icon=_ANY_BOX_LONGEST_SIDE)),
        sample_sets=_TEST_8444,
        metrics=(
            Metric("type match of answered steps", "type"),
            Metric("exact match of answered steps", "exact"),
            Metric("click", "exact", over=_CLICK, failure=FailurePolicy(unparseable="left-out", missing="left-out")),
        ),
        failure=FailurePolicy(missing="left-out"),
        notes=(
            "Responses that cannot be read leave the click metric, because the script goes on before it counts the labelled "
            "click; a click that opens an app is counted among its hits there, though not among its steps.",
            "Distances are measured in the resized image there, whose sides are multiples of 28; here in the screenshot.",
            "The direction of a predicted scroll is compared with the label's word; that this word is the finger's direction "
            "in its data is assumed.",
            "Steps whose image cannot be read are skipped; responses that cannot be read are wrong.",
            "An empty text is part of every text, so typing nothing is always right.",
        ),
        version=2,  # responses that cannot be read leave the click metric
    ),
    _protocol(
        name="ui-s1-sop",
        source="UI-S1 paper, appendix C; X-PLUG/MobileAgent, UI-S1/evaluation/qwenvl_utils.py",
        summary="any candidate element x1.2, else 0.04; every scroll agrees; an app may be opened by clicking its icon",
        rules=StepRules(click=_ANY_BOX, scroll=ScrollRule("type-only"), open=OpenRule(icon=_ANY_BOX)),
        sample_sets=_TEST_8444,
        metrics=(Metric("PG", "progress", average="episodes"), Metric("TSR", "success"), Metric("score", "score")),
        notes=(
            "PG counts the steps before a response that cannot be read, as appendix C defines it; the released script gives "
            "such an episode no progress at all, as ui-s1-sop-released does.",
            "Every scroll is right, for the comparison of directions is commented out.",
            "An empty text is part of every text, so typing nothing is always right.",
            "Metrics are meant for runs that stop at the first mismatch and show the model its own past answers.",
        ),
        mends="ui-s1-sop-released",
        version=2,  # PG and score are those of appendix C
    ),
    _protocol(
        name="ui-s1-sop-released",
        source="X-PLUG/MobileAgent, UI-S1/evaluation/eval_qwenvl.py (function fix_line) with qwenvl_utils.py",
        summary="as ui-s1-sop, but the released script throws the candidate boxes away: 0.04 and nothing else",
        rules=StepRules(click=_NEAR, scroll=ScrollRule("type-only")),
        sample_sets=_TEST_8444,
        metrics=(
            Metric("PG, unreadable episodes as 0", "progress", average="episodes", failure=_ZERO),
            Metric("TSR", "success"),
            Metric("score, unreadable episodes as 0", "score", failure=_ZERO),
        ),
        notes=(
            "The script replaces each step's check options, which hold the candidate boxes of the released file, by the bare "
            "action with an empty list of boxes; whether the published numbers were made so is not known.",
            "Without boxes a click never opens an app.",
            "An episode in which anything raises, such as a response that cannot be read, has no progress at all.",
        ),
    ),
    _protocol(
        name="ui-s1-reward-match",
        source="X-PLUG/MobileAgent, UI-S1/verl/utils/reward_score/gui_utils/utils.py",
        summary="the matcher UI-S1 trains with: as ui-s1-sop, but scrolls are checked and an icon click opens nothing",
        rules=StepRules(click=_ANY_BOX, scroll=ScrollRule("ui-s1-reward")),
        notes=(
            "The released matcher meets boxes only as four bare numbers; a list of boxes is read here as it is meant there.",
            "Labels of answering and of pressing a key are judged as typing there; loaders here decide what such labels are.",
            "Its option to compare texts letter for letter is off, as it is by default.",
        ),
    ),
    _protocol(
        name="mimo-vl",
        source="MiMo-VL report; XiaomiMiMo/lmms-eval, lmms_eval/tasks/android_control/utils.py",
        summary="the 5 nearest elements x1.2, else 0.04; app names letter for letter",
        rules=StepRules(
            click=ClickRule(inside="elements", which="nearest", enlarge=1.2, clip=True, nearest=5, fallback=0.04),
            open=OpenRule(text=TextRule("equal", form="as-given")),
        ),
        metrics=(Metric("action_type_acc", "type"), Metric("step_wise_acc", "exact")),
        notes=(
            "The reported number is the mean of step_wise_acc with and without the step's own instruction (MiMo-VL issue 35).",
            "Responses were sampled at temperature 0.1 there.",
            "A right type without its argument counts as a type match and a parse error there; here it is a response without "
            "an action.",
            "An empty text is part of every text, so typing nothing is always right.",
        ),
    ),
    _protocol(
        name="clawgui",
        source="ClawGUI, clawgui-eval/judge/androidcontrol_judge.py",
        summary="the 5 elements nearest to the prediction, else a circle of 368 px on a 1080 x 2400 canvas; token F1 above 0.5",
        rules=StepRules(
            click=ClickRule(
                inside="elements", which="nearest-to-prediction", measure="canvas", fallback=_DIAGONAL, whole_pixels=True
            ),
            text=_EQUAL_OR_F1,
        ),
        sample_sets=_OSATLAS_7708,
        metrics=(TYPE_MATCH, Metric("match success", "exact")),
        notes=(
            "Its README says that only boxes count; the code accepts the circle too.",
            "Labelled places are cut to whole pixels of the canvas too.",
            "Boxes are taken for pixels of a 1080 x 2400 screen there, so on larger screens they lie elsewhere.",
            "Qwen2.5-VL's coordinates are divided by 1080 and 2400 there although they belong to the resized image.",
            "Answers, ends and buttons other than back and home count as unreadable responses, so their type is wrong too.",
        ),
        version=2,  # places are cut on the canvas
    ),
    _CURATED,
    replace(
        _CURATED,
        name="ac-curated-bbox",
        source="AndroidControl-Curated paper (E_bbox); batechworks/AndroidControl_Curated, src/eval/utils.py",
        summary="inside the target element's box; one text in the other or token F1 of at least 0.5",
        rules=replace(_CURATED.rules, click=_TARGET_BOX),
        notes=(
            "The target's box is in its own files; here it is the step's target, or the smallest of its elements that contains "
            "the labelled place.",
            *_CURATED.notes,
        ),
    ),
    _protocol(
        name="uground-ac",
        source="AndroidControl paper, appendix D.3; OSU-NLP-Group/UGround, offline_evaluation/AndroidControl/eval.py",
        summary="the smallest element that contains the labelled place; exact texts; clicks that name the app or back",
        rules=StepRules(
            click=_TARGET_BOX,
            text=TextRule("equal", form="as-given"),
            button_types=True,
            status_types=True,
            leniencies=(NodeText(),),
        ),
        sample_sets={"androidcontrol": "ac-uground-500"},
        metrics=(Metric("accuracy", "exact"),),
        failure=FailurePolicy(missing="left-out"),
        notes=(
            "Typing requires the right field as well there; a unified action does not say where a text goes.",
            "A click on an element whose text contains the app's name opens it, and one whose text contains the word back goes "
            "back, only if the data give each box its text.",
            "If a click is labelled and an app is opened, the source asks the label for an app name that it does not have, "
            "so there any text of the element will do.",
            "Its grounding accuracy also counts typing and those exchanged actions among the places given, and is not given "
            "here.",
        ),
    ),
    _protocol(
        name="ui-r1",
        source="UI-R1 paper; lll6gg/UI-R1, evaluation/eval_ac.py and test_androidcontrol.py",
        summary="a circle of less than 151.2 px on a 1080 x 2400 canvas; of everything else only the type",
        rules=StepRules(
            click=ClickRule(
                inside="nothing",
                measure="canvas",
                fallback=1080 * 0.14,
                fallback_strict=True,
                zero_is_missing=True,
                whole_pixels=True,
            ),
            text=TextRule("type-only"),
            scroll=ScrollRule("type-only"),
            open=OpenRule(text=TextRule("type-only")),
            press="type-only",
        ),
        sample_sets={"androidcontrol": "ac-no-wait-long-press-7868"},
        metrics=(TYPE_MATCH, Metric("grounding", "exact", over=_CLICK)),
        notes=(
            "Typed texts, app names and scroll directions are not looked at.",
            "The action is found by searching the response for five names, of which the last in the order open_app, click, "
            "scroll, input_text, navigate_back counts.",
            "The first two integers of a response are its place, scaled from a fixed 644 x 1484 image to a fixed 1080 x 2400 "
            "screen and compared with the label's pixels, so labels from larger screens are compared with places on another "
            "scale.",
            "Clicks that give no place leave the denominator of their type there; here their type counts and they miss.",
        ),
        version=2,  # places are cut on the canvas
    ),
    _protocol(
        name="ui-s1-reward",
        source="UI-S1 paper, section 3.4 (r_type and r_acc of eq. 8)",
        summary="the reward of UI-S1's paper: any candidate element x1.2, else 0.04; texts and app names letter for letter, "
        "white space around them aside",
        rules=StepRules(click=_ANY_BOX, text=TextRule("equal", form="stripped"), stop="status"),
        notes=(
            "The paper says only that r_acc is an exact action match; how near a click must be is taken from qwen-gist, from "
            "which the released matchers descend.",
            "White space around a text is not compared, because the released matcher strips it however strict it is.",
        ),
    ),
    _protocol(
        name="ui-r1-reward",
        source="UI-R1 paper, section 3.2 (R_T and R_C of eq. 2 and 3)",
        summary="what UI-R1 trains with: inside the target element's box; of everything else only the type",
        rules=StepRules(
            click=_TARGET_BOX,
            text=TextRule("type-only"),
            scroll=ScrollRule("type-only"),
            open=OpenRule(text=TextRule("type-only")),
            button_types=True,
            status_types=True,
        ),
        notes=(
            "The paper's target is the label's own box; here it is the step's target, or the smallest of its elements "
            "that contains the labelled place, so a click on a step without such a box is never right.",
            "Typed texts, app names and scroll directions are not looked at.",
        ),
    ),
    _protocol(
        name="screensuite",
        source="huggingface/screensuite, benchmarks/singlestep/androidcontrol/benchmark.py and benchmarks/utils.py (8e85edb)",
        summary="a click's credit falls with its distance: 1 at the label, 0 from 0.71 of the screen; texts equal in any case",
        rules=StepRules(
            click=ClickRule(inside="nothing", fallback=math.sqrt(0.5), fallback_strict=True),
            text=TextRule("equal"),
            leniencies=(LongPressIsClick("both"), NeverNamed()),
        ),
        failure=FailurePolicy(missing="left-out"),
        metrics=(Metric("action_acc", "graded", without=frozenset({"STOP"})),),
        notes=(
            "A click's credit is a number, but a verdict is right or wrong: here it is right if it earns any credit, so "
            "exact match counts nearly every click. The metric is the source's.",
            "The code was read in a copy of the repository with its history (NathanTrance/screensuite).",
            "Its data hold no ends of tasks, so those steps are left out.",
            "A response must begin with its call: what is before the first bracket is taken for the call's name.",
            "Samples without an answer are left out of the mean and reported as proportion_missing.",
        ),
    ),
)
