"""The folder of a report: a page, its script and style, and its data as scripts.

A page that was opened from disk must not fetch files, but may load scripts, so data files are scripts: each calls one function
with one JSON text. All texts of models and data sets are inside that JSON, in ASCII, with all special characters of HTML and
JavaScript escaped; the page only displays them as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guieval.errors import UsageError, harmless
from guieval.reports.pages.kit import joined, joined_script, page
from guieval.reports.private_places import SHORTENED, any_of, folder_names

DATA = "data"
PAGE = "index.html"
MARKER = "guieval-report.txt"
"""Marks a folder as a report, whose files may be replaced."""
_OURS = re.compile(r"(index|(steps|text|task)-\d{5})\.js")


@dataclass(frozen=True)
class Written:
    """The contents of a report: numbers of steps, episodes (or trajectories) and images, and why images are missing."""

    page: Path
    steps: int
    episodes: int
    images: int
    lacking: Sequence[str]
    notes: Sequence[str]


def prepare(out: Path) -> None:
    """Create the folder, or remove the data files of an earlier report; its images are kept.

    Raises :class:`UsageError` for a folder with other contents, or one that cannot be written.
    """
    try:
        if out.exists() and not (out / MARKER).is_file() and (not out.is_dir() or any(out.iterdir())):
            raise UsageError(f"{str(out)!r} exists and is not a report; choose another --out")
        (out / DATA).mkdir(parents=True, exist_ok=True)
        (out / MARKER).write_text(f"A report of guieval. Open {PAGE} in a browser.\n", encoding="ascii")
        for file in (out / DATA).iterdir():
            if _OURS.fullmatch(file.name):
                file.unlink()
    except OSError as error:
        raise UsageError(f"the report cannot be written to {str(out)!r}: {error.strerror}") from None


def script_text(function: str, number: int, json_text: str) -> str:
    """A script that passes JSON to one function of the page; no text inside it can end the string, or the script.

    It is a string for ``JSON.parse`` rather than a literal: faster to read, and a key named ``__proto__`` is only a key.
    """
    escaped = json_text
    for character in "<>&'":
        escaped = escaped.replace(character, f"\\u{ord(character):04x}")
    escaped = escaped.replace("\\", "\\\\")
    return f"guieval.{function}({number},JSON.parse('{escaped}'));\n"


def numbered(name: str, parts: Sequence[str], count: int, size: int = 1) -> int:
    """The number of a file PART-NUMBER.js that has ``size`` of ``count`` things; :class:`UsageError` for any other name."""
    part, _, digits = name.removesuffix(".js").partition("-")
    number = int(digits) if digits.isdecimal() and len(digits) < 9 else count
    if part not in parts or number * size >= count:
        raise UsageError(f"there is no file {name[:40]!r} of this run")
    return number


class ReportFolder:
    """The files of a report in ``out``; paths below the home, the working directory and ``folders`` are shortened in texts."""

    def __init__(self, out: Path, folders: Iterable[Path]) -> None:
        self._out = out
        self._private = any_of(json.dumps(path)[1:-1] for path in folder_names(folders))

    def shortened(self, text: str) -> str:
        """A text without paths of this computer and without unprintable characters."""
        return self._private.sub(SHORTENED, harmless(text))

    def script(self, name: str, function: str, number: int | None, value: Any) -> None:
        """Write ``value`` as a data file that calls ``guieval.function``."""
        text = self._private.sub(SHORTENED, json.dumps(value, separators=(",", ":"), allow_nan=False))
        file = name if number is None else f"{name}-{number:05}"
        self._write(f"{DATA}/{file}.js", script_text(function, number or 0, text))

    def page(self, template: Path, scripts: Iterable[Path], styles: Iterable[Path], **values: Any) -> None:
        """Write the page with the parts of its script and its style."""
        self._write("app.js", joined_script(scripts))
        self._write("style.css", joined(styles))
        self._write(PAGE, page(template, **values))

    def _write(self, name: str, text: str) -> None:
        try:
            (self._out / name).write_text(text, encoding="utf-8", errors="replace")
        except OSError as error:
            raise UsageError(f"the report cannot be written: {str(self._out / name)!r}: {error.strerror}") from None
