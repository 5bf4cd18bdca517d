"""Writers of grounding sets as their authors release them: lists of rows and images, of elements that played episodes tap.

Fields have the authors' names. Boxes are [x1, y1, x2, y2] in pixels, unless a writer's docstring states another form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any, Literal

from guieval.actions import Click
from guieval.playground.phone import PhoneEpisode, PixelBox, encode, generate_episode

from .played import save, write_json, write_lines

SIZE = (360, 800)


@dataclass(frozen=True)
class TappedElement:
    """An element, the instruction to tap it, and the PNG file of the screen, whose (width, height) is :data:`SIZE`.

    ``number`` counts the screens, so that it can name their files.
    """

    number: int
    png: bytes
    box: PixelBox
    instruction: str
    kind: Literal["text", "icon"]
    app: str


def tapped_elements(wanted: int, seed: int) -> list[TappedElement]:
    """``wanted`` elements, one of each episode that taps any: the first that its trajectory taps."""
    elements = (element for number in count() for element in _first(generate_episode(seed, number, SIZE)))
    return list(islice(elements, wanted))


def _first(played: PhoneEpisode) -> Iterator[TappedElement]:
    for step in played.steps:
        if isinstance(step.action, Click) and step.target is not None and step.target.box.area > 0:
            kind: Literal["text", "icon"] = "icon" if step.target.role in ("icon", "switch", "fab", "action") else "text"
            png = encode(step.phone.render())
            yield TappedElement(played.number, png, step.target.box, step.instruction, kind, played.task.app)
            return


def write_lists(
    folder: Path,
    elements: Sequence[TappedElement],
    files: Sequence[str],
    row: Callable[[TappedElement, int], tuple[str, dict[str, Any]]],
) -> None:
    """Write each element's image, and the elements' rows in turn into the lists ``files``.

    ``row`` gives the path of the image and the row of the element at a position.
    """
    lists: dict[str, list[dict[str, Any]]] = {file: [] for file in files}
    for position, element in enumerate(elements):
        image, values = row(element, position)
        save(folder / image, element.png)
        lists[files[position % len(files)]].append(values)
    for file, rows in lists.items():
        write_json(folder / file, rows)


def sized(box: PixelBox) -> list[int]:
    left, top, right, bottom = box
    return [left, top, right - left, bottom - top]


def write_screenspot(folder: Path, *, episodes: int, seed: int, version: str = "", images: str = "screenspot_imgs") -> None:
    """ScreenSpot: boxes are [x, y, width, height]; images begin with ``mobile_``, ``pc_`` or ``web_``."""
    prefixes, sources = ("mobile", "pc", "web"), ("android", "windows", "shop")

    def row(element: TappedElement, position: int) -> tuple[str, dict[str, Any]]:
        name = f"{prefixes[position % 3]}_{element.number:04d}.png"
        return f"{images}/{name}", {
            "img_filename": name,
            "bbox": sized(element.box),
            "instruction": element.instruction,
            "data_type": element.kind,
            "data_source": sources[position % 3],
        }

    files = [f"screenspot_{platform}{version}.json" for platform in ("mobile", "desktop", "web")]
    write_lists(folder, tapped_elements(episodes, seed), files, row)


def write_screenspot_v2(folder: Path, *, episodes: int, seed: int) -> None:
    """ScreenSpot-v2, which has the same rows in files of other names."""
    write_screenspot(folder, episodes=episodes, seed=seed, version="_v2", images="screenspotv2_image")


def write_screenspot_pro(folder: Path, *, episodes: int, seed: int) -> None:
    """ScreenSpot-Pro, with an instruction in English and one in Chinese."""
    applications = (("word", "macos", "Office"), ("vivado", "windows", "CAD"))

    def row(element: TappedElement, position: int) -> tuple[str, dict[str, Any]]:
        application, platform, group = applications[position % 2]
        name = f"{application}_{platform}/screenshot_{element.number:04d}.png"
        return f"images/{name}", {
            "img_filename": name,
            "bbox": list(element.box),
            "instruction": element.instruction,
            "instruction_cn": f"请点击:{element.instruction}",
            "id": f"{application}_{platform}_{position // 2}",
            "application": application,
            "platform": platform,
            "img_size": list(SIZE),
            "ui_type": element.kind,
            "group": group,
        }

    files = ("annotations/word_macos.json", "annotations/vivado_windows.json")
    write_lists(folder, tapped_elements(episodes, seed), files[:episodes], row)


def write_mmbench_gui(folder: Path, *, episodes: int, seed: int) -> None:
    """MMBench-GUI L2: boxes are in fractions of the image, and ``image_path`` lacks the platform's folder."""

    def row(element: TappedElement, position: int) -> tuple[str, dict[str, Any]]:
        platform, name = ("os_android", "os_ios")[position % 2], f"{element.number:08x}.png"
        return f"offline_images/{platform}/{name}", {
            "index": position,
            "image_path": name,
            "instruction": element.instruction,
            "bbox": [round(edge / side, 4) for edge, side in zip(element.box, (*SIZE, *SIZE), strict=True)],
            "image_size": list(SIZE),
            "data_type": element.kind,
            "platform": platform,
            "app_name": element.app,
            "grounding_type": ("basic", "advanced")[position % 2],
        }

    write_lists(folder, tapped_elements(episodes, seed), ["L2_annotations.json"], row)


