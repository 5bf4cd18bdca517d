"""The pages below ``runs/NAMES``: of one run its overview, of several their comparison, and the step viewer of either."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from guieval.errors import UsageError
from guieval.journal import RunFolder
from guieval.journal.run_folders import rounds_of
from guieval.reports.notes import read_notes
from guieval.reports.server import comparing, overview
from guieval.reports.server.library import Library
from guieval.reports.server.messages import SCRIPT, PageResponse, app_page, as_json, page_part
from guieval.reports.server.overview import RunPart
from guieval.reports.server.steps import StepPages
from guieval.reports.server.trajectories import TrajectoryPages
from guieval.reports.trajectories.reading import read_online
from guieval.reports.trajectories.writing import SCRIPTS as ONLINE_SCRIPTS
from guieval.reports.trajectories.writing import STYLES as ONLINE_STYLES
from guieval.reports.viewer.content import MOST_RUNS
from guieval.reports.viewer.pictures import THUMB_FOLDER
from guieval.reports.viewer.writing import SCRIPTS as STEP_SCRIPTS
from guieval.reports.viewer.writing import STYLES as STEP_STYLES
from guieval.scoring.matrix import ALL
from guieval.steps import EpisodeKey, StepKey

IMAGE = {"cache-control": "private, max-age=600"}


class RunPages:
    """Answers the addresses below ``runs/NAMES``, where NAMES are one or several ids with commas between them."""

    def __init__(self, library: Library) -> None:
        self._library = library

    def planned(self, name: str, key: StepKey) -> bool:
        plan = self._library.kept("plan", name, lambda directory: RunFolder(rounds_of(directory)[0]).plan)
        return key.step_index in plan.get(EpisodeKey(*key[:3]), ())

    def answer(self, names: Sequence[str], rest: Sequence[str]) -> PageResponse | None:
        """The answer to a request below ``runs/NAMES``; :class:`UsageError` for a run or part that does not exist."""
        if len(set(names)) != len(names) or len(names) > MOST_RUNS:
            raise UsageError(f"choose up to {MOST_RUNS} different runs")
        parts = [overview.part_of(self._library.directory(name)) for name in names]
        if len({tuple(part.links) for part in parts}) > 1:
            raise UsageError("online runs are compared with online runs only, since they have no steps in common with others")
        match rest:
            case [""]:
                title = " and ".join(self._library.title(name) for name in names)
                return app_page(title, "run" if len(names) == 1 else "compare", up="../../")
            case ["data", section]:
                return as_json(self._section(names, parts, section))
            case [below, *file] if below in parts[0].links and (parts[0].together or len(names) == 1):
                return self._file(names, below, file)
        return page_part(rest)

    def _section(self, names: Sequence[str], parts: Sequence[RunPart], section: str) -> dict[str, Any]:
        if section == "head":
            return self._head(names, parts)
        if len(names) > 1:
            return self._comparison(names, parts, section)
        made = parts[0].sections.get(section)
        if made is None:
            raise UsageError(f"a run of this kind has no section {section[:40]!r}")
        (name,) = names
        return made.make(self._library.kept(made.what, name, made.read), self._library.directory(name))

    def _head(self, names: Sequence[str], parts: Sequence[RunPart]) -> dict[str, Any]:
        runs = []
        for name in names:
            directory = self._library.directory(name)
            notes = read_notes(directory)
            facts = overview.run_head(rounds_of(directory)[0], directory)
            about = {"id": name, "name": self._library.title(name), "facts": facts}
            runs.append({**about, "tags": notes.tags, "note": notes.text, "noted": len(notes.steps)})
        sections, several = list(parts[0].sections), len(names) > 1
        if several:
            pairs = [f"against-{place}" for place in range(1, len(names))]
            sections = [parts[0].compared or "patterns", *pairs]
        first = overview.stored_section(self._library.directory(names[0])) if not several and parts[0].judged else None
        links = [{"name": title, "link": f"{below}/"} for below, title in parts[0].links.items()]
        if several and not parts[0].together:
            links = [
                {"name": f"{each['name']} of {letter}", "link": f"../{name}/{each['link']}"}
                for each in links
                for letter, name in zip(comparing.LETTERS, names, strict=False)
            ]
        return {"runs": runs, "links": links, "sections": sections, "stored": first}

    def _comparison(self, names: Sequence[str], parts: Sequence[RunPart], section: str) -> dict[str, Any]:
        directories = [self._library.directory(name) for name in names]
        if section == "online" and parts[0].compared == section:
            return comparing.online_sections([self._library.kept("online", name, read_online) for name in names])
        if not all(part.compared for part in parts):
            raise UsageError("rollouts are not compared here; look at their steps, or use `guieval study decisions`")
        if section == "patterns":
            judged = [self._library.kept("judged", name, overview.judged_run) for name in names]
            return comparing.patterns_section(directories, judged)
        places = {f"against-{place}": place for place in range(1, len(names))}
        if section not in places:
            raise UsageError(f"a comparison has no section {section[:40]!r}")
        place = places[section]
        letter, second = comparing.LETTERS[place], directories[place]
        make = partial(comparing.differences_section, second=second, letter=letter)
        return self._library.kept(f"{letter} against A", names[0], make, [names[place]])

    def _step_pages(self, names: Sequence[str], *, every: bool) -> StepPages:
        others = [self._library.directory(name) for name in names[1:]]
        protocols, library = [ALL] if every else None, self._library
        return library.kept(
            "every" if every else "steps",
            names[0],
            lambda first: StepPages([first, *others], library.data, library.adapter, protocols),
            names[1:],
        )

    def _file(self, names: Sequence[str], below: str, file: Sequence[str]) -> PageResponse | None:
        """A file of the page in the folder ``below``: the step viewer, or the trajectories."""
        steps = below in overview.STEPS
        scripts, styles = (STEP_SCRIPTS, STEP_STYLES) if steps else (ONLINE_SCRIPTS, ONLINE_STYLES)
        if (part := page_part(file, scripts, styles)) is not None:
            return part
        pages: StepPages | TrajectoryPages
        if steps:
            pages = self._step_pages(names, every=below == "protocols")
        else:
            pages = self._library.kept("trajectories", names[0], TrajectoryPages)
        match file:
            case [""]:
                return PageResponse(pages.page().encode("utf-8"))
            case ["data", script]:
                return PageResponse(pages.script(script).encode("utf-8"), SCRIPT)
            case [folder, image] if folder in pages.folders:
                data, kind = pages.image(image, small=folder == THUMB_FOLDER)
                return PageResponse(data, kind, more=IMAGE)
        return None
