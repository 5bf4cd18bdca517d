"""What a page of the documentation asks its reader to type: commands of a shell, Python, and files."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from itertools import dropwhile
from pathlib import Path
from typing import NamedTuple

FENCE = re.compile(r"^(?:<!-- file (?P<file>\S+) -->\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)(?:    \S.*\n(?: {5,}\S.*\n)*)+")


class Snippet(NamedTuple):
    """Something to carry out: a command (its words), Python, or a file to write (``name``)."""

    kind: str
    text: str
    name: str = ""

    @property
    def words(self) -> list[str]:
        """The command without the settings of the environment in front of it."""
        words = shlex.split(self.text, comments=True)
        return list(dropwhile(lambda word: re.fullmatch(r"[A-Z_]+=\S*", word), words))


def snippets(page: Path) -> Iterator[Snippet]:
    """The snippets of a page in their order."""
    text = page.read_text(encoding="utf-8")
    found = [(match.start(), match) for match in FENCE.finditer(text)]
    without = FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    found += [(match.start(), match) for match in INDENTED.finditer(without)]
    for _, match in sorted(found, key=lambda pair: pair[0]):
        if match.re is INDENTED:
            yield from commands(re.sub(r"^    ", "", match[0], flags=re.MULTILINE))
        elif match["file"]:
            yield Snippet("file", match["text"], match["file"])
        elif match["language"] == "sh":
            yield from commands(match["text"])
        elif match["language"] == "python":
            yield Snippet("python", match["text"])


def commands(block: str) -> Iterator[Snippet]:
    """The commands of a block, one a line; a backslash continues a line. What is not a command (a drawing, code) has none."""
    for line in re.sub(r"\\\n\s*", " ", block).splitlines():
        if re.match(
            r"(?:[A-Z_]+=\S+ )*(?:guieval|python3?|make|pip|source|export|curl|git|docker|npm|accelerate|vllm|ray)\b", line
        ):
            yield Snippet("command", line)
