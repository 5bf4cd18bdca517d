"""``guieval dev check``: the conformance suites, over shipped and foreign plug-ins alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from guieval.cli.options import loader_options
from guieval.cli.tables import say
from guieval.conformance import Violation, check_adapter, check_benchmarks, every_model
from guieval.conformance.environments import check_environment
from guieval.errors import UsageError, nearest
from guieval.online.find import environments, load_environment
from guieval.registry import list_adapters, list_benchmarks, list_models, load_model


def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Benchmarks, environments, checkpoints or model families; default: all but environments."
        ),
    ] = None,
    override: Annotated[
        list[str] | None, typer.Option("--set", help="Option of the environment that is checked, e.g. url=ws://127.0.0.1:8000.")
    ] = None,
) -> None:
    """Test benchmarks, environments and model adapters against the contracts they must keep.

    No data is needed: a benchmark is tested on an example it writes itself, an adapter on made-up steps, an
    environment on three of its tasks. The exit code
    is 1 when a contract is broken.
    """
    options = loader_options(override or ())
    if options and [name in environments() for name in names or []] != [True]:
        raise UsageError("--set is for the options of one environment: name it, and nothing else")
    broken = 0
    for name, findings in _checked(names or [], options):
        say(f"{name}: " + (_problems(len(findings)) if findings else "conforms"))
        for finding in findings:
            say(f"  {finding.check}: {finding.message}")
        broken += len(findings)
    if broken:
        say(f"in all: {_problems(broken)}")
        raise typer.Exit(1)
    say("no problem found")


def _problems(count: int) -> str:
    return "1 problem" if count == 1 else f"{count:,} problems"


def _checked(names: Sequence[str], options: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[Violation]]]:
    loaders, checkpoints, families, places = list_benchmarks(), list_models(), list_adapters(), list(environments())
    known = [*loaders, *checkpoints, *families, *places]
    for name in names:
        if name not in known and not name.endswith(".py"):
            raise UsageError(
                f"there is no benchmark, environment, checkpoint or model family {name!r}{nearest(name, known)}; "
                "`guieval benchmarks` and `guieval models` list them"
            )
    for name in dict.fromkeys(names or loaders):
        if name in loaders and not options:
            yield f"benchmark {name}", check_benchmarks([name])
        if name in checkpoints:
            yield from ((f"model {each}", check_adapter(model, each)) for each, model in every_model([name]))
        elif name in families or name.endswith(".py"):
            yield f"adapter {name}", check_adapter(load_model(name, adapter=name), name)
        if name in places and names:
            yield f"environment {name}", check_environment(load_environment(name, **options))
    if not names:
        yield from ((f"model {each}", check_adapter(model, each)) for each, model in every_model())
