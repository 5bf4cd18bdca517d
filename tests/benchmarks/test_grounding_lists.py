"""Grounding sets: every form in which their lists are handed around gives the same target, damage, and the real lists."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from guieval.benchmarks._examples.cagui import write_cagui_grounding
from guieval.benchmarks._examples.grounding import tapped_elements
from PIL import Image

from guieval.actions import Action, Click, Point, Stop
from guieval.errors import DataError, UsageError
from guieval.evaluation import ActionEvaluator
from guieval.registry import benchmarks, load_benchmark
from guieval.steps import StepTaskModel
from tests.rows import every_row

SIZE = (200, 400)
TARGET, BOX = Click(point=Point(500, 750)), (250, 500, 750, 1000)
"""What every form's row asks for, on a screen of :data:`SIZE`."""
MISSING = object()
CORNERS = [50, 200, 150, 400]
CONVERTED = {"img_filename": "a.png", "bbox": CORNERS, "instruction": "close", "instruction_cn": "", "id": "7"}
CONVERTED |= {"application": "word", "platform": "macos", "img_size": list(SIZE), "ui_type": "icon", "group": "Office"}
"""A row as MAI-UI and UI-Ins converted all of these sets, after ScreenSpot-Pro's own."""
OSWORLD = {"id": "SCREEN-0", "image_path": "SCREEN.png", "image_size": list(SIZE), "instruction": "close"}
OSWORLD |= {"box_type": "bbox", "box_coordinates": [50, 200, 100, 200], "GUI_types": ["Button", "Icon"]}
SCREENSPOT = {"img_filename": "a.png", "bbox": [50, 200, 100, 200], "instruction": "close", "data_type": "icon"}
CALENDAR = {"application": "calendar", "platform": "os_windows", "group": "advanced"}
MMBENCH = {"index": 7, "image_path": "a.png", "instruction": "close", "bbox": [0.25, 0.5, 0.75, 1.0], "image_size": list(SIZE)}
MMBENCH |= {"data_type": "icon", "platform": "os_windows", "app_name": "calendar", "grounding_type": "advanced"}
UI_I2E: dict[str, Any] = {"image": "screenshot/folder_1/a.png", "instruction": "close", "bounding_box": CORNERS}
UI_I2E |= {"source": "web", "el_type": "Icon", "annotations": {"instr_type": 2}}
UI_VISION = {"image_path": "element_grounding/a.png", "image_size": list(SIZE), "prompt_to_evaluate": "close", "bbox": CORNERS}
UI_VISION |= {"platform": "OnlyOffice Spreadsheet", "category": "Button", "element_type": "icon"}
VENUS = {"img_filename": "mobile/excel/a.png", "instruction": "close", "instruction_zh": "关", "bbox": CORNERS}
VENUS |= {"category": "element_grounding", "label": "text input", "data_type": "bbox"}
CAGUI = {"task": "bbox2function", "image": "grounding_eval/dataset/images/0.jpeg", "id": 7, "text": "close"}
CAGUI |= {"abs_position": "<50, 200, 150, 400>", "rel_position": "<0.25, 0.5, 0.75, 1.0>"}
"""The size of the screen follows from the place in pixels and in fractions."""


@dataclass(frozen=True)
class Form:
    """A form of a benchmark's rows: the list that they stand in, one row, and the image of it where its size is not stated."""

    benchmark: str
    file: str
    row: dict[str, Any]
    image: str = ""
    others: tuple[str, ...] = ()
    """Lists that must be there too."""

    def write(self, root: Path, *changes: dict[str, Any], file: str = "") -> Path:
        """Rows with these changes, each by itself; one unchanged row if there are none."""
        path = root / (file or self.file)
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [{key: value for key, value in (self.row | each).items() if value is not MISSING} for each in changes or [{}]]
        text = json.dumps(rows) if ".jsonl" not in path.name else "\n".join(map(json.dumps, rows))
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
        for other in self.others:
            if not (root / other).exists():
                (root / other).write_text("[]" if other.endswith(".json") else "")
        if self.image:
            draw(root / self.image)
        return root

    def steps(self, root: Path, *changes: dict[str, Any], file: str = "", **options: Any) -> list[StepTaskModel]:
        return steps_of(self.benchmark, self.write(root, *changes, file=file), **options)

    def step(self, root: Path, **change: Any) -> StepTaskModel:
        (step,) = self.steps(root, change)
        return step


def draw(file: Path, size: tuple[int, int] = SIZE) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, "white").save(file)


def steps_of(benchmark: str, root: Path, **options: Any) -> list[StepTaskModel]:
    episodes = list(load_benchmark(benchmark, root, **options))
    assert all(len(episode) == 1 for episode in episodes)
    return [episode.steps[0] for episode in episodes]


