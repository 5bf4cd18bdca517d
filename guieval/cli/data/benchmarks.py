"""``guieval benchmarks``: the benchmarks that can be loaded by name, and the environments to act in."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Annotated

import typer

from guieval.cli.data.download import downloads
from guieval.cli.tables import say, show
from guieval.data.benchmark import ABCBenchmark, PublishedCount
from guieval.data.doctor.counts import size_of
from guieval.data.editions import known_editions
from guieval.data.plugin_options import option_names
from guieval.online import ABCEnvironment
from guieval.online.find import environments
from guieval.registry import benchmark_class, list_benchmarks
from guieval.reports.tables.table import Column, Table, columns
from guieval.settings.fields import NOT_OPTIONS


def benchmarks(name: Annotated[str | None, typer.Argument(help="Show this benchmark in full.")] = None) -> None:
    """List benchmarks with published counts, licence and default protocol, or show one in full."""
    if name is None:
        heads = columns("benchmark", "title", "episodes", "steps", folds=("title",), spare=("title",))
        texts = (Column("licence", right=False, folds=True, spare=2), Column("protocol", right=False))
        show(
            Table("", (*heads, *texts), tuple(_row(benchmark_class(each)) for each in list_benchmarks())),
            full="A wider terminal shows all.",
        )
        say("`guieval benchmarks NAME` shows where to get one, how it is laid out and what its labels mean.")
        for mode in dict.fromkeys(sorted((kind.mode for kind in environments().values()), reverse=True)):
            kinds = {name: kind for name, kind in environments().items() if kind.mode == mode}
            names = (name if kind.tried else f"{name} (untested)" for name, kind in kinds.items())
            say(f"Environments, for --mode {mode}: {', '.join(names)}.")
        return
    known = environments()
    lines = [] if name in known and name not in list_benchmarks() else [*benchmark_details(benchmark_class(name)), ""]
    lines = [*lines, *environment_details(known[name])] if name in known else lines[:-1]
    for line in lines:
        say(line)


def _row(kind: type[ABCBenchmark]) -> tuple[str, ...]:
    first = kind.published[0] if kind.published else None  # authors list first what is usually evaluated
    sizes = (None, None) if first is None else (first.episodes, first.steps)
    episodes, steps = ("-" if number is None else f"{number:,}" for number in sizes)
    return kind.name, kind.title, episodes, steps, kind.licence or "-", kind.protocol


def benchmark_details(kind: type[ABCBenchmark]) -> Iterator[str]:
    """The lines that ``guieval benchmarks NAME`` prints for a benchmark."""
    yield f"{kind.name}: {kind.title}"
    space = kind.action_space
    facts = {
        "source": kind.source,
        "paper": kind.paper,
        "licence": kind.licence,
        "data set": kind.dataset,
        "setting": kind.setting,
        "protocol": f"{kind.protocol} (used when none is given; `guieval protocols {kind.protocol}` shows its rules)",
        "actions": ", ".join(sorted(space.types)),
        "options": ", ".join(_options(kind)) or "none",
        "data": f"--data DIR, {'needed' if kind.needs_data else 'not needed: it makes its own'}",
    }
    yield from (f"{title + ':':10}{value}" for title, value in facts.items() if value)
    if kind.name in (known := downloads()):
        size = known[kind.name].gigabytes
        yield f"{'download:':10}guieval data download {kind.name} --out DIR" + (f" (about {size:g} GB)" if size else "")
    if kind.needs_data:
        yield f"{'prepare:':10}guieval data prepare {kind.name} --source RELEASE --out DIR, if the release is not read in place"
        yield f"{'check:':10}guieval doctor {kind.name} --data DIR"
    if known_editions(kind.dataset):
        yield f"{'editions:':10}{', '.join(each.name for each in known_editions(kind.dataset))} (docs/benchmarks.md)"
    if kind.published:
        yield "published counts:"
    for count in kind.published:
        yield f"  {count.name}: {_counted(count)} ({count.source})"
    for text in (inspect.getdoc(kind), inspect.getdoc(inspect.getmodule(kind))):
        if text:
            yield ""
            yield _plain(text)


def environment_details(kind: type[ABCEnvironment]) -> Iterator[str]:
    """The same for an environment."""
    yield f"{kind.name}: {kind.title}, an environment (--mode {kind.mode})"
    yield f"{'source:':10}{kind.source}"
    yield f"{'licence:':10}{kind.licence or '-'}"
    yield f"{'options:':10}{', '.join(_options(kind)) or 'none'}"
    if not kind.tried:
        yield f"{'untested:':10}it was run with a stand-in of its published interface, never with the real one"
    if "allow_network" in option_names(kind):
        yield f"{'network:':10}pages reach this machine only; with --allow-network other hosts too"
    if text := inspect.getdoc(kind):
        yield ""
        yield _plain(text)


def _plain(text: str) -> str:
    """A docstring with a line for each paragraph and item of a list, without marks of reStructuredText for code and names."""
    lines = re.sub(r"(?<=\S)\n {0,2}(?![\s*-])", " ", text)
    return re.sub(r"(?::\w+:)?(`+)[.~]*([^`]+)\1", r"\2", lines)


def _counted(count: PublishedCount) -> str:
    types = ", ".join(f"{name} {number:,}" for name, number in count.types.items() if number)
    return size_of(count) + (f": {types}" if types else "")


def _options(kind: type[ABCBenchmark] | type[ABCEnvironment]) -> Iterator[str]:
    """The options of a loader with their defaults, as ``--set`` or :func:`guieval.load_benchmark` takes them."""
    for each in inspect.signature(kind.__init__).parameters.values():
        if each.kind is inspect.Parameter.KEYWORD_ONLY and each.name not in NOT_OPTIONS:
            yield f"{each.name}={each.default!r}"
