"""Writes the viewer: the page, a small index for filtering, and the steps in chunks that are loaded on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from guieval.journal import RunFolder
from guieval.reports.pages.kit import DRAWN, LOADING, MARKS, NODES, STYLE, THEME
from guieval.reports.viewer.content import SEARCH_CHUNK, Chunk, Content, Row, searched
from guieval.reports.viewer.folder import PAGE, ReportFolder, Written, prepare
from guieval.reports.viewer.pictures import Pictures
from guieval.reports.viewer.reading import Prompter
from guieval.reports.viewer.sources import PlannedTasks

OWN = Path(__file__).parent
_BEFORE, _AFTER = (
    [OWN / "script" / f"{name}.js" for name in parts.split()]
    for parts in ("data state filters episodes moving filmstrip decisions screen notes panel table live", "page")
)
TEMPLATE = OWN / "page.html.jinja"
SCRIPTS = [NODES, LOADING, OWN / "script" / "nodes.js", DRAWN, *_BEFORE, THEME, *_AFTER]
"""The parts of the page's script, in the order in which they are joined."""
STYLES = [STYLE, MARKS, OWN / "style.css"]


def write_report(
    out: Path,
    run: RunFolder,
    pictures: Pictures,
    protocols: Sequence[str],
    *,
    against: RunFolder | None = None,
    tasks: PlannedTasks | None = None,
    prompters: Sequence[Prompter] = (),
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Written:
    """Write the viewer of ``run`` into ``out``, judged under each of ``protocols``, side by side with ``against`` if given.

    ``tasks`` provides steps without a record, ``prompters`` rebuild the prompts of either run. ``on_progress`` is called with
    (steps done, all steps). An earlier report in the folder is replaced; its images are reused. Raises
    :class:`guieval.errors.UsageError` for a folder with other contents, or a run to compare with that shares no step.
    """
    prepare(out)
    content = Content([run] if against is None else [run, against], protocols, tasks, prompters=prompters)
    root = [] if pictures.root is None else [pictures.root]
    folder = ReportFolder(out, [*content.folders(), *root])
    index = content.index(_written(folder, content, pictures, on_progress))
    folder.script("index", "index", None, index)
    folder.page(TEMPLATE, SCRIPTS, STYLES, title=folder.shortened(content.title), served=False)
    return Written(out / PAGE, len(content), content.episodes, pictures.made, pictures.lacking, content.notes)


def _written(
    folder: ReportFolder, content: Content, pictures: Pictures, on_progress: Callable[[int, int], None]
) -> Iterator[Row]:
    chunk = Chunk(content)
    texts: list[str] = []
    total = len(content)
    for row in content.rows():
        chunk.add(row)
        texts.append(searched(row))
        done = row.number + 1
        if done == total or len(chunk.rows) == content.chunk:
            found = pictures.of(list(chunk.tasks.values()))
            folder.script("steps", "chunk", row.number // content.chunk, chunk.values(found))
            chunk = Chunk(content)
            on_progress(done, total)
        if done == total or len(texts) == SEARCH_CHUNK:
            folder.script("text", "text", row.number // SEARCH_CHUNK, texts)
            texts = []
        yield row