V1_OTHERS, V2_OTHERS = (
    tuple(f"screenspot_{platform}{suffix}.json" for platform in ("desktop", "web")) for suffix in ("", "_v2")
)
IOS = {**SCREENSPOT, "data_source": "ios"}
FORMS = {
    "screenspot": Form("screenspot", "screenspot_mobile.json", IOS, "screenspot_imgs/a.png", V1_OTHERS),
    "screenspot-v2": Form("screenspot-v2", "screenspot_mobile_v2.json", IOS, "screenspotv2_image/a.png", V2_OTHERS),
    "screenspot-v2, converted": Form("screenspot-v2", "screenspot_mobile_v2.json", CONVERTED, "", V2_OTHERS),
    "screenspot-pro": Form(
        "screenspot-pro", "annotations/word_macos.json", {**CONVERTED, "img_filename": "word/a.png", "instruction_cn": "关"}
    ),
    "mmbench-gui-l2": Form("mmbench-gui-l2", "L2_annotations.json", MMBENCH),
    "mmbench-gui-l2, converted": Form(
        "mmbench-gui-l2", "L2_annotations.json", {**CONVERTED, "img_filename": "os_windows/a.png", "id": 7, **CALENDAR}
    ),
    "osworld-g": Form("osworld-g", "OSWorld-G.json", OSWORLD),
    "osworld-g, converted": Form(
        "osworld-g",
        "OSWorld-G.json",
        {**CONVERTED, "img_filename": "SCREEN.png", "id": "SCREEN-0", "ui_type": ["Button", "Icon"], "group": "os_g_refine"},
    ),
    "ui-i2e-bench": Form("ui-i2e-bench", "annotations.jsonl", UI_I2E, "screenshot/folder_1/a.png"),
    "ui-i2e-bench, converted": Form(
        "ui-i2e-bench",
        "I2E_sspro_format.json",
        {**CONVERTED, "img_filename": "screenshot/folder_1/a.png", "platform": "web", "group": "implicit"},
    ),
    "ui-vision": Form("ui-vision", "annotations/element_grounding/element_grounding_basic.json", UI_VISION),
    "venusbench-gd": Form("venusbench-gd", "instruction/element_grounding.json", VENUS, "images/mobile/excel/a.png"),
    "cagui-grounding": Form("cagui-grounding", "cap.jsonl", CAGUI, "", ("ocr.jsonl",)),
}
ICON = {"platform": "mobile", "element": "icon"}
ADVANCED = {"platform": "os_windows", "level": "advanced"}


@every_row(
    ("form", "episode", "screenshot", "groups", "extras"),
    [
        # as MAI-UI named its rows: by the list and the position in it
        ("screenspot", "screenspot_mobile_0", "screenspot_imgs/a.png", ICON, {"data_source": "ios"}),
        ("screenspot-v2", "screenspot_mobile_v2_0", "screenspotv2_image/a.png", ICON, {"data_source": "ios"}),
        ("screenspot-v2, converted", "7", "screenspotv2_image/a.png", ICON, {}),
        (
            "screenspot-pro",
            "7",
            "images/word/a.png",
            {"group": "Office", "application": "word", "platform": "macos", "element": "icon"},
            {"instruction_cn": "关"},
        ),
        *[
            (form, "7", "offline_images/os_windows/a.png", ICON | ADVANCED, {"application": "calendar"})
            for form in ("mmbench-gui-l2", "mmbench-gui-l2, converted")
        ],
        *[
            (form, "SCREEN-0", "SCREEN.png", {"target": "bbox"}, {"ui_types": ["Button", "Icon"]})
            for form in ("osworld-g", "osworld-g, converted")
        ],
        *[
            (form, episode, "screenshot/folder_1/a.png", ICON | {"platform": "web", "instruction": "implicit"}, {})
            for form, episode in (("ui-i2e-bench", "annotations.jsonl_0"), ("ui-i2e-bench, converted", "7"))
        ],
        (
            "ui-vision",
            "element_grounding_basic_0",
            "element_grounding/a.png",
            {"subset": "basic", "domain": "Productivity", "category": "Button", "element": "icon"},
            {"application": "OnlyOffice Spreadsheet"},
        ),
        (
            "venusbench-gd",
            "element_grounding_0",
            "images/mobile/excel/a.png",
            {"task": "element", "level": "basic", "platform": "mobile", "application": "excel", "element": "text input"},
            {"instruction_zh": "关"},
        ),
        ("cagui-grounding", "0", "images/cap/0.jpeg", {"task": "fun2point"}, {"id": 7}),
    ],
)
def test_every_form_gives_the_same_target(
    tmp_path: Path, form: str, episode: str, screenshot: str, groups: dict[str, str], extras: dict[str, Any]
) -> None:
    step = FORMS[form].step(tmp_path)
    assert step.action == TARGET
    assert [tuple(box) for box in step.targets] == [BOX]
    assert (step.episode_id, step.screenshot, step.screenshot_size) == (episode, screenshot, SIZE)
    assert (step.groups, step.extras) == (groups, extras)
    assert (step.instruction, step.setting, step.benchmark) == ("close", "grounding", FORMS[form].benchmark)


