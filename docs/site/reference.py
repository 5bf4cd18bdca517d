"""The reference pages of the documentation site, written from the code that they describe.

Commands with their options, settings, benchmarks, sample sets, model families and the Python API.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from typer import Context
from typer.core import TyperCommand, TyperGroup

import guieval
from guieval.cli import COMMANDS, load
from guieval.cli.data.benchmarks import benchmark_details, environment_details
from guieval.cli.running.help_config import FREE, in_words, settings
from guieval.data.sample_sets import get_sample_set, list_sample_sets
from guieval.journal.schemas import FILES, schema
from guieval.online.find import environments
from guieval.registry import adapter_class, benchmark_class, list_benchmarks, model_configs

API = {
    "records": ("Actions, steps and frames", ("guieval.actions", "guieval.steps", "guieval.frames", "guieval.errors")),
    "benchmarks": ("Benchmarks", ("guieval.data.benchmark",)),
    "models": ("Model adapters and history", ("guieval.models", "guieval.history")),
    "evaluation": ("Evaluation", ("guieval.evaluation", "guieval.scoring.score")),
    "runs": ("Runs", ("guieval.running.api", "guieval.settings", "guieval.running.config", "guieval.reports.opened")),
    "environments": ("Environments", ("guieval.online.contract", "guieval.online.find")),
    "rewards": ("Rewards", ("guieval.rewards",)),
    "training": ("Training", ("guieval.training.config", "guieval.training.settings")),
    "conformance": (
        "Conformance suites",
        ("guieval.conformance.benchmarks", "guieval.conformance.adapters", "guieval.conformance.environments"),
    ),
}
"""The pages of the Python API: title and modules."""


LONG = ("protocols.md", "models.md", "labels.md", "reproduce.md", "reproduced.md")
"""Pages of ``docs/`` to look things up in."""


def navigation() -> dict[str, list[Any]]:
    """The part of the navigation that :func:`pages` fills."""
    commands = [{name: f"reference/commands/{page_of(name)}.md"} for name in COMMANDS]
    data = [{name: f"reference/benchmarks/{name}.md"} for name in [*list_benchmarks(), *only_environments()]]
    families = [{name: f"reference/families/{name}.md"} for name in families_of_checkpoints()]
    api = [{title: f"reference/api/{name}.md"} for name, (title, _) in API.items()]
    return {
        "Reference": [
            *LONG,
            {"Commands": ["reference/commands/index.md", *commands]},
            {"Settings": "reference/settings.md"},
            {"Python": ["reference/api/index.md", *api]},
            {"Benchmarks": ["reference/benchmarks/index.md", *data]},
            {"Sample sets": "reference/sample-sets.md"},
            {"Model families": ["reference/families/index.md", *families]},
            {"Files of a run": "reference/files.md"},
        ]
    }


def pages() -> Iterator[tuple[str, str]]:
    """Every generated page: its address below ``reference/``, without suffix, and its Markdown."""
    yield "commands/index", command_list()
    for name in COMMANDS:
        yield f"commands/{page_of(name)}", command_page(name)
    yield "settings", settings_page()
    yield "api/index", api_list()
    for name, (title, modules) in API.items():
        yield f"api/{name}", "\n\n".join([f"# {title}", *map(module_section, modules)])
    yield "benchmarks/index", benchmark_list()
    for name in list_benchmarks():
        yield f"benchmarks/{name}", text_page(name, benchmark_pages(name))
    for name in only_environments():
        yield f"benchmarks/{name}", text_page(name, environment_details(environments()[name]))
    yield "sample-sets", sample_set_page()
    yield "files", file_list()
    yield "families/index", family_list()
    for name in families_of_checkpoints():
        yield f"families/{name}", family_page(name)


def table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table; bars and line ends inside a cell do not end it."""
    lines = [list(heads), *([str(cell) for cell in row] for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in line) + " |" for line in lines)


