"""``guieval data sample-sets``: the named sets of steps that published numbers are over."""

from __future__ import annotations

from typing import Annotated

import typer

from guieval.cli import options
from guieval.cli.tables import JSON, print_json, say, show
from guieval.data.doctor.counts import counted
from guieval.data.sample_sets import SampleSet, get_sample_set, list_sample_sets
from guieval.data.selection import Choice, labels_of_set, select
from guieval.errors import UsageError
from guieval.registry import benchmark_class
from guieval.reports.tables.table import Table, columns


def sample_sets(
    name: Annotated[str | None, typer.Argument(help="Show one set; with --bench, check that the data fills it.")] = None,
    bench: Annotated[str | None, typer.Option(help="Only sets of this benchmark's data; with a name, check it.")] = None,
    data: options.Data = None,
    override: options.LoaderOptions = None,
    json: JSON = False,
) -> None:
    """List the named sample sets, show one, or check that a data folder fills it, label by label."""
    if (data is not None or override) and (bench is None or name is None):
        raise UsageError("--data and --set say what a set is checked against: add --bench, and the name of the set")
    if name is None:
        known = [get_sample_set(each) for each in list_sample_sets()]
        kept = [each for each in known if bench is None or (benchmark_class(bench).dataset or bench) in each.datasets]
        if json:
            print_json({"sample_sets": [each.model_dump(exclude={"ids", "without", "only"}) for each in kept]})
            return
        words = ("data set", "ids", "used by")
        heads = columns("sample set", "data set", "episodes", "steps", "ids", "used by", folds=words, spare=("used by", "ids"))
        rows = ((each.name, ", ".join(each.datasets), each.episodes, each.steps, _ids(each), each.used_by) for each in kept)
        show(Table("", heads, tuple(rows)))
        return
    sample_set = get_sample_set(name)
    if bench is None:
        if json:
            print_json(sample_set)
        else:
            _show(sample_set)
        return
    benchmark = options.open_benchmark(bench, data, override)
    selection = select(benchmark, Choice(sample_set=name))
    edition, differences = labels_of_set(benchmark, selection, sample_set)
    steps = sum(map(len, selection.plan.values()))
    if json:
        print_json(
            {
                "name": name,
                "benchmark": bench,
                "episodes": len(selection.plan),
                "steps": steps,
                "edition": edition,
                "differences": differences,
            }
        )
    else:
        say(f"{bench} fills it: {counted(len(selection.plan), 'episode')}, {counted(steps, 'step')}")
        if edition.line:
            say(f"labels:   {edition.line}")
        for difference in differences:
            say(f"differs:  {difference}")
        if sample_set.types and not differences:
            say(f"its labels are of the published types: {_types(sample_set)}")
    if differences:
        raise typer.Exit(1)


def _ids(sample_set: SampleSet) -> str:
    if not sample_set.ids:
        return "whole"
    return "in part" if sample_set.unnamed else "yes"


def _types(sample_set: SampleSet) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sample_set.types.items())


def _show(sample_set: SampleSet) -> None:
    part = [f"split {sample_set.split}"] if sample_set.split else []
    part += [f"subset {sample_set.subset}"] if sample_set.subset else []
    part += [f"{name} {value}" for name, value in sample_set.groups.items()]
    rows = {
        "title": sample_set.title,
        "data set": ", ".join(sample_set.datasets),
        "episodes": f"{sample_set.episodes:,}",
        "steps": f"{sample_set.steps:,}",
        "types": _types(sample_set),
        "takes": ("all of " + ", ".join(part or ["the data"])) if not sample_set.ids else "",
        "finish": "a finish step at the end of each episode counts" if sample_set.finish else "",
        "sha256": sample_set.sha256 or "",
        "used by": sample_set.used_by,
        "source": sample_set.source,
        "note": sample_set.note,
    }

    say(sample_set.name)
    for label, value in rows.items():
        if value:
            say(f"  {label}: {value}")
