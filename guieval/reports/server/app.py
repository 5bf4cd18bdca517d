"""The ASGI application: who may ask, and the addresses of the pages.

It listens on loopback, on which every user and every page of this machine can reach it. So a request needs the cookie that the
address with the token sets, the name of this machine as its host (a page elsewhere whose name was bound to this machine has
another one), and must not come from a page of another origin.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, ValidationError

from guieval.data.loopback import LOOPBACK_HOST
from guieval.errors import GuievalError, UsageError
from guieval.journal import RunFolder
from guieval.reports.notes import write_note, write_tags
from guieval.reports.server.library import Library
from guieval.reports.server.messages import PageRequest, PageResponse, app_page, as_json, page_part, sentence
from guieval.reports.server.overview import judged_run, part_of
from guieval.reports.server.runs_pages import RunPages
from guieval.scoring.score import stored_summary
from guieval.steps import StepKey

COOKIE = "guieval"
MOST_BODY = 256 * 1024
_LOCKED = "Open the address that `guieval view` printed; it has the token that this page needs."

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class _Note(BaseModel):
    """A message from the page: a note on a step or on the run, or the run's tags."""

    model_config = ConfigDict(extra="forbid")

    run: int = 0
    step: StepKey | None = None
    text: str | None = None
    tags: list[str] | None = None


class ViewerApp:
    """Serves the runs of a library to whoever knows ``token``; :meth:`once` makes further tokens for one use each."""

    def __init__(self, library: Library, token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(24)
        self._library = library
        self._pages = RunPages(library)
        self._once: set[str] = set()

    def once(self) -> str:
        """A token for one use, for the command line of a browser, which every user of the machine can see."""
        made = secrets.token_urlsafe(24)
        self._once.add(made)
        return made

    def prepare(self, name: str) -> None:
        """Judge a run without stored metrics before its page is asked for; one that cannot be read says so on its page."""
        with suppress(GuievalError):
            directory = self._library.directory(name)
            if part_of(directory).judged and stored_summary(RunFolder(directory)) is None:
                self._library.kept("judged", name, judged_run)

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = PageRequest.of(scope)
        answer = self._refused(request)
        if answer is None and request.method == "POST":
            body = await _body(receive)
            answer = sentence("The note is too long.", 413) if body is None else None
            request = replace(request, body=body or b"")
        if answer is None:
            answer = await asyncio.to_thread(self._answer, request)
        await send({"type": "http.response.start", "status": answer.status, "headers": answer.headers()})
        await send({"type": "http.response.body", "body": b"" if request.method == "HEAD" else answer.body})

    def _refused(self, request: PageRequest) -> PageResponse | None:
        """Why a request is not answered, or the way to the page without the token; ``None`` for one that may ask."""
        host = request.headers.get("host", "")
        if not LOOPBACK_HOST.fullmatch(host):
            return sentence(f"This server answers as 127.0.0.1 or localhost, not as {host[:100]!r}.", 403)
        if request.method not in ("GET", "HEAD", "POST"):
            return sentence("Pages are read here; only notes are written.", 405)
        visit = request.method == "GET" and request.headers.get("sec-fetch-mode") == "navigate"
        if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not visit:
            return sentence("A page of another site may not ask this server.", 403)
        if request.method == "POST":
            origin = request.headers.get("origin", "")
            if origin != f"http://{host}" or not request.headers.get("content-type", "").startswith("application/json"):
                return sentence("Notes are taken from this server's own pages.", 403)
        if given := next(iter(request.query.get("token", ())), None):
            return self._entered(request, given)
        if not _equal(request.cookies.get(COOKIE, ""), self.token):
            return sentence(_LOCKED, 403)
        return None

    def _entered(self, request: PageRequest, given: str) -> PageResponse:
        for code in self._once:
            if _equal(given, code):
                self._once.discard(code)
                break
        else:
            if not _equal(given, self.token):
                return sentence(_LOCKED, 403)
        path = "/" + quote(request.path.lstrip("/"), safe="/,", errors="replace")
        cookie = f"{COOKIE}={self.token}; Path=/; HttpOnly; SameSite=Lax"
        return PageResponse(b"", status=303, more={"location": path, "set-cookie": cookie})

    def _answer(self, request: PageRequest) -> PageResponse:
        try:
            found = self._found(request)
        except UsageError as error:
            return sentence(str(error), 400 if request.method == "POST" else 404)
        except GuievalError as error:
            return sentence(str(error), 500)
        return found or sentence("There is no such page here.", 404)

    def _found(self, request: PageRequest) -> PageResponse | None:
        match request.method, request.parts:
            case "POST", ["runs", names, "note"] | ["runs", names, _, "note"]:
                return self._note(names, request.body)
            case "POST", _:
                return None
            case _, [""]:
                return app_page("Runs", "runs")
            case _, ["data", "runs"]:
                return as_json(self._library.listed())
            case _, ["runs", names, *rest]:
                return self._pages.answer(names.split(","), rest)
        return page_part(request.parts)

    def _note(self, names: str, body: bytes) -> PageResponse:
        try:
            note = _Note.model_validate_json(body)
        except ValidationError:
            raise UsageError("the note does not have the form of a note") from None
        runs = names.split(",")
        if not 0 <= note.run < len(runs):
            raise UsageError(f"there is no run {note.run} on this page")
        directory = self._library.directory(runs[note.run])
        if note.step is not None and not self._pages.planned(runs[note.run], note.step):
            raise UsageError(f"the run has no step {note.step}")
        if note.tags is not None:
            write_tags(directory, note.tags)
        if note.text is not None:
            write_note(directory, note.text, note.step)
        return as_json({})


async def _body(receive: Receive) -> bytes | None:
    """The body of a request; ``None`` if it is too long."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MOST_BODY:
            return None
        if message["type"] != "http.request" or not message.get("more_body"):
            return bytes(body)


def _equal(given: str, expected: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), expected.encode("ascii"))