def command_list() -> str:
    """All commands in the order of ``guieval --help``."""
    rows = ((f"[{name}]({page_of(name)}.md)", first_paragraph(load(name).help)) for name in COMMANDS)
    return (
        "# Commands\n\nEach takes `--help`. Exit codes: 0 for success, 1 for a run that is incomplete, 2 for a mistake in the "
        "call, 130 after Ctrl-C.\n\n" + table(("command", "does"), rows)
    )


def page_of(command: str) -> str:
    return command.replace(" ", "-")


def first_paragraph(text: str | None) -> str:
    return " ".join((text or "").split("\n\n")[0].split())


def command_page(name: str) -> str:
    """One command, with its subcommands."""
    command = load(name)
    parts = [f"# guieval {name}", command.help or ""]
    if isinstance(command, TyperGroup):
        if command.invoke_without_command:
            parts += options_of(command, f"guieval {name}")
        for inner_name, inner in command.commands.items():
            assert isinstance(inner, TyperCommand)
            parts += [f"## guieval {name} {inner_name}", inner.help or "", *options_of(inner, f"guieval {name} {inner_name}")]
    else:
        parts += options_of(command, f"guieval {name}")
    return "\n\n".join(parts)


def options_of(command: TyperCommand | TyperGroup, called: str) -> Iterator[str]:
    """How a command is called, its arguments, and its options by panel."""
    shown = [each for each in command.params if not getattr(each, "hidden", False) and each.name != "help"]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    words = [title(each) if each.required else f"[{title(each)}]" for each in arguments]
    if len(shown) > len(arguments):
        words.insert(0, "[OPTIONS]")
    if isinstance(command, TyperGroup):
        words.append("COMMAND")
    yield f"```text\n{' '.join([called, *words])}\n```"
    if arguments:
        yield table(("argument", "meaning"), ((f"`{title(each)}`", each.help or "") for each in arguments))
    options = [each for each in shown if each not in arguments]
    context = Context(command)
    for panel, members in groupby(options, key=lambda each: each.rich_help_panel):
        if panel:
            yield f"**{panel}**"
        yield table(("option", "takes", "default", "meaning"), (option_row(each, context) for each in members))


def title(argument: Any) -> str:
    """How an argument is shown: in capitals."""
    return str(argument.metavar or argument.name.upper())


def option_row(option: Any, context: Context) -> tuple[str, str, str, str]:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    kind = "" if option.is_flag else option.display_type(context)
    default = option.default
    empty = default is None or default is False or callable(default) or default == () or default == []
    return names, f"`{kind}`" if kind else "", "" if empty else f"`{getattr(default, 'value', default)}`", option.help or ""


def settings_page() -> str:
    """What ``guieval dev help-config`` prints."""
    rows = [(one.group, f"`{one.setting}`", in_words(one)) for one in settings()]
    free = "\n".join(f"- `{name}.NAME`: {words}." for name, words in FREE.items())
    return (
        "# Settings\n\nEvery setting of a run, as `--set NAME=VALUE` and a file for `--config` take it. `guieval dev "
        f"help-config` prints the same list.\n\n{table(('group', 'setting', 'type, default and meaning'), rows)}\n\n{free}"
    )


def api_list() -> str:
    """The public names of :mod:`guieval`, each with its page and the first sentence of its docstring."""
    homes = {name: page for page, (_, modules) in API.items() for module in modules for name in public_names(module)}
    rows = []
    for name in guieval.__all__:
        if name.startswith("__"):
            continue
        summary = first_paragraph(without_roles(inspect.getdoc(getattr(guieval, name)) or ""))
        rows.append((f"[`{name}`]({homes[name]}.md)" if name in homes else f"`{name}`", summary))
    return (
        "# Python\n\n`import guieval` has these names; the pages describe them with what else their modules offer.\n\n"
        + table(("name", "is"), rows)
    )


def public_names(module: str) -> list[str]:
    loaded = __import__(module, fromlist=["_"])
    names: list[str] = getattr(loaded, "__all__", None) or [
        name
        for name, value in vars(loaded).items()
        if not name.startswith("_") and getattr(value, "__module__", module) == module and not inspect.ismodule(value)
    ]
    return names


