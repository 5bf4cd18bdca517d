"""Writes docs/reliability.md from the tests in this folder: ``python -m tests.faults.page``."""

from __future__ import annotations

from tests.conftest import REPOSITORY
from tests.faults.rows import tables

PAGE = REPOSITORY / "docs" / "reliability.md"

INTRODUCTION = """\
# Reliability

This page lists faults and what guieval does about them. Each row is a test: `tests/faults/` runs the `guieval` command against
a server, a disk or another process with this fault, and checks the row, literally where it is in `code`. The command
`python -m tests.faults.page` writes this page from those tests.

Four guarantees hold throughout:

- A step is one line of the journal, with a checksum. The operating system has it as soon as the step is answered, so no kill or
  crash of guieval loses it. It is on the disk at most a second later, or after a hundred steps: a machine that loses power can
  lose that second.
- `guieval run --resume` runs no answered step again. If a step is in the journal twice, the last line counts.
- A step that could not be measured is an *infrastructure failure*, counted apart: it is not a wrong answer. Offline and
  semi-online it stays in the denominators; a task of an online run is in none until it is judged.
- A run that was disturbed and resumed has the figures of a run that was not.

"As usual" means that the result is printed and the exit code is 0.
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
