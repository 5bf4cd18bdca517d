"""The parts of the pages that only the viewer has: the list of runs, overviews and comparisons."""

from __future__ import annotations

from pathlib import Path

from guieval.reports.pages.kit import NODES, STYLE, THEME, page

OWN = Path(__file__).parent
SCRIPTS = [NODES, THEME, *(OWN / "script" / f"{name}.js" for name in ("tables", "list", "overview", "start"))]
STYLES = [STYLE, OWN / "style.css"]


def app_page(title: str, kind: str, *, up: str = "") -> str:
    """A page of the viewer; its script fetches the rest. ``up`` is the address of the list of runs."""
    return page(OWN / "page.html.jinja", title=title, kind=kind, up=up)
