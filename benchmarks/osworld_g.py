"""OSWorld-G (Jedi, Xie et al., 2025): find a place on screens of a Linux desktop, also fine ones, or say that it is not there.

The repository or its ``benchmark`` folder is read in place; so are MAI-UI's conversions, packed with gzip or not.

Labels, by ``box_type``: ``bbox`` is [x, y, width, height] in pixels; ``polygon`` lists x and y of its corners in pixels, and
only its inside is right (``extras["polygon"]``, in thousandths of the screen; the box is the smallest one around it);
``refusal`` means that nothing on the screen fits, so that the reference is ``Stop(status="impossible")``, whatever the
coordinates are.

MAI-UI's conversion has no ``box_type`` and is undone here: it added the first two numbers of every ``box_coordinates`` to the
next two, as if all were boxes. So four zeros are a refusal, and more than four numbers are a polygon whose second corner has
the first one added; taking it off again gives 40 polygons that lie on the screen, all of them. A score that takes the first
four numbers of those rows for a box, and refusals for a box at (0, 0), is wrong about 94 of 564 rows.

``classification_result.json``, if it exists, adds the groups that the paper reports (text matching, element recognition, layout
understanding, fine-grained manipulation: a row may be in several). Refusals are the group ``target: refusal``. One refined row
(``489``) has an empty instruction in the published list; it is loaded as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from guieval.actions import ActionSpace
from guieval.data.benchmark import EpisodeRef, PublishedCount
from guieval.errors import DataError
from guieval.frames import Size

from ._examples import written_by
from ._grounding import (
    REFUSAL,
    Entry,
    GroundingBenchmark,
    GroundingItem,
    Target,
    box_target,
    find_file,
    polygon_target,
    stated_size,
)
from ._rows import Row, one_of, read_row

CLASSIFICATIONS = ("benchmark/classification_result.json", "classification_result.json")
_PAPER = "arXiv 2505.13227"
_LISTS = "box_type in the released lists"


class OSWorldG(GroundingBenchmark):
    """OSWorld-G with its original instructions: 564 targets: 470 boxes, 40 polygons and 54 that are not there.

    ``root`` is the repository, its ``benchmark`` folder, MAI-UI's data folder, or a folder with one of their lists.
    """

    name = "osworld-g"
    title = "OSWorld-G"
    source = (
        "github.com/xlang-ai/OSWorld-G: benchmark/OSWorld-G.json with benchmark/images/, "
        "or MAI-UI's OS_G_data/OSWorld-G_sspro_format.json"
    )
    paper = _PAPER
    licence = "none found stated (OSWorld itself is Apache-2.0)"
    published = (
        PublishedCount("all", 564, _PAPER, 564, types={"CLICK": 510, "STOP": 54}),
        PublishedCount("boxes", 470, _LISTS, groups={"target": "bbox"}),
        PublishedCount("polygons", 40, _LISTS, groups={"target": "polygon"}),
        PublishedCount("refusals", 54, _LISTS, groups={"target": "refusal"}),
    )
    protocol = "osworld-g"
    dataset = "osworld-g"
    action_space = ActionSpace(frozenset({"CLICK", "STOP"}), frozenset(), frozenset({"impossible"}))
    image_folders = ("benchmark/images", "images", "")
    lists = (
        "benchmark/OSWorld-G.json",
        "OSWorld-G.json",
        "OS_G_data/OSWorld-G_sspro_format.json",
        "OSWorld-G_sspro_format.json",
        "osworld_g.json",
    )
    write_example = written_by("grounding.write_osworld_g")

    def index(self) -> Sequence[EpisodeRef]:
        refs = super().index()
        _ = self._capabilities  # a damaged classification is reported here, since it belongs to no single row
        return refs

    def _item(self, entry: Entry) -> GroundingItem:
        row = entry.row
        native = "box_type" in row or "box_coordinates" in row
        size = stated_size(row, "image_size" if native else "img_size")
        kind, target = _native_target(row, size) if native else _converted_target(row, size)
        capabilities = self._capabilities.get(self._episode_id(entry), ())
        return GroundingItem(
            instruction=row.text("instruction"),
            screenshot=self._screenshot(row.text("image_path" if native else "img_filename")),
            size=size,
            target=target,
            groups={"target": kind, **{capability.replace("_", " "): "yes" for capability in capabilities}},
            extras={"ui_types": _words(row, "GUI_types" if native else "ui_type")},
        )

    @cached_property
    def _capabilities(self) -> Mapping[str, Sequence[str]]:
        """The ability that each row tests, by its id, as the authors classified them."""
        file = find_file(self.root, CLASSIFICATIONS)
        try:
            return _read_capabilities(file) if file is not None else {}
        except DataError as error:
            self.refuse(error)
            return {}


class OSWorldGRefined(OSWorldG):
    """OSWorld-G with instructions rewritten to name what is seen, so that only grounding is tested."""

    name = "osworld-g-refined"
    title = "OSWorld-G (refined)"
    source = (
        "github.com/xlang-ai/OSWorld-G: benchmark/OSWorld-G_refined.json with benchmark/images/, "
        "or MAI-UI's OS_G_Refine_data/OSWorld-G_refined_sspro_format.json"
    )
    lists = (
        "benchmark/OSWorld-G_refined.json",
        "OSWorld-G_refined.json",
        "OS_G_Refine_data/OSWorld-G_refined_sspro_format.json",
        "OSWorld-G_refined_sspro_format.json",
        "osworld_g_refined.json",
    )


def _native_target(row: Row, size: Size) -> tuple[str, Target]:
    kind = one_of(row, "box_type", ("bbox", "polygon", "refusal"))
    if kind == "refusal":
        return kind, REFUSAL
    if kind == "polygon":
        return kind, polygon_target(row, "box_coordinates", _numbers(row, "box_coordinates"), size)
    x, y, width, height = row.numbers("box_coordinates", 4)
    return kind, box_target(row, "box_coordinates", (x, y, x + width, y + height), size, "[x, y, width, height]")


def _converted_target(row: Row, size: Size) -> tuple[str, Target]:
    numbers = _numbers(row, "bbox")
    if numbers == [0.0, 0.0, 0.0, 0.0]:
        return "refusal", REFUSAL
    if len(numbers) > 4:
        x, y, second_x, second_y, *others = numbers
        return "polygon", polygon_target(row, "bbox", [x, y, second_x - x, second_y - y, *others], size)
    return "bbox", box_target(row, "bbox", row.numbers("bbox", 4), size)


def _numbers(row: Row, name: str) -> list[float]:
    value = row.value(name)
    return list(row.numbers(name, len(value) if isinstance(value, list) else 4))


def _words(row: Row, name: str) -> list[str]:
    value = row.value(name)
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise row.error(name, f"expected a list of words, got {value!r:.80}")
    return value


def _read_capabilities(file: Path) -> dict[str, list[str]]:
    capabilities: dict[str, list[str]] = {}
    classified = read_row(file).row("classified")
    for capability in classified.values:
        for row in classified.rows(capability):
            name = row.text("id")
            if capability != "refusal" and capability not in capabilities.setdefault(name, []):
                capabilities[name].append(capability)
    return capabilities
