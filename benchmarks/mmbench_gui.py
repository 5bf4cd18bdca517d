"""MMBench-GUI L2 (Wang et al., 2025): find one element on screens of six platforms, by looks (basic) or by use (advanced).

``MMBench-GUI-OfflineImages.zip`` unpacks to ``offline_images/os_<platform>/``. MAI-UI's conversion may be packed with gzip.
The other levels of MMBench-GUI (questions, and tasks on live systems) are not grounding and are not read.

13 rows are in the list twice under two numbers; both are kept, as the authors' scorer counts them.

Labels: the release writes ``bbox`` as [x1, y1, x2, y2] in fractions of the image, and its scorer takes one with a number
outside [0, 1] as pixels, which is done here too; MAI-UI's conversion is in pixels. The reference is a click on the box's
middle. Groups are ``level`` (``grounding_type``), ``platform`` and ``element`` (``data_type``), from which the authors' tables
are made; the program (``app_name``) is kept in the extras.
"""

from __future__ import annotations

from guieval.data.benchmark import PublishedCount

from ._examples import written_by
from ._grounding import Entry, GroundingBenchmark, GroundingItem, box_target, identity, stated_size
from ._rows import one_of

_SOURCE = "the released L2_annotations.json as converted by MAI-UI (arXiv 2507.19478 says 3,574)"


class MMBenchGuiL2(GroundingBenchmark):
    """MMBench-GUI L2: 3,594 targets on Windows, macOS, Linux, iOS, Android and web pages.

    Below ``root``: ``L2_annotations.json`` with ``offline_images/``, or MAI-UI's list.
    """

    name = "mmbench-gui-l2"
    title = "MMBench-GUI L2"
    source = (
        "huggingface.co/datasets/OpenGVLab/MMBench-GUI: L2_annotations.json with offline_images/ (unpack "
        "MMBench-GUI-OfflineImages.zip), or MAI-UI's MMbench_data/MMbench_GUI_sspro_format.json"
    )
    paper = "arXiv 2507.19478"
    licence = "Apache-2.0"
    published = (
        PublishedCount("all", 3594, _SOURCE, 3594, types={"CLICK": 3594}),
        PublishedCount("basic", 1787, _SOURCE, groups={"level": "basic"}),
        PublishedCount("advanced", 1807, _SOURCE, groups={"level": "advanced"}),
    )
    protocol = "mmbench-gui-l2"
    dataset = "mmbench-gui-l2"
    lists = (
        "L2_annotations.json",
        "MMBench-GUI/L2_annotations.json",
        "MMbench_data/MMbench_GUI_sspro_format.json",
        "MMbench_GUI_sspro_format.json",
    )
    image_folders = ("offline_images", "MMBench-GUI/offline_images", "MMBench-GUI-OfflineImages/offline_images", "images")
    write_example = written_by("grounding.write_mmbench_gui")

    def _episode_id(self, entry: Entry) -> str:
        return identity(entry.row, "index" if _is_native(entry) else "id")

    def _item(self, entry: Entry) -> GroundingItem:
        row, native = entry.row, _is_native(entry)
        size = stated_size(row, "image_size" if native else "img_size")
        width, height = size
        x1, y1, x2, y2 = corners = row.numbers("bbox", 4)
        if native and all(0.0 <= number <= 1.0 for number in corners):
            corners = (x1 * width, y1 * height, x2 * width, y2 * height)
        platform = row.text("platform")
        name = row.text("image_path" if native else "img_filename")
        # The authors' README shows names with the platform's folder before them; their scorer puts it there itself.
        inside = name if name.startswith(f"{platform}/") else f"{platform}/{name}"
        return GroundingItem(
            instruction=row.text("instruction"),
            screenshot=self._screenshot(inside),
            size=size,
            target=box_target(row, "bbox", corners, size),
            groups={
                "level": one_of(row, "grounding_type" if native else "group", ("basic", "advanced")),
                "platform": platform,
                "element": one_of(row, "data_type" if native else "ui_type", ("text", "icon")),
            },
            extras={"application": row.text("app_name" if native else "application")},
        )


def _is_native(entry: Entry) -> bool:
    return "image_path" in entry.row or "image_size" in entry.row
