"""``guieval dev new-adapter``: write a model family to begin with, complete and tested, as the README shows it."""

from __future__ import annotations

import keyword
import re
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli.settings import path_option
from guieval.cli.tables import echo, say
from guieval.data.files import read_text
from guieval.errors import UsageError
from guieval.registry import list_adapters

TEMPLATES = Path(__file__).parent / "templates"
NAME = "my_agent"
"""The names of the templates, and the README's example."""


def new_adapter(
    name: Annotated[str, typer.Argument(help="The new family, e.g. my_agent: a Python module's name.")],
    out: Annotated[Path | None, path_option("Folder to write to; default: the current one.")] = None,
) -> None:
    """Write NAME.py, a working adapter, and its test, test_NAME.py; existing files are not overwritten."""
    _check_spelling(name)
    folder = out if out is not None else Path(".")
    adapter, test = folder / f"{name}.py", folder / f"test_{name}.py"
    if (folder / "__init__.py").exists():
        raise UsageError(
            f"{str(folder)!r} is a Python package, in which a test could count as a plug-in; write to another folder"
        )
    for file in (adapter, test):
        if file.exists() or file.is_symlink():
            raise UsageError(f"{str(file)!r} exists already, and is not overwritten")
    _check_free(name)
    sources = adapter_source(name), source_of_test(name)
    folder.mkdir(parents=True, exist_ok=True)
    for file, source in zip((adapter, test), sources, strict=True):
        with file.open("x", encoding="utf-8") as opened:
            opened.write(source)
    shown, tested = shlex.quote(str(adapter)), shlex.quote(str(test))
    served = f"--model my-model --adapter {shown}"
    say(f"{adapter}: a working adapter; change its prompt, its coordinate frame and what it parses")
    say(f"{test}: its test")
    echo(f"next: python -m pytest {tested}")
    echo(f"      guieval dev check {shown}")
    echo(f"      guieval dev mock-server {served} &")
    echo(f"      guieval run {served} --bench demo --base-url http://127.0.0.1:8000/v1")


def adapter_source(name: str) -> str:
    """The adapter's file for a family called ``name``."""
    return _filled("my_agent.py.txt", name)


def source_of_test(name: str) -> str:
    """The test's file for a family called ``name``."""
    return _filled("test_my_agent.py.txt", name)


def _filled(template: str, name: str) -> str:
    text = read_text(TEMPLATES / template)
    title = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    if name != NAME and re.search(rf"\b{title}\b", text):  # e.g. click: the file imports a class of that name
        title += "Model"
    return text.replace(NAME, name).replace("MyAgent", title)


def _check_spelling(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        better = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
        hint = f", e.g. {better!r}" if re.fullmatch(r"[a-z][a-z0-9_]*", better) and not keyword.iskeyword(better) else ""
        raise UsageError(f"{name!r} is not a name for a Python module: use small letters, digits and underscores{hint}")
    if name.startswith("test_"):
        raise UsageError(f"{name!r} is the name of a test; call the family {name.removeprefix('test_')!r}")


def _check_free(name: str) -> None:
    if name in list_adapters():
        raise UsageError(f"there is a model family {name!r} already; `guieval models` lists the checkpoints of each")
    if find_spec(name) is not None:  # Python finds the file next to a test first
        raise UsageError(f"a module called {name!r} would hide another of that name; call it {name + '_agent'!r}")
