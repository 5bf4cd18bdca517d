"""Protocols of grounding benchmarks: one target, one point.

Most judge a point alike, border included; they differ in how they read numbers (see their notes, because it is outside a
judgement of unified points), in what they do with failures, and in how they average.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from guieval.evaluation.click_rule import ClickRule
from guieval.evaluation.leniencies import AnyPointedAction
from guieval.evaluation.protocol import FailurePolicy, Metric, Protocol
from guieval.evaluation.rules import StepRules

_POINT_IN_BOX = StepRules(click=ClickRule(inside="targets"))
_LESS_A_PIXEL = replace(_POINT_IN_BOX, click=ClickRule(inside="targets", far_edge=1.0))
_HALF_OPEN = replace(_POINT_IN_BOX, click=ClickRule(inside="targets", far_edge=1e-3))
"""A thousandth of a pixel means the border alone: no point of a response is that near to it without being on it."""
_WHOLE_PIXELS = replace(_POINT_IN_BOX, click=ClickRule(inside="targets", whole_pixels=True))
_OR_REFUSED = StepRules(click=ClickRule(inside="targets"), stop="status")
_OR_POLYGON = StepRules(click=ClickRule(inside="targets", polygon=True), stop="status")

_SAMPLE_SETS = {
    "screenspot": "screenspot-1272",
    "screenspot-v2": "screenspot-v2-1272",
    "screenspot-pro": "screenspot-pro-1581",
    "osworld-g": "osworld-g-564",
    "mmbench-gui-l2": "mmbench-gui-l2-3594",
}
_CELLS = ("platform", "element")
_GROUPS = ("group", "element")
_PIXELS_ABOVE_1 = "A point with a value above 1 is taken for pixels, so models that answer in thousandths fail."
_WEIGHED_TWICE = (
    "Text_Accuracy, Icon_Accuracy and a category's accuracy are the second metric over the steps of that part: a cell "
    "of n steps is counted n times, so it weighs n squared."
)
_AT_ORIGIN = (
    "A response without coordinates is given the point (0, 0), so there are no format errors, and it hits a target that "
    "reaches the upper left corner; here it is wrong."
)


def _pointing(
    name: str,
    source: str,
    datasets: tuple[str, ...],
    metrics: tuple[Metric, ...],
    notes: tuple[str, ...],
    *,
    summary: str = "grounding: the point is inside the target box, border included; every target counts alike",
    rules: StepRules = _POINT_IN_BOX,
    **others: Any,
) -> Protocol:
    """A protocol for grounding on the sample sets of its data sets; ``others`` are further fields of the protocol."""
    return Protocol(
        name=name,
        source=source,
        summary=summary,
        rules=rules,
        datasets=frozenset(datasets),
        sample_sets={name: _SAMPLE_SETS[name] for name in datasets if name in _SAMPLE_SETS},
        metrics=metrics,
        notes=notes,
        **others,
    )


PROTOCOLS = (
    _pointing(
        name="seeclick-official",
        source="SeeClick paper (ScreenSpot); njucckevin/SeeClick, pretrain/screenspot_test.py",
        summary="grounding: the point is inside the target box, border included; the mean of the 6 cells is reported",
        datasets=("screenspot", "screenspot-v2"),
        metrics=(Metric("Average", "exact", average="cells", keys=_CELLS), Metric("Action Acc", "exact")),
        notes=(
            "A response with the word box is read as a box in thousandths and counts as its centre, any other one as a point "
            "in screen fractions.",
            "The script prints text and icons of each platform; the mean of these six is the paper's.",
        ),
    ),
    _pointing(
        name="sspro-official",
        source="ScreenSpot-Pro paper; likaixin2000/ScreenSpot-Pro-GUI-Grounding, eval_screenspot_pro.py",
        summary="grounding: the point is inside the target box, border included; what has no target must be refused",
        rules=_OR_REFUSED,
        datasets=("screenspot-pro",),
        metrics=(Metric("action_acc", "exact"),),
        notes=(
            "The metric counts every target alike; by group, application and kind of element the scorer gives shares, no mean.",
            "Whether a model is allowed to refuse is decided by the last sample of the list, for all of them.",
            "The negative instructions are not released.",
        ),
        version=2,  # a refusal must be one
    ),
    _pointing(
        name="se-gui",
        source="SE-GUI paper; YXB-NKU/SE-GUI, src/eval/test_grounding_r1_nothink.py (0e26237)",
        summary="grounding: the point is inside the target box, its right and lower border left out",
        rules=_HALF_OPEN,
        datasets=("screenspot-pro", "screenspot", "screenspot-v2"),
        metrics=(Metric("accuracy", "exact"),),
        notes=(_AT_ORIGIN,),
    ),
    _pointing(
        name="cagui-grounding",
        source="AgentCPM-GUI paper, appendix C.1; OpenBMB/AgentCPM-GUI, eval/grounding_eval",
        summary="grounding (Fun2Point, Text2Point): the point is inside the target box, border included",
        datasets=("cagui-grounding",),
        metrics=(Metric("accuracy", "exact"), Metric("mean of the tasks", "exact", average="cells", keys=("task",))),
        notes=(
            "Each model has a script of its own, which reads its numbers its own way.",
            "Bbox2Text, the third task, compares a predicted text with the label's and is not an action; the paper's average "
            "counts it.",
        ),
    ),
    _pointing(
        name="lmms-rec",
        source="EvolvingLMMs-Lab/lmms-eval, lmms_eval/tasks/screenspot/utils_rec.py (Center_ACC)",
        summary="grounding: the middle of the predicted box is inside the target box, border included",
        datasets=("screenspot",),
        metrics=(Metric("Center_ACC", "exact"),),
        notes=(
            "It asks for a box in screen fractions, of which a unified action keeps the middle; IoU and the accuracies at an "
            "IoU, which it gives too, need the box itself.",
            "Versions that take values above 1 divide them by 1000, but lmms-v2 and lmms-pro by the size of the image.",
            _AT_ORIGIN,
        ),
    ),
    _pointing(
        name="lmms-v2",
        source="EvolvingLMMs-Lab/lmms-eval, lmms_eval/tasks/screenspot_v2/utils.py",
        datasets=("screenspot-v2",),
        metrics=(Metric("screenspot_v2_action_acc", "exact"),),
        notes=(
            _PIXELS_ABOVE_1,
            "A target whose last two numbers are both larger than its first two is taken for corners, not for a width and a "
            "height.",
        ),
    ),
    _pointing(
        name="lmms-pro",
        source="EvolvingLMMs-Lab/lmms-eval, lmms_eval/tasks/screenspot_pro/utils.py",
        datasets=("screenspot-pro",),
        metrics=(Metric("screenspot_pro_action_acc", "exact"),),
        notes=(_PIXELS_ABOVE_1,),
    ),
    _pointing(
        name="vlmevalkit",
        source="open-compass/VLMEvalKit, vlmeval/dataset/GUI/screenspot.py",
        summary="grounding: inside the target box less a pixel on the right and below; parts weigh by their size twice",
        rules=_LESS_A_PIXEL,
        datasets=("screenspot", "screenspot-v2"),
        metrics=(
            Metric("Overall_Accuracy", "exact"),
            Metric("accuracy of a part", "exact", average="cells-by-size", keys=_CELLS),
        ),
        notes=(
            "The far edge of a box is x + w - 1, a pixel short of the box.",
            _WEIGHED_TWICE,
            "The category in its tables is taken to be the platform.",
            _PIXELS_ABOVE_1,
            _AT_ORIGIN,
        ),
    ),
    _pointing(
        name="vlmevalkit-intended",
        source="open-compass/VLMEvalKit, vlmeval/dataset/GUI/screenspot.py, with whole boxes and every target counted once",
        datasets=("screenspot", "screenspot-v2"),
        metrics=(Metric("Overall_Accuracy", "exact"),),
        notes=("The accuracy of a part is the same metric over the steps of that part.",),
        mends="vlmevalkit",
    ),
    _pointing(
        name="vlmevalkit-pro",
        source="open-compass/VLMEvalKit, vlmeval/dataset/GUI/screenspot_pro.py",
        summary="grounding: the point is inside the target box, border included; parts weigh by their size twice",
        datasets=("screenspot-pro",),
        metrics=(
            Metric("Overall_Accuracy", "exact"),
            Metric("accuracy of a part", "exact", average="cells-by-size", keys=_GROUPS),
        ),
        notes=(
            "Its boxes have their corners given and lose no pixel, unlike those of ScreenSpot in the same toolkit.",
            _WEIGHED_TWICE,
            "The category in its tables is taken to be the group.",
            _PIXELS_ABOVE_1,
            _AT_ORIGIN,
        ),
    ),
    _pointing(
        name="vlmevalkit-pro-intended",
        source="open-compass/VLMEvalKit, vlmeval/dataset/GUI/screenspot_pro.py, with every target counted once",
        datasets=("screenspot-pro",),
        metrics=(Metric("Overall_Accuracy", "exact"),),
        notes=("The accuracy of a part is the same metric over the steps of that part.",),
        mends="vlmevalkit-pro",
    ),
    _pointing(
        name="evalscope",
        source="modelscope/evalscope, evalscope/benchmarks/screenspot_pro",
        datasets=("screenspot-pro",),
        metrics=(Metric("acc", "exact"),),
        notes=(
            "The size of a number decides its meaning: up to 1 a fraction, up to 1000 thousandths, else pixels, so a pixel "
            "answer near the upper left corner is misread.",
        ),
    ),
    _pointing(
        name="clawgui-grounding",
        source="ZJU-REAL/ClawGUI, clawgui-eval/judge/grounding_judge.py",
        summary="grounding: the point, cut to whole pixels, is inside the target box, border included",
        rules=_WHOLE_PIXELS,
        datasets=("screenspot-v2", "screenspot-pro"),
        metrics=(Metric("accuracy", "exact"),),
        notes=(
            "Cutting moves a point up to a pixel left and up: one within the first pixel of a box may fall out of it, and one "
            "up to a pixel past its far edge gets in.",
            "Each model has a parser of its own: those of Qwen2.5-VL, Qwen3-VL, UI-TARS, MAI-UI and StepGUI cut to whole "
            "pixels, those of UI-Venus, Seed, Kimi and GUI-G2 do not; StepGUI's divides by 999.",
        ),
    ),
    _pointing(
        name="gui-r1-grounding",
        source="GUI-R1 paper; ritzz-ai/GUI-R1, guir1/eval/eval_screenspot.py",
        summary="grounding: the point is strictly inside the target box; every target counts alike",
        rules=replace(_POINT_IN_BOX, click=ClickRule(inside="targets", strict=True)),
        datasets=("screenspot", "screenspot-pro"),
        metrics=(Metric("overall", "exact"),),
        notes=("A cell without a single hit is not printed.",),
    ),
    _pointing(
        name="showui",
        source="ShowUI paper; showlab/ShowUI, main/eval_screenspot.py",
        summary="grounding: the point is inside the target box, border included; the mean of the 6 cells",
        datasets=("screenspot",),
        metrics=(Metric("Avg Success Rate", "exact", average="cells", keys=_CELLS),),
        notes=(
            "If generation fails, the sample before it is counted once more in its place, with its own prediction.",
            "For models that answer in thousandths the target box is cut to whole thousandths first.",
        ),
    ),
    _pointing(
        name="ui-r1-grounding",
        source="UI-R1 paper; lll6gg/UI-R1, evaluation/test_screenspot.py and eval_ss.py",
        summary="grounding: the place of any action is inside the target box, border included; every target counts alike",
        rules=replace(_POINT_IN_BOX, leniencies=(AnyPointedAction(),)),
        datasets=("screenspot",),
        metrics=(Metric("accuracy", "exact"),),
        failure=FailurePolicy(missing="left-out"),
        notes=(
            "Only the place of an answer is read, whatever action it names.",
            "A sample whose generation fails is written nowhere and so not counted.",
            "A sample is right when the line of its result contains the word true anywhere, the model's response included.",
            "Boxes are taken for corners, while ScreenSpot's lists give width and height: they must be rewritten before.",
            "The kind of an element is looked up by its box alone within its platform.",
            _AT_ORIGIN,
        ),
    ),
    _pointing(
        name="gui-actor",
        source="GUI-Actor paper; microsoft/GUI-Actor, eval/screenSpot.py, screenSpot_v2.py and screenSpot_pro.py (hit_top1)",
        summary="grounding: the model's first point is inside the target box, border included; every target counts alike",
        datasets=("screenspot", "screenspot-v2", "screenspot-pro"),
        metrics=(Metric("hit_top1", "exact"),),
        notes=(
            "hit_topk asks whether any of three points hits, which one action cannot answer.",
            "overlap_top1 and overlap_topk add a patch of 14 to a point in screen fractions, so the patch covers every target.",
            "A box of which no corner exceeds 1 is taken for screen fractions.",
        ),
    ),
    _pointing(
        name="infigui-g1",
        source="InfiGUI-G1 paper; InfiXAI/InfiGUI-G1, eval/prompts.py",
        summary="grounding: the first point is inside the target box or polygon; what has no target must be refused",
        rules=_OR_POLYGON,
        datasets=("screenspot-v2", "screenspot-pro", "ui-vision", "mmbench-gui-l2"),
        metrics=(Metric("correct_accuracy", "exact"),),
        notes=(
            "has_correct_accuracy asks whether any of the predicted points hits, which one action cannot answer.",
            "If there is no target, a response that cannot be read counts as a refusal; no data set it reads has such samples.",
            "Its ray casting takes in only half of a polygon's border.",
        ),
    ),
    _pointing(
        name="uground-grounding",
        source="UGround paper; OSU-NLP-Group/UGround, offline_evaluation/ScreenSpot/eval.py",
        summary="grounding: the point is inside the target box, border included; the mean of the 6 cells",
        datasets=("screenspot",),
        metrics=(Metric("Average Accuracy", "exact", average="cells", keys=_CELLS),),
        notes=(
            "Answers are whole pixels of the image that the model saw, divided by its scale; CogAgent's are thousandths, cut "
            "to whole pixels, of which (0, 0) does not count as an answer.",
        ),
    ),
    _pointing(
        name="ui-agile-grounding",
        source="UI-AGILE paper; KDEGroup/UI-AGILE, eval/grounding/eval_grounding_vllm_no_ray.py and eval_screenspot_pro.py",
        datasets=("screenspot-v2", "screenspot-pro"),
        metrics=(Metric("action_acc", "exact"),),
        notes=(
            "A point outside its target is given no verdict at all instead of wrong; the share of right ones is the same, but "
            "counts of wrong ones and of format errors are not to be trusted.",
            "A predicted box counts as its centre, which is compared in pixels of the image.",
        ),
    ),
    _pointing(
        name="osworld-g",
        source="OSWorld-G (Jedi) paper; xlang-ai/OSWorld-G, evaluation/eval.py",
        summary="grounding: the point is inside the target box or polygon; what has no target must be refused",
        rules=_OR_POLYGON,
        datasets=("osworld-g",),
        metrics=(Metric("accuracy", "exact"), Metric("accuracy without refusals", "exact", without=frozenset({"STOP"}))),
        notes=(
            "The scorer reads a refusal from negative coordinates.",
            "Its ray casting takes in only half of a polygon's border.",
        ),
    ),
    _pointing(
        name="lmms-osworld-g-corner-boxes",
        source="EvolvingLMMs-Lab/lmms-eval, lmms_eval/tasks/osworld_g/utils.py (75571cfe)",
        summary="grounding: as osworld-g, with a polygon of four numbers taken for the two corners of a box",
        rules=_OR_POLYGON,
        datasets=("osworld-g",),
        metrics=(Metric("osworld_g_acc", "exact"), Metric("osworld_g_refusal_acc", "exact", over=frozenset({"STOP"}))),
        notes=(
            "No polygon of the released lists has four numbers: all 40 have three corners or more, so that no score of theirs "
            "depends on it. A polygon of an odd number of numbers, or of two, is never hit.",
            "osworld_g_bbox_acc and osworld_g_polygon_acc are the first metric over the steps of the group target.",
            "A refusal is a point with two negative numbers; a response without a point is wrong.",
            "A point is in screen fractions if both numbers are at most 1, else in pixels, so models that answer in "
            "thousandths fail.",
            "Its ray casting takes in only half of a polygon's border.",
        ),
    ),
    _pointing(
        name="mai-ui-grounding",
        source="MAI-UI paper; Tongyi-MAI/MAI-UI, evaluation/grounding/eval_server.py (4dd07b9)",
        summary="grounding: as osworld-g, with the sum of a polygon's first two corners for the opposite corner of a box",
        rules=replace(_OR_POLYGON, click=ClickRule(inside="targets", polygon=True, first_corners=True)),
        datasets=("osworld-g", "screenspot-v2", "screenspot-pro", "mmbench-gui-l2", "ui-vision"),
        metrics=(Metric("Accuracy", "exact"),),
        notes=(
            "It takes the first four numbers of any target for the corners of a box. In its lists the first corner is added to "
            "the two numbers after it, also in OSWorld-G's 40 polygons, so there the box has little to do with the target.",
            "A refusal has the box 0, 0, 0, 0 there, so the point (0, 0) is right and nothing else; here a refusal is right.",
        ),
    ),
    _pointing(
        name="mmbench-gui-l2",
        source="MMBench-GUI paper; open-compass/MMBench-GUI, benchmarks/l2_element_grounding.py and matrics.py",
        summary="grounding: the point is inside the target box, border included; the mean of basic and advanced instructions",
        datasets=("mmbench-gui-l2",),
        metrics=(
            Metric("Average accuracy", "exact", average="cells", keys=("level",)),
            Metric("accuracy of all samples", "exact"),
        ),
        notes=(
            "Basic accuracy and Advanced accuracy count every sample of their level alike.",
            "A point with a value above 1 is taken for pixels.",
        ),
    ),
    _pointing(
        name="ui-vision",
        source="UI-Vision paper; uivision/UI-Vision, eval/grounding/eval_uivision.py (element task)",
        summary="grounding: the point is inside the target box, border included; the mean of the three kinds of query",
        datasets=("ui-vision",),
        metrics=(Metric("Final Avg", "exact", average="cells", keys=("subset",)), Metric("action_acc", "exact")),
        notes=(
            "The scorer is run on one list at a time and gives action_acc; the mean of the three is the paper's.",
            "Corners given the wrong way round are swapped; no box of the lists is.",
        ),
    ),
    _pointing(
        name="ui-i2e-bench",
        source="UI-E2I-Synth paper (UI-I2E-Bench); microsoft/FIVE-UI-Evol, UI-E2I-Synth/i2e-bench-eval.py (03fad4e)",
        datasets=("ui-i2e-bench",),
        metrics=(Metric("Overall Accuracy", "exact"),),
        notes=(
            "Source, element type and instruction type are shares of the same kind over the steps of a group.",
            "The scorer reads the first numbers of a response as pixels of the image, four of them as a box whose centre "
            "counts. It reads digits alone: of 0.25 it takes 0 and 25, and a minus sign is lost.",
            "Three boxes of the list have their corners the wrong way round, so no answer hits them there; the loader puts "
            "them in order, which makes at most 0.2 points.",
            "A request that fails counts as a wrong answer.",
        ),
    ),
    _pointing(
        name="venusbench-gd",
        source="VenusBench-GD paper; inclusionAI/UI-Venus, models/grounding/eval_single_benchmark.py (81945ac)",
        summary="grounding: the point is inside the target box, border included; what has no target must be refused",
        rules=_OR_REFUSED,
        datasets=("venusbench-gd",),
        metrics=(Metric("action_acc", "exact"),),
        notes=(
            "A refusal is a point with two negative numbers.",
            "The branch VenusBench-GD has no rule of its own for refusals: its script judges them with all others, by whether "
            "the point is in the box [-1, -1, -1, -1] divided by the image's size, which no model meets that answers for a "
            "resized image.",
            "Predicted boxes stand for their centre.",
        ),
    ),
)
