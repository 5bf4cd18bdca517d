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
from guieval.conformance.checkpoint_folder import CheckpointFolder
from guieval.conformance.written_adapter import GAP, IMPORTS, TEMPLATES, adapter_from
from guieval.data.files import read_text
from guieval.errors import UsageError
from guieval.registry import list_adapters

NAME = "my_agent"
"""The names of the templates, and the README's example."""


def new_adapter(
    name: Annotated[str, typer.Argument(help="The new family, e.g. my_agent: a Python module's name.")],
    out: Annotated[Path | None, path_option("Folder to write to; default: the current one.")] = None,
    files: Annotated[
        Path | None,
        path_option(
            "Folder with a checkpoint's config.json, preprocessor_config.json and chat template, and the makers' prompts as "
            "text files (system.txt, user.txt): the adapter is written from them, and says what they do not.",
            "--from",
        ),
    ] = None,
) -> None:
    """Write NAME.py, a working adapter, and its test, test_NAME.py; existing files are not overwritten."""
    _check_spelling(name)
    folder = out if out is not None else Path(".")
    found = None if files is None else CheckpointFolder.read(files).of(name)
    written = {folder / f"{name}.py": adapter_source(name, found), folder / f"test_{name}.py": source_of_test(name, found)}
    for prompt in [] if found is None else found.prompts:
        written[folder / "prompts" / f"{prompt.name}.txt"] = f"{prompt.origin}\n{prompt.text}"
    if (folder / "__init__.py").exists():
        raise UsageError(
            f"{str(folder)!r} is a Python package, in which a test could count as a plug-in; write to another folder"
        )
    for file in written:
        if file.exists() or file.is_symlink():
            raise UsageError(f"{str(file)!r} exists already, and is not overwritten")
    _check_free(name)
    for file, source in written.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as opened:
            opened.write(source)
    adapter, test = list(written)[:2]
    gaps = [(number, line.partition(GAP)) for number, line in enumerate(written[adapter].split("\n"), 1) if GAP in line]
    change = "change its prompt, its coordinate frame and what it parses"
    say(f"{adapter}: a working adapter; {change if found is None else f'{len(gaps)} things are not in the files:'}")
    for number, (_, _, gap) in gaps:
        say(f"  line {number}: {gap}", indent=4)
    say(f"{test}: its test")
    shown, tested = shlex.quote(str(adapter)), shlex.quote(str(test))
    served = f"--model my-model --adapter {shown}"
    echo(f"next: python -m pytest {tested}")
    echo(f"      guieval dev check {shown}")
    echo(f"      guieval dev mock-server {served} &")
    echo(f"      guieval run {served} --bench demo --base-url http://127.0.0.1:8000/v1")


def adapter_source(name: str, found: CheckpointFolder | None = None) -> str:
    """The adapter's file for a family called ``name``, from the files of a checkpoint if they are given."""
    template = _template("my_agent.py.txt")
    return (
        _filled(template, name)
        if found is None
        else adapter_from(name, _title(name, " ".join(sum(IMPORTS.values(), ()))), found)
    )


def source_of_test(name: str, found: CheckpointFolder | None = None) -> str:
    """The test's file for a family called ``name``."""
    return _filled(_template("test_my_agent.py.txt" if found is None else "test_from.py.txt"), name)


def _template(name: str) -> str:
    return read_text(TEMPLATES / name)


def _filled(text: str, name: str) -> str:
    return text.replace(NAME, name).replace("MyAgent", "MyAgent" if name == NAME else _title(name, text))


def _title(name: str, text: str) -> str:
    """The class's name, which is none of those in ``text``, e.g. of what the file imports."""
    title = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    return f"{title}Model" if re.search(rf"\b{title}\b", text) else title


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