@every_row(
    ("form", "file", "image", "recorded"),
    [
        ("screenspot", "", "screenspot_imgs/mobile_a.png", "mobile_a.png"),
        ("screenspot", "annotations_v1/screenspot_mobile.json", "images/mobile/a.png", "mobile/a.png"),
        ("screenspot-v2, converted", "annotations_v2/screenspot_mobile_v2.json", "images/mobile/a.png", "mobile_a.png"),
        ("screenspot-v2, converted", "annotations_v2/screenspot_mobile_v2.json", "images/mobile_a.png", "mobile_a.png"),
        ("screenspot-v2, converted", "", "screenspotv2_image/mobile_a.png", "mobile_a.png"),
        ("screenspot-pro", "ScreenSpot_Pro_data/word_macos.json", "images/word/a.png", "word/a.png"),
        ("screenspot-pro", "word_macos.json", "images/word/a.png", "word/a.png"),
        ("screenspot-pro", "annotations/word_macos.json.gz", "images/word/a.png", "word/a.png"),
        ("mmbench-gui-l2", "", "MMBench-GUI-OfflineImages/offline_images/os_windows/a.jpg", "a.png"),
        ("mmbench-gui-l2", "", "offline_images/os_windows/a.png", "os_windows/a.png"),
        ("mmbench-gui-l2", "MMBench-GUI/L2_annotations.json", "MMBench-GUI/offline_images/os_windows/a.jpg", "a.png"),
        ("osworld-g", "benchmark/OSWorld-G.json", "benchmark/images/SCREEN.png", "SCREEN.png"),
        ("osworld-g, converted", "", "SCREEN.webp", "SCREEN.png"),
        ("osworld-g, converted", "", "SCREEN.png", "SCREEN.png"),
        ("ui-vision", "", "images/element_grounding/a.png", "element_grounding/a.png"),
        ("ui-vision", "element_grounding_basic.json", "element_grounding/a.png", "element_grounding/a.png"),
        ("ui-vision", "UI_Vision_data/element_grounding_basic.json", "element_grounding/a.png", "element_grounding/a.png"),
    ],
)
def test_lists_and_images_are_found_wherever_they_usually_lie(
    tmp_path: Path, form: str, file: str, image: str, recorded: str
) -> None:
    used = FORMS[form]
    field = next(name for name in ("img_filename", "image_path") if name in used.row)
    others = tuple(str(Path(file or used.file).with_name(name)) for name in used.others)
    draw(tmp_path / image)
    (step,) = Form(used.benchmark, file or used.file, {**used.row, field: recorded}, "", others).steps(tmp_path)
    assert (step.screenshot, step.action, step.targets[0]) == (image, TARGET, BOX)


@every_row(
    ("form", "change", "target", "boxes"),
    [
        ("mmbench-gui-l2", {"bbox": [50, 200, 150, 400]}, TARGET, [BOX]),  # pixels
        ("ui-i2e-bench", {"bounding_box": [150, 400, 50, 200]}, TARGET, [BOX]),  # crossed corners are put in order
        # a box may reach over the edge, but its middle may not
        ("screenspot-v2, converted", {"bbox": [150, 200, 210, 400]}, Click(point=Point(900, 750)), [(750, 500, 1050, 1000)]),
        ("osworld-g", {"box_type": "refusal", "box_coordinates": [-1, -1, -1, -1]}, Stop(status="impossible"), []),
        ("osworld-g", {"box_type": "refusal", "box_coordinates": []}, Stop(status="impossible"), []),
        ("osworld-g, converted", {"bbox": [0, 0, 0, 0]}, Stop(status="impossible"), []),
    ],
)
def test_boxes_in_other_forms(
    tmp_path: Path, form: str, change: dict[str, Any], target: Action, boxes: list[tuple[float, ...]]
) -> None:
    step = FORMS[form].step(tmp_path, **change)
    assert step.action == target and [tuple(box) for box in step.targets] == boxes


ARROW = [20, 80, 60, 80, 60, 240, 40, 160, 20, 240]
"""A polygon whose box has its middle at a corner of the notch."""


