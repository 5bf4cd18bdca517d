"""The skills: what their form requires, that all they name exists, and that ``guieval dev skill`` gives them as they are.

tests/docs carries out their commands, as those of the pages.
"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from guieval.assistants.commands.skill import SKILLS
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY
from tests.rows import every_row

NAMES = sorted(folder.name for folder in SKILLS.iterdir())
LINK = re.compile(r"\]\(([^)#]+)\)")


def text_of(name: str) -> str:
    return (SKILLS / name / "SKILL.md").read_text(encoding="utf-8")


@every_row("name", NAMES)
def test_a_skill_says_its_name_and_when_it_is_used_and_is_short(name: str) -> None:
    """An agent loads a skill by its description alone, and skips one whose name is not the folder's."""
    text = text_of(name)
    front = yaml.safe_load(text.split("---\n")[1])
    assert front.keys() == {"name", "description"} and front["name"] == name
    assert "Use when" in front["description"] and len(front["description"]) <= 1024
    assert text.count("\n") < 200


@every_row("name", NAMES)
def test_every_reference_is_linked_and_every_link_leads_to_a_file(name: str) -> None:
    links = {link for link in LINK.findall(text_of(name)) if "://" not in link}
    assert links == {path.relative_to(SKILLS / name).as_posix() for path in (SKILLS / name).glob("references/*")}


@every_row("name", NAMES)
def test_every_file_of_the_repository_that_a_skill_names_exists(name: str) -> None:
    pages = [path.read_text(encoding="utf-8") for path in (SKILLS / name).rglob("*.md")]
    named = {path for page in pages for path in re.findall(r"`((?:docs|model_adapters|configs)/[\w./-]+)`", page)}
    assert named and [path for path in named if "NAME" not in path and not (REPOSITORY / path).exists()] == []


def test_skills_are_listed_and_printed_with_their_references(guieval: CommandLine) -> None:
    listed = [line for line in guieval("dev", "skill").out.splitlines() if not line.startswith(" ")]
    assert [line.partition(":")[0] for line in listed] == NAMES
    printed = guieval("dev", "skill", NAMES[0]).out
    pages = [path.read_text(encoding="utf-8") for path in (SKILLS / NAMES[0]).rglob("*.md")]
    assert len(pages) > 1 and all(page in printed for page in pages)


def test_skills_are_written_as_they_are_and_again_over_an_earlier_version(guieval: CommandLine, tmp_path: Path) -> None:
    for _ in range(2):
        done = guieval("dev", "skill", "--out", tmp_path)
        assert done.code == 0 and done.out.count("written:") == len(NAMES)
        written = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.md")}
        assert written == {path.relative_to(SKILLS): path.read_bytes() for path in SKILLS.rglob("*.md")}
        (tmp_path / NAMES[0] / "SKILL.md").write_text("of an earlier version", encoding="utf-8")


def test_a_folder_that_is_no_skill_is_left_as_it_is(guieval: CommandLine, tmp_path: Path) -> None:
    (tmp_path / NAMES[0]).mkdir()
    (tmp_path / NAMES[0] / "mine.txt").write_text("mine", encoding="utf-8")
    assert "exists and is no skill" in guieval.sentence("dev", "skill", NAMES[0], "--out", tmp_path)
    assert [path.name for path in (tmp_path / NAMES[0]).iterdir()] == ["mine.txt"]


def test_an_unknown_skill_is_answered_with_the_nearest(guieval: CommandLine) -> None:
    assert "(did you mean 'evaluate-gui-model'?)" in guieval.sentence("dev", "skill", "evaluate-gui-modle")