def module_section(module: str) -> str:
    """A directive of mkdocstrings for the public names of a module."""
    members = "".join(f"\n        - {name}" for name in public_names(module))
    return f"::: {module}\n    options:\n      members:{members}"


def benchmark_list() -> str:
    rows = (
        (f"[{name}]({name}.md)", kind.title, kind.licence or "-", f"[{kind.protocol}](../../protocols.md#{kind.protocol})")
        for name, kind in ((name, benchmark_class(name)) for name in list_benchmarks())
    )
    online = ((f"[{name}]({name}.md)", kind.title, kind.licence or "-") for name, kind in sorted(environments().items()))
    return (
        f"# Benchmarks\n\n{table(('benchmark', 'title', 'licence', 'protocol'), rows)}\n\n"
        f"## Environments\n\nFor `--mode online`.\n\n{table(('environment', 'title', 'licence'), online)}"
    )


def benchmark_pages(name: str) -> Iterator[str]:
    yield from benchmark_details(benchmark_class(name))
    if name in environments():
        yield ""
        yield from environment_details(environments()[name])


def only_environments() -> list[str]:
    return sorted(set(environments()) - set(list_benchmarks()))


def text_page(name: str, lines: Iterable[str]) -> str:
    """The text that ``guieval benchmarks NAME`` prints, as a page."""
    return f"# {name}\n\n```text\n" + "\n".join(without_roles(line) for line in lines) + "\n```"


def sample_set_page() -> str:
    sets = [get_sample_set(name) for name in list_sample_sets()]
    rows = (
        (f"`{each.name}`", ", ".join(each.datasets), f"{each.episodes:,}", f"{each.steps:,}", each.used_by) for each in sets
    )
    return "# Sample sets\n\n`--sample-set NAME` runs or scores exactly these steps.\n\n" + table(
        ("sample set", "data set", "episodes", "steps", "used by"), rows
    )


def file_list() -> str:
    """The published files of a run's folder, each with the fields of its JSON Schema."""
    parts = [
        "# Files of a run",
        "`docs/schemas` has the JSON Schema of each; [Python](../python.md) says how to read them.",
    ]
    for file in FILES:
        described = schema(file)
        rows = ((f"`{name}`", each.get("description", "")) for name, each in described["properties"].items())
        parts += [f"## {file}", without_roles(described.get("description", "")), table(("field", "is"), rows)]
    return "\n\n".join(parts)


def families_of_checkpoints() -> list[str]:
    return sorted({config.adapter for config in model_configs().values()})


def family_list() -> str:
    counted = [config.adapter for config in model_configs().values()]
    rows = (
        (
            f"[{name}]({name}.md)",
            counted.count(name),
            without_roles(first_paragraph(inspect.getdoc(inspect.getmodule(adapter_class(name))))),
        )
        for name in families_of_checkpoints()
    )
    return "# Model families\n\n" + table(("family", "checkpoints", "is"), rows)


def family_page(name: str) -> str:
    """A family: what its file says of itself, and its checkpoints."""
    kind = adapter_class(name)
    configs = sorted((each for each in model_configs().values() if each.adapter == name), key=lambda each: each.name)
    rows = ((f"`{each.name}`", each.hf_id or "", each.engine, each.frame or "") for each in configs)
    facts = [f"**{title}**: {value}" for title, value in (("Source", kind.source), ("Frame", kind.frame_source)) if value]
    return "\n\n".join(
        [
            f"# {name}",
            without_roles(inspect.getdoc(inspect.getmodule(kind)) or ""),
            *facts,
            table(("checkpoint", "Hugging Face id", "engine", "frame"), rows),
            "`guieval models CHECKPOINT` prints one with its settings, how to serve it, a prompt and a reply.",
        ]
    )


def without_roles(text: str) -> str:
    """A docstring as Markdown: references to code are code, by their last names."""
    named = re.sub(r":(?:mod|class|func|meth|attr|data):`~?([^`]+)`", lambda found: f"`{found[1]}`", text)
    return named.replace("``", "`")