@every_row(
    ("form", "changes", "problem"),
    [
        *[("screenspot", {missing: MISSING}, f"field {missing}: is missing") for missing in SCREENSPOT],
        ("screenspot", {"img_filename": "../../secret.png"}, "field img_filename: there is no image"),
        ("screenspot-v2, converted", {"bbox": [60, 30, 20, 80]}, r"field bbox: expected \[x1, y1, x2, y2\] with the upper"),
        ("screenspot-v2, converted", {"bbox": [190, 50, 250, 80]}, r"field bbox: \(220, 65\) lies outside"),
        ("screenspot-v2, converted", {"bbox": [20, 30, "40", 50]}, "field bbox: "),
        ("screenspot-v2, converted", {"ui_type": "button"}, "field ui_type: "),
        ("screenspot-v2, converted", {"img_size": [0, 100]}, "field img_size: expected a width and a height"),
        ("screenspot-v2, converted", {"id": ""}, "field episode_id: "),
        ("screenspot-pro", {"bbox": [150, 2, 50, 6]}, "field bbox: expected .* with the upper left corner first"),
        ("screenspot-pro", {"bbox": [390, 2, 400, 6]}, r"field bbox: \(395, 4\) lies outside"),
        ("screenspot-pro", {"bbox": [float("nan"), 2, 3, 6]}, "field bbox: expected"),
        ("screenspot-pro", {"bbox": [float("-inf"), 2, float("inf"), 6]}, "field bbox: .*outside"),
        ("screenspot-pro", {"ui_type": "button"}, "field ui_type: expected text or icon, got 'button'"),
        ("screenspot-pro", {"id": 1.5}, "field id: expected a string"),
        ("mmbench-gui-l2", {"bbox": [0.5, 0.5, 0.25, 1.0]}, "field bbox: expected"),
        ("mmbench-gui-l2", {"bbox": [100, 0, 400, 10]}, r"field bbox: \(250, 5\) lies outside"),
        ("mmbench-gui-l2", {"image_size": [1e308, 400]}, "field bbox: .*finite"),
        ("mmbench-gui-l2", {"grounding_type": "hard"}, "field grounding_type: expected basic or advanced, got 'hard'"),
        ("mmbench-gui-l2", {"data_type": None}, "field data_type: expected a string"),
        ("mmbench-gui-l2", {"index": True}, "field index: expected a whole number"),
        ("osworld-g", {"box_type": "circle"}, "field box_type: expected bbox, polygon or refusal, got 'circle'"),
        ("osworld-g", {"box_coordinates": ARROW}, "field box_coordinates: expected a list of 4 numbers"),
        ("osworld-g", {"box_coordinates": [10, 10, -5, 5]}, r"field box_coordinates: expected \[x, y, width, height\]"),
        ("osworld-g", {"GUI_types": "Icon"}, "field GUI_types: expected a list of words"),
        *[
            ("osworld-g", {"box_type": "polygon", "box_coordinates": corners}, f"field box_coordinates: {problem}")
            for corners, problem in (
                (ARROW[:-1], "expected x and y of three corners or more, got 9 numbers"),
                ([1, 2, 3, 4], "expected x and y of three corners or more, got 4 numbers"),
                ([1, 5, 3, 5, 9, 5], "the polygon has no area"),
                ([1, 5, 1, 9, 1, 7], "the polygon has no area"),
                ([1, 5, 3, float("nan"), 9, 5], "expected finite numbers"),
                ([220, 0, 260, 0, 240, 90], ".*expected 1000 or less"),
            )
        ],
        ("osworld-g, converted", {"bbox": [1, 2, 3]}, "field bbox: expected a list of 4 numbers"),
        ("osworld-g, converted", {"bbox": [9, 2, 3, 4]}, r"field bbox: expected \[x1, y1, x2, y2\]"),
        ("ui-i2e-bench", {"bounding_box": [500, 200, 900, 400]}, r"field bounding_box: \(700, 300\) lies outside"),
        ("ui-i2e-bench", {"image": "screenshot/b.png"}, "field image: there is no image 'screenshot/b.png'"),
        ("ui-i2e-bench", {"annotations": {"instr_type": True}}, "field annotations, field instr_type: expected a string"),
        ("ui-i2e-bench", {"annotations": {"instr_type": "vague"}}, "field annotations, field instr_type: expected implicit or"),
        ("ui-vision", {"bbox": [40, 30, 20, 50]}, "field bbox: expected"),
        ("ui-vision", {"bbox": [-50, 30, 20, 50]}, r"field bbox: \(-15, 40\) lies outside"),
        ("ui-vision", {"platform": "Inkscap"}, "field platform: 'Inkscap' is none of the benchmark's 83 programs.*'Inkscape'"),
        ("ui-vision", {"element_type": "image"}, "field element_type: expected text or icon"),
        ("ui-vision", {"image_size": [200.5, 100]}, "field image_size: expected a width and a height"),
        ("venusbench-gd", {"bbox": [150, 200, 50, 400]}, "field bbox: expected .* upper left corner first"),
        ("venusbench-gd", {"bbox": [-1, -1, -1, -1]}, "field bbox: .* lies outside"),
        *[
            ("cagui-grounding", change, f"field {next(iter(change))}: ")
            for change in (
                {"abs_position": "<10, 20, 30>"},
                {"abs_position": "<10, 20, 30, x>"},
                {"abs_position": "<30, 20, 10, 60>"},
                {"abs_position": "<10, 20, 30, nan>"},
                {"rel_position": "<0.25, 0.5, 0.7, 1.0>"},
                {"rel_position": "<0, 0, 0, 0>", "abs_position": "<0, 0, 0, 0>"},
                {"rel_position": "<0, 0, 1e-300, 1e-300>", "abs_position": "<0, 0, 1e300, 1e300>"},
                {"task": "bbox2text"},
                {"id": "7"},
                {"image": "1"},
            )
        ],
    ],
)
def test_a_damaged_row_is_reported_by_file_row_and_field(
    tmp_path: Path, form: str, changes: dict[str, Any], problem: str
) -> None:
    draw(tmp_path / "secret.png")
    place = "line 1" if FORMS[form].file.endswith("l") else "row 0"
    with pytest.raises(DataError, match=rf"{re.escape(Path(FORMS[form].file).name)}, {place}, {problem}"):
        FORMS[form].step(tmp_path / "data", **changes)


@every_row(
    ("name", "episodes", "seed"),
    [
        *[(name, 4, 3) for name in ("screenspot", "screenspot-v2")],
        ("screenspot-pro", 3, 5),
        *[(name, 2, 2) for name in ("mmbench-gui-l2", "ui-i2e-bench")],
        ("osworld-g", 2, 1),
        ("ui-vision", 3, 4),
    ],
)
def test_the_example_holds_the_elements_that_it_was_made_of(tmp_path: Path, name: str, episodes: int, seed: int) -> None:
    benchmarks()[name].write_example(tmp_path, episodes=episodes, seed=seed)
    steps = {step.instruction: step for step in steps_of(name, tmp_path)}
    inset = 0.25 if name == "ui-vision" else 0  # its boxes are half pixels
    for element in tapped_elements(episodes, seed):
        step = steps[element.instruction]
        x1, y1, x2, y2 = element.box
        corners = ((x1 + inset) / 0.36, (y1 + inset) / 0.8, (x2 - inset) / 0.36, (y2 - inset) / 0.8)
        assert tuple(step.targets[0]) == pytest.approx(corners, abs=0.06)  # MMBench-GUI rounds fractions to four places
        assert (tmp_path / step.screenshot).read_bytes() == element.png