def write_ui_vision(folder: Path, *, episodes: int, seed: int) -> None:
    """UI-Vision's element grounding: boxes have fractions of pixels, and rows have no id."""

    def row(element: TappedElement, position: int) -> tuple[str, dict[str, Any]]:
        path = f"element_grounding/{element.number:032x}.png"
        return f"images/{path}", {
            "image_path": path,
            "image_size": list(SIZE),
            "prompt_to_evaluate": element.instruction,
            "bbox": [edge + 0.25 for edge in element.box[:2]] + [edge - 0.25 for edge in element.box[2:]],
            "platform": ("GIMP", "LibreOffice Calc")[position % 2],
            "category": "Button" if element.kind == "icon" else "Menu",
            "element_type": element.kind,
        }

    subsets = ("basic", "functional", "spatial")
    files = [f"annotations/element_grounding/element_grounding_{subset}.json" for subset in subsets]
    write_lists(folder, tapped_elements(episodes, seed), files, row)


def write_ui_i2e_bench(folder: Path, *, episodes: int, seed: int) -> None:
    """UI-I2E-Bench: JSON lines without the size of an image; kinds of instructions are numbers or words."""
    rows = []
    for position, element in enumerate(tapped_elements(episodes, seed)):
        image = f"screenshot/folder_1/phone_{element.number}.png"
        save(folder / image, element.png)
        row = {
            "image": image,
            "instruction": element.instruction,
            "bounding_box": list(element.box),
            "source": ("mobile", "web")[position % 2],
            "el_type": ("Icon", "button")[position % 2],
            "annotations": {"instr_type": (2, "explicit")[position % 2]},
        }
        rows.append(row)
    write_lines(folder / "annotations.jsonl", rows)


def write_venusbench_gd(folder: Path, *, episodes: int, seed: int) -> None:
    """VenusBench-GD: a list of each of two tasks, and one refusal; rows state no size."""

    def row(element: TappedElement, position: int) -> tuple[str, dict[str, Any]]:
        name = f"mobile/{element.app.lower()}/{element.number:05d}.png"
        return f"images/{name}", {
            "img_filename": name,
            "instruction": element.instruction,
            "instruction_zh": f"请点击:{element.instruction}",
            "category": ("element_grounding", "spatial_grounding")[position % 2],
            "bbox": list(element.box),
            "label": "icon" if element.kind == "icon" else "text input",
            "data_type": "bbox",
        }

    elements = tapped_elements(episodes, seed)
    write_lists(folder, elements, [f"instruction/{task}_grounding.json" for task in ("element", "spatial")], row)
    shown = row(elements[0], 0)[1]
    asked = {"instruction": "Close the tab of the spreadsheet.", "category": "refusal_grounding", "bbox": [-1, -1, -1, -1]}
    refusal = {**{name: value for name, value in shown.items() if name not in ("label", "instruction_zh")}, **asked}
    write_json(folder / "instruction" / "refusal_grounding.json", [refusal])


def write_osworld_g(folder: Path, *, episodes: int, seed: int) -> None:
    """OSWorld-G's two lists and their classification: boxes [x, y, width, height] and polygons in turn, and one refusal."""
    rows: list[dict[str, Any]] = []
    for position, element in enumerate(tapped_elements(episodes, seed)):
        name = f"PHONE{element.number:05d}"
        save(folder / "benchmark" / "images" / f"{name}.png", element.png)
        rows.append(
            {
                "id": f"{name}-0",
                "image_path": f"{name}.png",
                "image_size": list(SIZE),
                "instruction": element.instruction,
                "box_type": "polygon" if position % 2 else "bbox",
                "box_coordinates": _octagon(element.box) if position % 2 else sized(element.box),
                "GUI_types": ["Icon", "Button"] if element.kind == "icon" else ["Label"],
            }
        )
    refusal = {"id": rows[0]["id"].removesuffix("0") + "1", "instruction": "Close the tab of the spreadsheet."}
    rows.append({**rows[0], **refusal, "box_type": "refusal", "box_coordinates": [-1, -1, -1, -1], "GUI_types": ["/"]})
    classified = {
        "text_matching": [row for row in rows if row["GUI_types"] == ["Label"]],
        "element_recognition": rows[:-1],
        "refusal": rows[-1:],
    }
    refined = [{**row, "instruction": f"In the window in front: {row['instruction']}"} for row in rows]
    for file, value in (
        ("OSWorld-G", rows),
        ("OSWorld-G_refined", refined),
        ("classification_result", {"classified": classified}),
    ):
        write_json(folder / "benchmark" / f"{file}.json", value)


def _octagon(box: PixelBox) -> list[float]:
    """The corners of ``box`` without their outer quarters, around it in one direction."""
    left, top, right, bottom = box
    across, down = (right - left) / 4, (bottom - top) / 4
    xs = [left + across, right - across, right, right, right - across, left + across, left, left]
    ys = [top, top, top + down, bottom - down, bottom, bottom, bottom - down, top + down]
    return [float(value) for corner in zip(xs, ys, strict=True) for value in corner]
