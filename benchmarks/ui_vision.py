"""UI-Vision, element grounding (Nayak et al., 2025): find one element on screens of 83 open-source desktop programs.

The lists are also read directly in a folder (next to ``images/`` or ``element_grounding/``) and from MAI-UI's copies in
``UI_Vision_data/``, packed with gzip or not. UI-Vision's layout grounding (answers are boxes) and action prediction are other
tasks and are not read.

The instruction is the element's name in the subset ``basic``, what it does in ``functional``, and where it is from another
element in ``spatial``. Each list has a score of its own, so a folder may lack some.

Labels: ``bbox`` is [x1, y1, x2, y2] in fractional pixels of an image of ``image_size``; the reference is a click on its
middle. In the full lists 77 boxes reach over the edge of their image, none with its middle, and one (spatial, row 1908) is a
single point, which only that very point hits, as under the authors' scorer. That scorer swaps crossed corners; no row has any,
so such a row is refused here as damaged. Groups: ``subset``, ``domain`` (the paper's six, by the authors' table of programs),
``category`` (Button, Menu, Input Elements) and ``element`` (text, icon); the program (``platform``) is kept in the extras.
"""

from __future__ import annotations

from collections.abc import Sequence

from guieval.data.benchmark import PublishedCount
from guieval.errors import nearest

from ._examples import written_by
from ._grounding import AnnotationList, Entry, GroundingBenchmark, GroundingItem, box_target, find_file, stated_size
from ._rows import Row, one_of

SUBSETS = ("basic", "functional", "spatial")
LISTS = (
    "annotations/element_grounding/element_grounding_{}.json",
    "UI_Vision_data/element_grounding_{}.json",
    "element_grounding_{}.json",
)
_SOURCE = "arXiv 2503.15661"
DOMAINS = {
    "Education": "Anki, Audacity, Calibre, GrassGIS, Mendeley, OpenBoard, QGIS, Zotero",
    "Browsers": "Brave, Chromium, DuckDuckGo, Mozilla Firefox",
    "Development": (
        "Arduino IDE, Atom, Bash, Bluefish, Brackets, Code::Blocks, Conky, Eclipse, FreeCAD, Geany, Gedit, IntelliJ IDEA, "
        "KDevelop, Komodo Edit, NetBeans, PyCharm, Qt Creator, Spyder, Ubuntu Terminal, VSCode"
    ),
    "Productivity": (
        "7-Zip, Affine, Bitwarden, Cryptomator, draw.io, Flameshot, GnuCash, Gnumeric, Jitsi, Joplin, LibreOffice Calc, "
        "LibreOffice Draw, LibreOffice Impress, LibreOffice Writer, Metabase, Nemo, Nextcloud, OnlyOffice Calendar, "
        "OnlyOffice Document Editor, OnlyOffice Forms, OnlyOffice PDF Forms, OnlyOffice Presentation, OnlyOffice Spreadsheet, "
        "OpenProject, PDFedit, Simplenote, WeKan, Zulip"
    ),
    "Creativity": (
        "Blender, Darktable, FontForge, GIMP, Inkscape, Krita, Lightworks, MuseScore, Natron, OBS Studio, OpenShot, "
        "OpenToonz, Scribus, Shotcut, WordPress"
    ),
    "Entertainment": "Element, Emby, Kodi, Lemmy, Mastodon, Matrix, Signal, VLC Media Player",
}
"""Programs by domain, from mapdict_cat2platform.json of github.com/uivision/UI-Vision."""
_DOMAIN_OF = {program.casefold(): domain for domain, programs in DOMAINS.items() for program in programs.split(", ")}


class UIVision(GroundingBenchmark):
    """UI-Vision element grounding: subsets basic (1,772), functional (1,772) and spatial (1,935).

    Below ``root``: ``annotations/element_grounding/element_grounding_<subset>.json`` with ``images/``, or the lists directly.
    """

    name = "ui-vision"
    title = "UI-Vision (element grounding)"
    source = (
        "huggingface.co/datasets/ServiceNow/ui-vision: annotations/element_grounding/"
        "element_grounding_{basic,functional,spatial}.json with images/, or the same lists in MAI-UI's UI_Vision_data/"
    )
    paper = "arXiv 2503.15661"
    licence = "MIT"
    published = (
        PublishedCount("basic", 1772, _SOURCE, 1772, subset="basic", types={"CLICK": 1772}),
        PublishedCount("functional", 1772, _SOURCE, 1772, subset="functional", types={"CLICK": 1772}),
        PublishedCount("spatial", 1935, _SOURCE, 1935, subset="spatial", types={"CLICK": 1935}),
    )
    protocol = "ui-vision"
    dataset = "ui-vision"
    image_folders = ("images", "")
    write_example = written_by("grounding.write_ui_vision")

    def _find_lists(self) -> Sequence[AnnotationList]:
        for pattern in LISTS:
            lists = [(subset, find_file(self.root, [pattern.format(subset)])) for subset in SUBSETS]
            files = [AnnotationList(file, subset, subset) for subset, file in lists if file is not None]
            if files:
                return files
        raise self.wrong_folder(self.root, f"{LISTS[-1].format('<subset>')}, directly or in annotations/element_grounding/")

    def _episode_id(self, entry: Entry) -> str:
        return f"{entry.source.stem}_{entry.number}"

    def _item(self, entry: Entry) -> GroundingItem:
        row = entry.row
        size = stated_size(row, "image_size")
        return GroundingItem(
            instruction=row.text("prompt_to_evaluate"),
            screenshot=self._screenshot(row.text("image_path")),
            size=size,
            target=box_target(row, "bbox", row.numbers("bbox", 4), size),
            groups={
                "subset": entry.source.subset,
                "domain": _domain(row),
                "category": row.text("category"),
                "element": one_of(row, "element_type", ("text", "icon")),
            },
            extras={"application": row.text("platform")},
        )


def _domain(row: Row) -> str:
    """The lists and the authors' table spell a few programs in another case."""
    program = row.text("platform")
    if program.casefold() not in _DOMAIN_OF:
        known = ", ".join(DOMAINS.values()).split(", ")
        raise row.error("platform", f"{program!r:.80} is none of the benchmark's 83 programs{nearest(program, known)}")
    return _DOMAIN_OF[program.casefold()]