# --- what is special to one of them -----------------------------------------------------------------------------------


def test_screenspots_lists_are_its_platforms_and_its_rows_are_named_by_them(tmp_path: Path) -> None:
    used = FORMS["screenspot"]
    used.write(tmp_path, {}, file="screenspot_desktop.json")
    used.write(tmp_path, {"data_source": "shop"}, {}, file="screenspot_web.json")
    (tmp_path / "screenspot_mobile.json").write_text("[]")
    steps = steps_of("screenspot", tmp_path)
    assert [step.episode_id for step in steps] == ["screenspot_desktop_0", "screenspot_web_0", "screenspot_web_1"]
    assert [step.extras["data_source"] for step in steps] == ["ios", "shop", "ios"]
    assert [step.groups["platform"] for step in steps] == ["desktop", "web", "web"]
    FORMS["screenspot-pro"].write(tmp_path, {"id": "w"})
    steps = FORMS["screenspot-pro"].steps(tmp_path, {"id": "v1"}, {"id": "v0"}, file="annotations/vivado_windows.json")
    assert [step.episode_id for step in steps] == ["v1", "v0", "w"]  # its lists are in the order of their names


def test_the_index_needs_no_image(tmp_path: Path) -> None:
    benchmark = load_benchmark("screenspot", FORMS["screenspot"].write(tmp_path, {"img_filename": "none.png"}))
    (ref,) = benchmark.index()
    assert (ref.key.episode_id, ref.length) == ("screenspot_mobile_0", 1)
    told = r"mobile\.json, row 0, field img_filename: there is no image 'screenspot_imgs/none\.png'"
    with pytest.raises(DataError, match=told):
        benchmark.load(ref)
    (tmp_path / "screenspot_imgs/none.png").write_text("hello")
    with pytest.raises(DataError, match=r"img_filename: the image 'screenspot_imgs/none\.png' is not a readable PNG"):
        benchmark.load(ref)


def test_one_id_twice_is_refused(tmp_path: Path) -> None:
    FORMS["screenspot-pro"].write(tmp_path, {}, file="annotations/vivado_windows.json")
    FORMS["screenspot-pro"].write(tmp_path, {"id": "8"}, {})
    with pytest.raises(DataError, match=r"word_macos.json, row 1, field id: '7' is already that of .*vivado_windows.json, row"):
        load_benchmark("screenspot-pro", tmp_path).index()
    with pytest.raises(DataError, match=r"cap.jsonl, line 2, field image: '0' is already that of .*cap.jsonl, line 1"):
        FORMS["cagui-grounding"].steps(tmp_path, {}, {})


@every_row(("text", "problem"), [("{}", "expected a list"), ("[5]", "row 0: expected an object"), ("[", "is not JSON")])
def test_a_list_that_is_none_is_reported(tmp_path: Path, text: str, problem: str) -> None:
    FORMS["screenspot"].write(tmp_path)
    (tmp_path / "screenspot_mobile.json").write_text(text)
    with pytest.raises(DataError, match=rf"screenspot_mobile\.json.*{problem}"):
        load_benchmark("screenspot", tmp_path).index()


def test_damaged_rows_and_lists_are_skipped_only_on_request(tmp_path: Path) -> None:
    used = FORMS["screenspot-v2, converted"]
    used.write(tmp_path, {"id": "a"}, file="screenspot_desktop_v2.json")
    used.write(tmp_path, {"id": "b"}, {"ui_type": "button"})
    (tmp_path / "screenspot_web_v2.json").write_text('[{"img_filename": "d.p')
    benchmark = load_benchmark("screenspot-v2", tmp_path)
    with pytest.raises(DataError, match=r"screenspot_web_v2\.json: is not JSON"):
        benchmark.index()
    benchmark = benchmark.skipping_damaged()
    assert [episode.steps[0].episode_id for episode in benchmark] == ["a", "b"]
    assert [str(error).split("/")[-1].split(":")[0] for error in benchmark.skipped] == [
        "screenspot_web_v2.json",
        "screenspot_mobile_v2.json, row 1, field ui_type",
    ]


def test_half_a_download_and_empty_lists_are_refused(tmp_path: Path) -> None:
    FORMS["screenspot"].write(tmp_path)
    (tmp_path / "screenspot_mobile.json").write_text("[]")
    with pytest.raises(UsageError, match="are empty"):
        load_benchmark("screenspot", tmp_path).index()
    (tmp_path / "screenspot_mobile.json").unlink()
    with pytest.raises(UsageError, match=r"screenspot_mobile\.json' is missing"):
        load_benchmark("screenspot", tmp_path)


