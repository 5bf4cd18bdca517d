"""Writes docs/reliability.md from the tests in this folder: ``python -m tests.faults.page``."""

from __future__ import annotations

from tests.conftest import REPOSITORY
from tests.faults.rows import tables

PAGE = REPOSITORY / "docs" / "reliability.md"

INTRODUCTION = """\
# Reliability

What goes wrong in a run, and what becomes of it. Each row is a test: `tests/faults/` starts the `guieval` command against a
server, a disk or a neighbour that misbehaves in this way, and checks what the row says, word for word where it is in `code`.
This page is written from those tests by `python -m tests.faults.page`.

Three things hold throughout. A step is one line of the journal, with a checksum. It is with the operating system as soon as it
is answered, so that no kill or crash of guieval loses it, and on the disk at most a second later, or as soon as a hundred are
waiting: that second is what a machine that loses power can take. `guieval run --resume` asks for no answered step again; where
one stands twice nevertheless, the last line counts. A step that
could not be measured is an *infrastructure failure*, counted apart: never a wrong answer, and never left out of what the
figures divide by. The figures of a run that was disturbed and resumed are those of a run that was not.

"As ever" means that the result is printed and the exit code is 0.
"""


def page() -> str:
    """The whole page as text."""
    parts = [INTRODUCTION]
    for section, described in tables().items():
        parts.append(f"\n## {section}\n\n| fault | what guieval does | what the user sees | what is checked |\n")
        parts.append("| --- | --- | --- | --- |\n")
        for row, checked in described:
            ending = f"; exit code {row.code}" if row.code else ""
            cells = (row.fault, row.does, row.sees + ending, checked)
            parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
