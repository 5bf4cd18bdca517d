"""Shortens what a text discloses about the computer that wrote it: folders, servers and their addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

SHORTENED = "[...]"
_PART = r"/[^\s/'\":,;()<>]+"
_ANY_PLACE = re.compile(
    r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>`]*[^\s'\"<>`.,;:)\]]"  # a URL
    r"|(?<=['\"])(?:~|\.\.?)?/[^'\"\n]+(?=['\"])"  # a path in quotation marks, which may hold spaces
    rf"|(?<![\w/.~-])(?:(?:~|\.\.)(?:{_PART})+|\.?(?:{_PART}){{2,}})/?"  # any other path
    r"|(?<![\w.-])(?:(?:localhost|(?:[\w-]+\.)+[A-Za-z][\w-]*):\d{1,5}|\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?)(?!\w)"  # a host
)
_WHOLE_PATH = re.compile(r"(?:~|\.\.?)?/.*|[A-Za-z]:[\\/].*", re.DOTALL)


def folder_names(folders: Iterable[Path]) -> list[str]:
    """The home, the working directory and ``folders`` in all forms in which a text may name them; the longest first."""
    home = str(Path.home())
    everything = (Path.home(), Path.cwd(), *folders)
    named = {str(form) for folder in everything for form in (folder, folder.absolute(), folder.resolve())}
    private = [path for path in named if path.startswith("/") and (path.count("/") > 1 or (path == home and path != "/"))]
    return sorted(private, key=len, reverse=True)


def any_of(texts: Iterable[str]) -> re.Pattern[str]:
    """Matches each text if no longer name follows: ``/home/ann`` not in ``/home/anna``, and never without texts."""
    return re.compile("|".join(f"{re.escape(text)}(?![\\w-]|\\.\\w)" for text in texts) or r"(?!)")


class Shortener:
    """Shortens the ``folders`` and ``urls`` of a run, and those of this process, to ``[...]``."""

    def __init__(self, folders: Iterable[Path], urls: Iterable[str]) -> None:
        urls = {url.rstrip("/") for url in urls}
        hosts = {host for url in urls for host in (urlsplit(url).netloc, _host(url)) if host}
        # the home of root would be found in paths that a desktop's screen shows
        names = [name for name in folder_names(folders) if name.count("/") > 1]
        self._known = any_of(sorted({*urls, *names}, key=len, reverse=True))
        self._hosts = re.compile(rf"(?<![\w.-])(?:{any_of(sorted(hosts, key=len, reverse=True)).pattern})")

    def known(self, text: str) -> str:
        """The text without the known folders and URLs, for what a model or a data set wrote."""
        return self._known.sub(SHORTENED, text)

    def message(self, text: str) -> str:
        """The text without any path, URL or address, for what a program wrote."""
        return self.known(self._hosts.sub(SHORTENED, _ANY_PLACE.sub(SHORTENED, text)))

    def name(self, text: str) -> str:
        """A name that may be a path, e.g. of a checkpoint: then its last part, or the name of a checkpoint in a cache."""
        return last_part(text) or self.message(text)


def last_part(text: str) -> str:
    """The last part of a path, or the checkpoint's name of a path in a cache of the hub; empty for what is not a path."""
    if not _WHOLE_PATH.fullmatch(text):
        return ""
    parts = [part for part in re.split(r"[\\/]", text) if part]
    cached = next((part for part in parts if part.startswith("models--")), None)
    return cached.removeprefix("models--").replace("--", "/") if cached else parts[-1] if parts else SHORTENED


def in_strings(value: Any, change: Callable[[str], str]) -> Any:
    """A JSON value with all its strings changed; names of members are kept."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {name: in_strings(item, change) for name, item in value.items()}
    return [in_strings(item, change) for item in value] if isinstance(value, list) else value


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