@every_row(("form", "field"), [("screenspot-pro", "instruction_cn"), ("venusbench-gd", "instruction_zh")])
def test_chinese_on_request(tmp_path: Path, form: str, field: str) -> None:
    (step,) = FORMS[form].steps(tmp_path, language="cn")
    assert (step.instruction, step.extras) == ("关", {"instruction": "close"})
    with pytest.raises(UsageError, match=r"option language is 'chinese'; expected en or cn"):
        load_benchmark(FORMS[form].benchmark, tmp_path, language="chinese")
    with pytest.raises(DataError, match=rf"row 0, field {field}: is missing"):
        FORMS[form].steps(tmp_path, {field: MISSING}, language="cn")


U_SHAPE = [0, 0, 20, 0, 20, 160, 40, 160, 40, 0, 100, 0, 100, 240, 0, 240]  # two legs, 20 and 60 wide


@every_row(
    ("form", "change", "clicked", "beside"),
    [
        # at half its height the notch's corner cuts 100 to 300 in two; the other click is in the notch, though in the box
        ("osworld-g", {"box_type": "polygon", "box_coordinates": ARROW}, (150, 400), (200, 500)),
        ("osworld-g, converted", {"bbox": [20, 80, 20 + 60, 80 + 80, *ARROW[4:]]}, (150, 400), (200, 500)),  # as if with a size
        ("osworld-g", {"box_type": "polygon", "box_coordinates": U_SHAPE}, (350, 300), (150, 300)),
    ],
)
def test_a_polygon_is_clicked_in_the_middle_of_its_widest_part(
    tmp_path: Path, form: str, change: dict[str, Any], clicked: tuple[int, int], beside: tuple[int, int]
) -> None:
    step = FORMS[form].step(tmp_path, **change)
    if clicked == (150, 400):
        assert step.extras["polygon"] == [[100, 200], [300, 200], [300, 600], [200, 400], [100, 600]]
        assert [tuple(box) for box in step.targets] == [(100, 200, 300, 600)]
    assert step.groups == {"target": "polygon"}
    assert step.action == Click(point=Point(*clicked))
    judge = ActionEvaluator("osworld-g")
    assert judge.evaluate(step, step.action).exact_match
    assert not judge.evaluate(step, Click(point=Point(*beside))).exact_match


def test_osworld_gs_repository_is_read_with_its_classification(tmp_path: Path) -> None:
    refused = {"id": "SCREEN-1", "box_type": "refusal", "box_coordinates": []}
    FORMS["osworld-g"].write(tmp_path, {}, refused, file="benchmark/OSWorld-G.json")
    FORMS["osworld-g"].write(tmp_path, {"instruction": "Click the cross"}, refused, file="benchmark/OSWorld-G_refined.json")
    classes = {"text_matching": [OSWORLD], "layout_understanding": [OSWORLD, {"id": "OTHER-3"}], "refusal": [OSWORLD | refused]}
    classification = tmp_path / "benchmark/classification_result.json"
    classification.write_text(json.dumps({"classified": classes}))
    first, second = steps_of("osworld-g", tmp_path)
    assert first.groups == {"target": "bbox", "text matching": "yes", "layout understanding": "yes"}
    assert second.groups == {"target": "refusal"}
    refined = steps_of("osworld-g-refined", tmp_path)
    assert [step.instruction for step in refined] == ["Click the cross", "close"]
    assert {step.dataset for step in refined} == {"osworld-g"}
    classification.write_text('{"classified": {"text_matching": [{"id": 4}]}}')
    where = r"classification_result\.json, field classified, field text_matching\[0\], field id: expected"
    with pytest.raises(DataError, match=where):
        load_benchmark("osworld-g", tmp_path).index()


def test_another_suffix_is_not_taken_for_a_part_of_the_name(tmp_path: Path) -> None:
    draw(tmp_path / "SCREEN.png")
    step = FORMS["osworld-g, converted"].step(tmp_path, img_filename="SCREEN.v2")
    assert step.screenshot == "SCREEN.v2.png"  # not there, and SCREEN.png is another screen


def test_osworld_gs_example_holds_a_polygon_and_a_refusal(tmp_path: Path) -> None:
    benchmarks()["osworld-g"].write_example(tmp_path, episodes=2, seed=1)
    _, cut, refused = steps_of("osworld-g", tmp_path)
    assert len(cut.extras["polygon"]) == 8
    corner = Click(point=Point(cut.targets[0].x1, cut.targets[0].y1))
    assert not ActionEvaluator("osworld-g").evaluate(cut, corner).exact_match
    assert refused.action == Stop(status="impossible")


@every_row(
    ("annotations", "kind"),
    [({"instr_type": 1}, "explicit"), ({"instr_type": "Implicit"}, "implicit"), ({}, "unknown"), (None, "unknown")],
)
def test_instruction_types_as_ui_i2e_benchs_scorer_reads_them(tmp_path: Path, annotations: Any, kind: str) -> None:
    step = FORMS["ui-i2e-bench"].step(tmp_path, annotations=annotations, source=None)
    assert step.groups == {"platform": "unknown", "element": "icon", "instruction": kind}


def test_ui_visions_table_of_programs_spells_some_in_another_case(tmp_path: Path) -> None:
    steps = FORMS["ui-vision"].steps(tmp_path, {"platform": "gedit"}, {"platform": "Gedit"}, {"platform": "darktable"})
    assert [step.groups["domain"] for step in steps] == ["Development", "Development", "Creativity"]


