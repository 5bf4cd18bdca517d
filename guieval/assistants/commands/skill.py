"""``guieval dev skill``: the skills of this version, which are files of this package, so that none describes another one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli.settings import path_option
from guieval.cli.tables import print_text, say
from guieval.data.files import read_text
from guieval.errors import UsageError, known_name

SKILLS = Path(__file__).parents[1] / "skills"


def skill(
    name: Annotated[str | None, typer.Argument(help="The skill to print, with its references; none: list all.")] = None,
    out: Annotated[
        Path | None,
        path_option("Write it, or all, below this folder as NAME/SKILL.md, e.g. .agents/skills."),
    ] = None,
) -> None:
    """Print the skills of this version, instructions for coding agents, or write them where an agent looks for them."""
    known = [folder.name for folder in sorted(SKILLS.iterdir()) if (folder / "SKILL.md").is_file()]
    chosen = known if name is None else [known_name("skill", name, known)]
    if out is not None:
        for each in chosen:
            say(f"written: {_write(each, out)}")
    elif name is None:
        for each in known:
            say(f"{each}: {described(each)}")
    else:
        print_text("\n".join(_pages(name)))


def described(name: str) -> str:
    """What a skill is for, from its front matter, on one line."""
    import yaml

    description: str = yaml.safe_load(read_text(SKILLS / name / "SKILL.md").split("---\n")[1])["description"]
    return description


def _pages(name: str) -> Iterator[str]:
    yield read_text(SKILLS / name / "SKILL.md")
    for page in sorted((SKILLS / name).glob("references/*.md")):
        yield f"<!-- {page.relative_to(SKILLS / name).as_posix()} -->\n{read_text(page)}"


def _write(name: str, out: Path) -> Path:
    """Write a skill, in place of one of an earlier version; :class:`UsageError` if the folder is not such a skill."""
    folder = out / name
    if folder.is_symlink() or (folder.exists() and not (folder / "SKILL.md").is_file()):
        raise UsageError(f"{str(folder)!r} exists and is no skill: expected a folder with SKILL.md, or none")
    shutil.copytree(SKILLS / name, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "SKILL.md"
