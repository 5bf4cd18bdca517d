"""What helps before a run: the version, help, names completed by the shell, settings, and Python with the commands' names."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from inspect import Parameter, signature
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from typer.core import TyperOption

import guieval
from guieval import __version__, cli
from guieval.cli import place_of
from guieval.cli.help_panels import COMMANDS, panels
from guieval.cli.settings import RUN, run_panels
from guieval.registry import list_models
from guieval.running.keywords import RunSettings
from guieval.settings import GROUPS, SETTINGS
from guieval.settings.sampling import SamplingSettings
from tests.command_line import CommandLine
from tests.rows import every_row

FORMER = {
    "data": "import export export-results push prepare download record sample-sets",
    "study": "rollout mix decisions consistency correlate power select fit-scaling thoughts judge",
    "train": "evaluate-training export-training probe-reward",
    "dev": "audit audit-engine check new-adapter prompt mock-server serve-environment help-config scaffolds",
}
"""The commands that once were in no group."""


@every_row("command", ["", *cli.GROUPS, *sorted(cli.COMMANDS)])
def test_h_is_help_everywhere(guieval: CommandLine, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = guieval(*command.split(), "-h")
    assert done.code == 0 and f"{' '.join(['guieval', *command.split()])} [" in done.out and done.err == ""
    assert max(map(len, done.out.splitlines())) <= 80
    for paragraph in re.split(r"\n\s*\n", done.out.split("╭")[0].split("Usage: ")[1].strip())[1:]:
        lines = [line.strip() for line in paragraph.splitlines()]
        for line, after in pairwise(lines):
            assert len(f" {line} {after.split()[0]}") > 79, line
    if not command or command in cli.GROUPS:
        assert guieval(*command.split()).out == done.out
        listed = re.findall(r"^│ ([a-z]\S+) ", done.out, re.MULTILINE)
        below = [name.split()[-1] for name in cli.COMMANDS if name.split()[:-1] == command.split()]
        assert listed == [*below, *([] if command else cli.GROUPS)]


def test_an_old_name_or_a_wrong_one_is_one_sentence_with_the_right_one(guieval: CommandLine) -> None:
    for group, old in ((group, old) for group, names in FORMER.items() for old in names.split()):
        new = f"{group} {old.removesuffix('-training')}"
        assert guieval.sentence(old, "--json") == f"guieval: there is no `guieval {old}`: it is `guieval {new}`\n"
    for wrong, near in {"mixx": "study mix", "data mixx": "study mix", "scor": "score", "studdy mix": "study"}.items():
        assert f"; did you mean `guieval {near}`?" in guieval.sentence(*wrong.split())
    assert "it is `guieval run`" in guieval.sentence("study", "run")
    assert "`guieval dev --help` lists them" in guieval.sentence("dev", "xyz")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_command_is_in_a_panel(guieval: CommandLine, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    placed = {name for names in panels().values() for name in names}
    assert {option.name for option in cli.load(command).params} <= placed
    monkeypatch.setenv("COLUMNS", "80")
    shown = guieval(*command.split(), "--help").out
    heads = [line.split("─ ")[1].split(" ─")[0] for line in shown.splitlines() if line.startswith("╭")]
    assert heads == ["Options", *(panel for panel in panels() if panel in heads)] and len(heads) > 4
    assert max(map(len, shown.splitlines())) <= 80


def test_an_option_states_what_its_setting_means_and_by_which_name_it_is_set() -> None:
    named = [name for names in run_panels().values() for name in names]
    options = {option.name: option for option in cli.load("run").params if isinstance(option, TyperOption)}
    assert len(SETTINGS) == sum(len(group.model_fields) for group in GROUPS.values()), "an own name is of one setting"
    for name in named:
        shown, meaning = options[RUN.option(name)].help, RUN.fields[name].field.description
        assert name == "mode" or (shown and meaning and shown[1:].startswith(meaning[1:]))
    assert options["base_url"].multiple and not options["seed"].multiple
    # no name in a panel is of no command
    known = {option.name for command in COMMANDS for option in cli.load(command).params}
    assert {name for names in panels().values() for name in names} == known


def test_the_shell_completes_commands_and_names(guieval: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_GUIEVAL_COMPLETE", "complete_bash")
    monkeypatch.setattr(sys.modules["__main__"], "__package__", None)  # else the program's name is that of `python -m pytest`

    def completed(line: str) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        return guieval().out.split()

    assert completed("guieval lead") == ["leaderboard"] and completed("guieval st") == ["step", "study"]
    assert completed("guieval study m") == ["mix"]
    assert completed("guieval run --model ui-s1") == [name for name in list_models() if name.startswith("ui-s1")]
    assert "screenspot-pro" in completed("guieval data prepare screens")
    assert completed("guieval protocols ui-s1-reward") == ["ui-s1-reward-match", "ui-s1-reward"]


def test_completion_stays_out_of_options_and_there_is_a_version(guieval: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    # the shell is named here, since where tests run without one Typer detects none
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    shown = guieval("--help").out
    assert shown.count("--install-completion") == 1 and "--show-completion" not in shown  # named in the last line
    assert "_COMPLETE=complete_bash" in guieval("--show-completion", "bash").out
    assert guieval("--version").out == f"guieval {__version__}\n"


def test_help_config_lists_every_setting_within_the_width(guieval: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = {each["setting"]: each for each in json.loads(guieval("dev", "help-config", "--json").out)["settings"]}
    assert listed.keys() >= SETTINGS.keys()
    assert listed.keys() >= {f"sampling.{name}" for name in SamplingSettings.model_fields}
    assert listed.keys() >= {"mix.kappa", "vllm.start_timeout", "project", "resampling.top_k"}
    assert all(each["description"] and each["type"] for each in listed.values())
    assert listed["max_attempts"]["type"] == "whole number from 1 to 100" and listed["max_attempts"]["default"] == 5
    assert listed["sampling.top_p"]["type"] == "number above 0 to 1"
    assert listed["sampling.stop"]["type"] == "text or list of texts"
    names = [each["setting"] for each in json.loads(guieval("dev", "help-config", "tracking", "--json").out)["settings"]]
    assert names[:4] == ["track", "project", "name", "uri"]
    assert "did you mean 'sampling'" in guieval.sentence("dev", "help-config", "samplin")
    for width in (80, 120):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = guieval("dev", "help-config").out.splitlines()
        assert max(map(len, lines)) <= width
        assert any(line.startswith("sampling.temperature ") and "number from 0" in line for line in lines)


def test_a_folder_here_hides_no_shipped_file(guieval: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()
    # the file names the model, so a mistake in something else shows that it was read
    assert "did you mean 'ui-s1-sop'?" in guieval.sentence("run", "--config", "demo", "--protocol", "ui-s1-so")


FUNCTIONS = ["run", "campaign", "compare", "leaderboard", "plot", "view", "dev audit"]
FUNCTIONS += ["study rollout", "study mix", "study power"]
"""The commands that are functions too, named by the last word."""
ONLY_PRINTING = {"json", "quiet", "dry_run", "pace", "list_references", "progress", "announce"}
"""What says how a command, or a function, shows what it does, and nothing else."""
ELSEWHERE = {"set": ("bench_options", "options")}
"""Options that Python has under other names; of a run, ``set`` is all its settings."""
AS_TEXT = {"seeds", "pair"}
"""Options whose values are numbers in Python, and texts with commas or colons on the command line."""
ONLY_COMMANDS = {"parallel"}
"""Options that start further commands."""
REPEATED = {("study rollout", "bench")}
"""Options of a command that does one after the other what a call of the function does once."""
SCALARS = {int, float, bool, Path, str}


def parts(annotation: Any) -> Iterator[Any]:
    """The types that an annotation is made of; of a literal, those of its values."""
    yield get_origin(annotation) or annotation
    for part in get_args(annotation):
        yield from ([type(part)] if get_origin(annotation) is Literal else parts(part))


def of_command(name: str) -> Iterator[tuple[str, Any]]:
    """The arguments and options of a command, as Python would name them, with their types."""
    module, function = place_of(name)
    for each in signature(getattr(import_module(module), function), eval_str=True).parameters.values():
        kind, mark = get_args(each.annotation)
        decls = [decl for decl in (mark.default, *(mark.param_decls or ())) if str(decl).startswith("--")]
        yield (decls[0].partition("/")[0].removeprefix("--").replace("-", "_") if decls else each.name), kind


def of_function(name: str) -> Mapping[str, Any]:
    """The arguments of a function with their types, and the settings of runs if it takes them."""
    function = getattr(guieval, name)
    hints, parameters = get_type_hints(function), signature(function).parameters.values()
    own = {each.name: hints[each.name] for each in parameters if each.kind is not Parameter.VAR_KEYWORD}
    several: Any = Sequence
    own |= {each.name: several[own[each.name]] for each in parameters if each.kind is Parameter.VAR_POSITIONAL}
    return own if len(own) == len(parameters) else {**get_type_hints(RunSettings), **own}


def differences(command: str, function: str) -> Iterator[str]:
    python, options = of_function(function), dict(of_command(command))
    of_runs = set(RunSettings.__annotations__) if "sampling" in python else set()
    for name, kind in options.items():
        if name in ONLY_PRINTING | ONLY_COMMANDS or (name == "set" and of_runs):
            continue
        if missing := {*ELSEWHERE.get(name, (name,))} - python.keys():
            yield f"guieval.{function} has no {', '.join(missing)}"
        elif name not in {*ELSEWHERE, *AS_TEXT} and (command, name) not in REPEATED:
            given, held = set(parts(kind)), set(parts(python[name]))
            if not given & held & SCALARS or (list in given) != (Sequence in held):
                yield f"guieval {command} has --{name} {kind}, and guieval.{function} {name}: {python[name]}"
    taken = {*options, *ONLY_PRINTING, *of_runs, *(ELSEWHERE["set"] if "set" in options else ())}
    yield from (f"guieval {command} has no --{name}" for name in python.keys() - taken)


def test_each_function_has_the_names_and_types_of_its_command() -> None:
    assert [line for command in FUNCTIONS for line in differences(command, command.split()[-1])] == []
