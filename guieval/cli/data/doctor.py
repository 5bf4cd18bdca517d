"""``guieval doctor``: what is installed, what is in a benchmark's data folder, and what an environment still needs."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from packaging.requirements import Requirement

from guieval.cli import options
from guieval.cli.settings import path_option
from guieval.cli.tables import JSON, echo, print_json, say, show
from guieval.data.benchmark import ABCBenchmark
from guieval.data.doctor.counts import counted
from guieval.data.doctor.examine import Examination, examine
from guieval.data.doctor.statistics import Statistics, statistics
from guieval.data.overlays import Overlaid, read_overlay
from guieval.data.shipped import __version__
from guieval.engines.vllm.causes import missing_packages
from guieval.errors import NoServer, UsageError, refuse
from guieval.evaluation import list_protocols
from guieval.evaluation.label_cost import cost
from guieval.metrics.rounding import percentage
from guieval.online.find import check_bench, environments, load_environment
from guieval.registry import benchmarks, list_adapters, list_benchmarks, list_models
from guieval.reports.plots.datasets import dataset
from guieval.reports.plots.paper import Width, check_file, write
from guieval.reports.tables.table import Cell, Table, columns
from guieval.settings import Cache

MOST_VALUES = 12
"""Of a label with more values than this, only their number is printed."""


def doctor(
    bench: Annotated[
        str | None, typer.Argument(help="Check this benchmark's data folder, or what this environment needs.")
    ] = None,
    data: options.Data = None,
    overlay: Annotated[Path | None, path_option("A file of further accepted actions, to be checked too.")] = None,
    sample_set: options.SampleSet = None,
    override: options.LoaderOptions = None,
    figures: Annotated[
        bool,
        typer.Option(
            "--statistics", help="Print apps, lengths, boxes, instructions and actions; no screenshot or label is checked."
        ),
    ] = False,
    plot: options.Picture = None,
    width: options.Width = "column",
    json: JSON = False,
) -> None:
    """Say what is installed; with a benchmark, count its steps and look for damage and questionable labels; with an
    environment, say what is missing to run it, e.g. KVM, Docker, an image or a server.

    The exit code is 1 when there is an error: damaged rows or images, images of another size, some but not all missing;
    or when an environment needs anything.
    """
    if bench is None:
        given = {"data": data, "overlay": overlay, "sample-set": sample_set, "plot": plot}
        refuse(given | {"statistics": figures or None}, "needs the name of the benchmark: guieval doctor BENCH --data DIR")
        _installation(json=json)
        return

    check_bench(bench)
    kind = benchmarks().get(bench)
    if kind is None:
        refuse(
            {"data": data, "overlay": overlay, "sample-set": sample_set, "statistics": figures or None, "plot": plot},
            f"is of recorded steps, and {bench!r} is an environment",
        )
        _environment(bench, options.loader_options(override or ()), json=json)
        return
    if kind is not None and not kind.needs_data and data is not None and not data.is_dir():  # opening it would create it
        raise UsageError(f"the data folder {str(data)!r} does not exist; without --data, {bench!r} draws its own")
    benchmark = options.open_benchmark(bench, data, override)
    if figures:
        refuse({"overlay": overlay}, "is checked without --statistics")
        _statistics(benchmark, sample_set, plot, options.check_width(width), json=json)
        return
    refuse({"plot": plot}, "draws what --statistics prints: add --statistics")
    if overlay is not None:
        benchmark = Overlaid(benchmark, read_overlay(overlay))
    found = examine(benchmark, sample_set, cost)
    if json:
        print_json(found.to_json())
    else:
        _print_examination(found)
    if found.of("error"):
        raise typer.Exit(1)


def _environment(name: str, given: Mapping[str, Any], *, json: bool) -> None:
    """Say what is missing to act in an environment; the exit code is 1 if anything is."""
    missing, tasks = list(environments()[name].lacks(given)), None
    try:
        tasks = len(load_environment(name, **given).tasks())
    except NoServer as error:
        missing += [] if missing else [str(error)]  # what is missing says why
    except UsageError as error:
        missing.append(str(error))
    if json:
        print_json({"environment": name, "missing": missing, "tasks": tasks})
    else:
        say(
            f"{name}: "
            + (f"not ready, {counted(len(missing), 'thing')} missing" if missing else f"ready, {counted(tasks or 0, 'task')}")
        )
        for line in missing:
            say(f"  {line}")
    if missing:
        raise typer.Exit(1)


def _statistics(benchmark: ABCBenchmark, sample_set: str | None, plot: Path | None, width: Width, *, json: bool) -> None:
    if plot is not None:
        check_file(plot)
    found = statistics(benchmark, sample_set)
    if json:
        print_json({"benchmark": benchmark.name, "folder": str(benchmark.root), **found.to_json()})
    else:
        _print_statistics(benchmark.name, benchmark.root, found)
    if plot is not None:
        write(dataset(found, width), plot)
        echo(f"picture:  {plot}", err=json)


def _installation(*, json: bool) -> None:
    if json:
        names = {"models": list_models(), "families": list_adapters(), "benchmarks": list_benchmarks()}
        machine = {"version": __version__, "python": platform.python_version(), "platform": platform.platform()}
        found = {"requirements": [*_requirements(), *missing_packages()], "transformers": _of_transformers()}
        print_json({**machine, **found, **names, "protocols": list_protocols()})
        return
    say(f"guieval {__version__}, Python {platform.python_version()}, {platform.platform()}")
    for line in (*_requirements(), *missing_packages()):
        say(f"  {line}")
    if of_transformers := _of_transformers():
        values = (f"{name} {' or '.join(each)}" for name, each in of_transformers.items())
        say(f"  engine transformers: {', '.join(values)}; auto or the default is the first")
    say(f"{len(list_models())} models of {len(list_adapters())} families, {len(list_benchmarks())} benchmarks:")
    say(f"  benchmarks: {', '.join(list_benchmarks())}")
    say(f"  protocols:  {', '.join(list_protocols())}")


def _of_transformers() -> dict[str, list[str]]:
    """The values that settings of engine transformers may have on this machine; none if its packages are missing."""
    if not (find_spec("torch") and find_spec("transformers")):
        return {}
    from guieval.engines.in_process.attention import installed

    return {"attention": installed(), "cache": list(get_args(Cache)), "batch_size": ["8 (on a CPU 1)", "another number"]}


def _requirements() -> Iterator[str]:
    """Each package that this Python needs, with the extras that ask for it and its version."""
    extras = metadata("guieval").get_all("Provides-Extra") or []
    needed: dict[str, list[str]] = {}
    for requirement in map(Requirement, requires("guieval") or []):
        asking = [""] if requirement.marker is None else ["", *extras]
        fitting = [each for each in asking if requirement.marker is None or requirement.marker.evaluate({"extra": each})]
        if fitting and requirement.name != "guieval":  # an extra of several others
            needed.setdefault(requirement.name, []).extend([] if "" in fitting else fitting)
    for name, asking in needed.items():
        label = f"{name} (extra {', '.join(asking)})" if asking else name
        try:
            yield f"{label} {version(name)}"
        except PackageNotFoundError:
            how = f"'guieval[{asking[0]}]'" if asking else "guieval"
            yield f"{label} is not installed: pip install {how}"


def _print_examination(found: Examination) -> None:
    whole = found.whole
    say(f"{found.benchmark} at {found.folder}")
    parts = ((whole.episodes, "episode"), (whole.steps, "step"), (found.screenshots, "screenshot"))
    say(", ".join(counted(number, noun) for number, noun in parts) + " named")
    if len(found.parts) > 1:
        types = [name for name, _ in whole.types.most_common()]
        rows: list[tuple[Cell, ...]] = [
            (split, subset or "-", part.episodes, part.steps, *(part.types[name] for name in types))
            for (split, subset), part in found.parts.items()
        ]
        show(Table("", columns("split", "subset", "episodes", "steps", *types, keys=2), tuple(rows), keys=2))
    else:
        for split, subset in found.parts:
            say(f"split:   {split}" + (f", subset {subset}" if subset else ""))
        say(f"actions: {_shares(whole.types, whole.steps)}")
    if found.edition is not None and not found.edition.line:
        say(f"labels:  digest {found.edition.digest}")
    boxes = (f"{number:,} {name} on {counted(steps, 'step')}" for name, (number, steps) in found.boxes.items() if number)
    say(f"boxes:   {', '.join(boxes) or 'neither targets nor elements'}")
    for name, values in found.groups.items():
        few = len(values) <= MOST_VALUES
        say(f"{name}: {_shares(values, whole.steps) if few else f'{len(values):,} different values'}")
    for remark in found.remarks:
        say(f"{remark.weight}: {remark.what}")
        if remark.why:
            say(f"  why it matters: {remark.why}")
        for example in remark.examples:
            say(f"    {example}")
    numbers = [len(found.of("error")), len(found.of("warning"))]
    words = [
        f"{number or 'no'} {word}{'s' * (number != 1)}" for number, word in zip(numbers, ("error", "warning"), strict=True)
    ]
    say(f"{', '.join(words)}, in {found.seconds:.1f} s")


def _print_statistics(name: str, folder: Path, found: Statistics) -> None:
    episodes, steps = counted(found.episodes, "episode"), counted(found.steps, "step")
    say(f"{name} at {folder}")
    say(f"tasks:    {episodes} of {steps}, {found.mean_steps:.2f} steps on average")
    say(f"apps:     {len(found.apps):,}" + ("" if found.apps else ", since no label names one"))
    if found.clicks:
        say(
            f"boxes:    a target on {found.boxed:,} of {counted(found.clicks, 'click')} ({_percent(found.boxed, found.clicks)})"
        )
    say(f"screens:  their elements on {found.documented:,} of {steps} ({_percent(found.documented, found.steps)})")
    say(f"level:    {found.level}; {found.described:,} of {steps} have an instruction of their own")
    say(f"language: Chinese characters in {found.chinese:,} of {episodes}")
    if found.extras:
        say(f"further data of a step: {_shares(found.extras, found.steps)}")
    types = tuple((kind, count, _percent(count, found.steps)) for kind, count in found.types.most_common())
    lengths = tuple(
        (str(steps), found.lengths[steps], _percent(found.lengths[steps], found.episodes)) for steps in sorted(found.lengths)
    )
    categories = tuple(
        (category, len(found.categories[category]), count, _percent(count, found.episodes))
        for category, count in found.category_episodes.most_common()
    )
    say("")
    show(
        Table("actions", columns("type", "steps", "share"), types),
        Table("lengths of episodes", columns("steps", "episodes", "share"), lengths),
        Table("categories of apps", columns("category", "apps", "episodes", "share"), categories) if categories else None,
    )
    if found.damaged:
        say(f"{counted(found.damaged, 'damaged episode')} not counted: guieval doctor {name} --data {folder} names them")


def _percent(count: int, of: int) -> str:
    return f"{percentage(count / of, '.1f')}%"


def _shares(counts: Counter[str], steps: int) -> str:
    return ", ".join(f"{name} {count:,} ({percentage(count / steps, '.1f')}%)" for name, count in counts.most_common())
