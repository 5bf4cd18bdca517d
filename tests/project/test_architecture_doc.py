"""docs/architecture.md: every package stands in its tree, below what it imports, and every path that it names exists."""

from __future__ import annotations

import re

from tests.conftest import REPOSITORY
from tests.project.test_structure import ALLOWED
from tests.rows import every_row

PAGE = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
TREE = re.search(r"^    guieval/\n((?:      .*\n)+)", PAGE, re.MULTILINE)
NAMED = sorted(set(re.findall(r"`((?:guieval|benchmarks|model_adapters|configs|docs|tests)/[\w./-]*)`", PAGE)))


def in_the_tree() -> list[str]:
    assert TREE is not None
    names: list[str] = []
    for line in TREE.group(1).splitlines():
        names += re.split(r"\s{2,}", line.strip())[0].replace("/", "").split(" ")
    return names


def test_the_tree_has_every_room_below_what_it_imports() -> None:
    names = in_the_tree()
    assert names == [*ALLOWED, "cli"]
    assert [(name, end) for place, name in enumerate(names[:-1]) for end in ALLOWED[name] if end not in names[:place]] == []


@every_row("path", NAMED)
def test_every_path_that_the_page_names_exists(path: str) -> None:
    place = REPOSITORY / path
    assert place.exists() or place.with_name(f"{place.name}.py").is_file()


def test_each_question_is_answered_by_one_or_two_files() -> None:
    rows = [line for line in PAGE[PAGE.index("## Where is it?") :].splitlines() if line.startswith("| ")][2:]
    assert len(rows) == 20 and [row for row in rows if not 1 <= sum(f"`{path}`" in row for path in NAMED) <= 2] == []
