"""Requests to the viewer and its answers, apart from who may ask."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

from guieval.reports.pages.kit import NODES, STYLE, THEME, joined, joined_script, page

OWN = Path(__file__).parent
SCRIPTS = [NODES, THEME, *(OWN / "script" / f"{name}.js" for name in ("tables", "list", "overview", "start"))]
STYLES = [STYLE, OWN / "style.css"]
"""The parts of the pages that only the viewer has: the list of runs, overviews and comparisons."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types guieval"
)
_SAFE = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
HTML, SCRIPT, CSS, JSON, TEXT = (
    "text/html; charset=utf-8",
    "text/javascript; charset=utf-8",
    "text/css; charset=utf-8",
    "application/json",
    "text/plain; charset=utf-8",
)


@dataclass(frozen=True)
class PageRequest:
    """A request: ``parts`` of its path, decoded, the values of its query, its headers in lower case, and its body."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes = b""

    @classmethod
    def of(cls, scope: Mapping[str, Any]) -> PageRequest:
        """The request of an ASGI scope, without its body."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        return cls(scope["method"], scope["path"], parse_qs(scope["query_string"].decode("latin-1")), headers)

    @property
    def parts(self) -> list[str]:
        """The path between its slashes; the last one is empty for a folder."""
        return self.path.split("/")[1:]

    @property
    def cookies(self) -> Mapping[str, str]:
        pairs = (pair.strip().partition("=") for pair in self.headers.get("cookie", "").split(";"))
        return {name: unquote(value) for name, _, value in pairs}


@dataclass(frozen=True)
class PageResponse:
    """An answer, with the headers of every answer."""

    body: bytes
    kind: str = HTML
    status: int = 200
    more: Mapping[str, str] = field(default_factory=dict)

    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers as ASGI takes them."""
        values = {"content-type": self.kind, "content-length": str(len(self.body)), **_SAFE, **self.more}
        return [(name.encode("ascii"), value.encode("latin-1")) for name, value in values.items()]


def as_json(value: Any) -> PageResponse:
    """A response of compact ASCII JSON. Raises ``ValueError`` for NaN and infinities."""
    return PageResponse(json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii"), JSON)


def sentence(text: str, status: int) -> PageResponse:
    """A sentence instead of a page."""
    return PageResponse(f"{text}\n".encode("utf-8", "replace"), TEXT, status)


def app_page(title: str, kind: str, *, up: str = "") -> PageResponse:
    """A page of the viewer; its script fetches the rest. ``up`` is the address of the list of runs."""
    return PageResponse(page(OWN / "page.html.jinja", title=title, kind=kind, up=up).encode("utf-8", "replace"))


def page_part(rest: Sequence[str], scripts: Iterable[Path] = SCRIPTS, styles: Iterable[Path] = STYLES) -> PageResponse | None:
    """A page's script or its style, as the ``rest`` of an address names it; ``None`` for anything else."""
    if list(rest) == ["app.js"]:
        return PageResponse(joined_script(scripts).encode("utf-8"), SCRIPT)
    return PageResponse(joined(styles).encode("utf-8"), CSS) if list(rest) == ["style.css"] else None