def test_a_copy_of_ui_vision_may_lack_lists(tmp_path: Path) -> None:
    FORMS["ui-vision"].write(tmp_path, {}, {}, file="element_grounding_functional.json")
    steps = FORMS["ui-vision"].steps(tmp_path, file="element_grounding_basic.json")
    names = ["element_grounding_basic_0", "element_grounding_functional_0", "element_grounding_functional_1"]
    assert [step.episode_id for step in steps] == names
    assert [step.subset for step in steps] == ["basic", "functional", "functional"]


def test_a_target_that_is_one_point_is_hit_by_that_point(tmp_path: Path) -> None:
    step = FORMS["ui-vision"].step(tmp_path, bbox=[71.3833251953125, 54.857137625558025] * 2)
    judge = ActionEvaluator("ui-vision")
    assert judge.evaluate(step, step.action).exact_match
    assert not judge.evaluate(step, Click(point=Point(356.9, 137.15))).exact_match


@every_row(
    ("name", "task", "level"),
    [
        ("spatial_grounding", "spatial", "basic"),
        ("visual_grounding", "visual", "basic"),
        ("functional_grounding", "functional", "advanced"),
        ("reasoning_grounding", "reasoning", "advanced"),
        ("reason_grounding", "reasoning", "advanced"),
    ],
)
def test_every_list_of_venusbench_under_its_names(tmp_path: Path, name: str, task: str, level: str) -> None:
    (step,) = FORMS["venusbench-gd"].steps(tmp_path, file=f"instruction/{name}.json")
    assert (step.groups["task"], step.groups["level"]) == (task, level)


@every_row("name", ["refusal_grounding", "refusal_spatial"])
@every_row("box", [[-1, -1, -1, -1], None, MISSING])
def test_what_is_not_there_is_a_refusal_in_venusbench(tmp_path: Path, name: str, box: Any) -> None:
    (step,) = FORMS["venusbench-gd"].steps(tmp_path, {"bbox": box}, file=f"instruction/{name}.json")
    assert step.action == Stop(status="impossible") and not len(step.targets)
    with pytest.raises(DataError, match=rf"{name}\.json, row 0, field bbox: expected null or \[-1, -1, -1, -1\] if nothing"):
        FORMS["venusbench-gd"].steps(tmp_path, file=f"instruction/{name}.json")


@every_row(
    ("form", "change", "file", "right", "wrong"),
    [
        (  # the border counts
            "venusbench-gd",
            {},
            "instruction/element_grounding.json",
            Click(point=Point(250, 500)),
            [Click(point=Point(249, 500)), Stop(status="impossible")],
        ),
        *[
            (form, change, file, Stop(status="impossible"), [Stop(status="finish"), Click(point=Point(500, 750))])
            for form, change, file in (
                ("venusbench-gd", {"bbox": None}, "instruction/refusal_grounding.json"),
                ("osworld-g", {"box_type": "refusal", "box_coordinates": []}, ""),
            )
        ],
    ],
)
def test_a_refusal_is_right_as_such_alone(
    tmp_path: Path, form: str, change: dict[str, Any], file: str, right: Action, wrong: list[Action]
) -> None:
    (step,) = FORMS[form].steps(tmp_path, change, file=file)
    judge = ActionEvaluator(form)
    assert judge.evaluate(step, right).exact_match
    assert [action for action in wrong if judge.evaluate(step, action).exact_match] == []


# --- the real lists ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def lists(shared_data: Path) -> Path:
    folder = shared_data / "screenspot_pro_format_annotations"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    return folder


def test_screenspot_pro_in_both_languages(lists: Path) -> None:
    steps, chinese = steps_of("screenspot-pro", lists), steps_of("screenspot-pro", lists, language="cn")
    assert len({step.groups["application"] for step in steps}) == 26
    assert all(step.instruction.strip() for step in steps + chinese)
    assert [step.targets for step in steps] == [step.targets for step in chinese]
    first = steps[0]  # android_studio_macos_0: [1774, 1586, 2113, 1618] of 3840 x 2160
    assert first.episode_id == "android_studio_macos_0"
    assert isinstance(first.action, Click)
    assert first.action.point == pytest.approx((1943.5 / 3.84, 1602 / 2.16))


def test_mmbench_guis_first_row(lists: Path) -> None:
    steps = steps_of("mmbench-gui-l2", lists)
    assert len({step.groups["platform"] for step in steps}) == 6
    first = steps[0]  # published with fractions [0.3875, 0.1361, 0.3945, 0.1507] of 2560 x 1440
    assert tuple(first.targets[0]) == pytest.approx((387.5, 136.1, 394.5, 150.7), abs=0.06)
    assert isinstance(first.action, Click)
    assert first.action.point == pytest.approx((390.98, 143.4), abs=0.06)


def test_osworld_gs_lists_ask_for_the_same_targets(lists: Path) -> None:
    steps = steps_of("osworld-g", lists)
    polygons = [step for step in steps if step.groups["target"] == "polygon"]
    assert all(0 <= value <= 1000 for step in polygons for corner in step.extras["polygon"] for value in corner)
    # 2ENZHM7E2X-0, published as [1197.26, 350.44, 2390.24, 708.0, 1192.98, 363.26, ...]: an octagon of 20 x 19 pixels
    first = polygons[0]
    assert first.episode_id == "2ENZHM7E2X-0"
    assert first.extras["polygon"][1] == pytest.approx([1192.98 / 1.92, 357.56 / 1.08])
    assert first.targets[0].x2 - first.targets[0].x1 == pytest.approx(19.96 / 1.92)
    judge = ActionEvaluator("osworld-g")
    assert all(judge.evaluate(step, step.action).exact_match for step in steps)
    refined = steps_of("osworld-g-refined", lists)
    assert [(step.episode_id, step.action) for step in steps] == [(step.episode_id, step.action) for step in refined]


def test_ui_visions_full_lists(lists: Path) -> None:
    steps = steps_of("ui-vision", lists)
    assert len({step.extras["application"] for step in steps}) == 83
    assert len({step.groups["domain"] for step in steps}) == 6
    over = sum(any(box.x1 < 0 or box.y1 < 0 or box.x2 > 1000 or box.y2 > 1000 for box in step.targets) for step in steps)
    points = [step.episode_id for step in steps if step.targets[0].x1 == step.targets[0].x2]
    assert (over, points) == (77, ["element_grounding_spatial_1908"])
    judge = ActionEvaluator("ui-vision")
    assert all(judge.evaluate(step, step.action).exact_match for step in steps)


def test_both_versions_of_screenspot_mostly_mark_the_same_places(shared_data: Path) -> None:
    """v2 moved few boxes, so a box read in the wrong form would show."""
    old, new = (
        {
            (step.screenshot, tuple(round(value, 6) for value in step.targets[0]))
            for step in steps_of(name, shared_data / "screenspot")
        }
        for name in ("screenspot", "screenspot-v2")
    )
    assert len(old & new) > 0.8 * len(new)


# --- CAGUI's grounding part: two lists, places as text in pixels and in fractions ---------------------------------------


def test_caguis_published_lists(shared_data: Path) -> None:
    steps = steps_of("cagui-grounding", shared_data / "cagui_grounding")
    assert [sum(step.subset == task for step in steps) for task in ("fun2point", "text2point")] == [1500, 1500]
    assert len({step.key for step in steps}) == len({step.screenshot for step in steps}) == 3000
    by_key = {(step.subset, step.episode_id): step for step in steps}
    menu = by_key["fun2point", "0"]
    assert menu.instruction.startswith("UI元素是一个菜单按钮")
    assert menu.screenshot_size == (1220, 2712)  # 1061 / 0.8696721311475409 and 2424 / 0.8938053097345132
    assert isinstance(menu.action, Click)
    assert tuple(menu.action.point) == pytest.approx((1110 / 1220 * 1000, 2473 / 2712 * 1000))
    music = by_key["text2point", "1"]
    assert (music.instruction, music.extras, music.screenshot_size) == ("QQ音乐", {"id": 629}, (1080, 2376))
    assert tuple(music.targets[0]) == pytest.approx((643 / 1.08, 462 / 2.376, 849 / 1.08, 744 / 2.376))
    assert [step.key for step in steps if not step.instruction] == [by_key["text2point", "416"].key]
    assert len({step.screenshot_size for step in steps}) == 15


@every_row("inner", ["", "CAGUI_grounding", "CAGUI_grounding/code"])
def test_any_folder_of_the_grounding_part_may_be_given(tmp_path: Path, inner: str) -> None:
    shown = write_cagui_grounding(tmp_path, episodes=2)
    benchmark = load_benchmark("cagui-grounding", tmp_path / inner)
    episodes = list(benchmark)
    assert [episode.steps[0].subset for episode in episodes] == ["fun2point"] * 2 + ["text2point"] * 2
    for episode, was in zip(episodes[2:], shown, strict=True):
        (step,) = episode.steps
        assert was.target is not None
        assert (benchmark.root / step.screenshot).is_file()
        assert step.instruction == was.target.label
        assert isinstance(was.action, Click)
        box = step.targets[0]
        assert box.x1 <= was.action.point.x <= box.x2
        assert box.y1 <= was.action.point.y <= box.y2


def test_images_where_the_rows_recorded_them_are_found(tmp_path: Path) -> None:
    """With both lists packed; the other one's rows have a task and a folder of their own."""
    used = FORMS["cagui-grounding"]
    used.write(tmp_path, {"image": "x/images/ocr/0.jpeg", "task": "bbox2text"}, file="code/ocr.jsonl.gz")
    shown = steps_of("cagui-grounding", used.write(tmp_path, file="code/cap.jsonl.gz"))
    assert [step.screenshot for step in shown] == ["images/cap/0.jpeg", "images/ocr/0.jpeg"]
    assert [step.subset for step in shown] == ["fun2point", "text2point"]
    (tmp_path / "images" / "ocr").mkdir(parents=True)
    assert [step.screenshot for step in steps_of("cagui-grounding", tmp_path)] == ["images/0.jpeg", "images/ocr/0.jpeg"]
    (tmp_path / "code/ocr.jsonl.gz").unlink()
    with pytest.raises(UsageError, match=r"has no code/ocr\.jsonl .*guieval data prepare cagui-grounding"):
        load_benchmark("cagui-grounding", tmp_path)
