"""``guieval select``: steps to train on, of runs by UI-R1's three stages, or nested subsets of a benchmark's episodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guieval.cli.paths import PATH, path

if TYPE_CHECKING:
    from guieval.curation import Curated, Recipe

_OF_RUNS = "runs"
_NESTED = "--nested"


def select(
    runs: Annotated[list[Path] | None, typer.Argument(parser=path, metavar="[RUNS...]", help="Run directories.")] = None,
    preset: Annotated[str | None, typer.Option(help="A published selection to start from: ui-r1.")] = None,
    stages: Annotated[str | None, typer.Option(help="Of quality,difficulty,diversity (default: all three).")] = None,
    per: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=N", help="So many of a kind, e.g. SCROLL=5, BACK=9, element:icon=50, action=20 (each)."),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="What an exact match is, see `guieval protocols` (default: each run's own).")
    ] = None,
    clean_boxes: Annotated[
        list[str] | None,
        typer.Option(metavar="DATASET[:LABEL=VALUE]", help="Where clicks may come from (default: any grounding benchmark)."),
    ] = None,
    others: Annotated[
        list[str] | None,
        typer.Option(metavar="DATASET[:LABEL=VALUE]", help="Where other actions may come from (default: anywhere)."),
    ] = None,
    without: Annotated[
        str | None, typer.Option(help="Rare actions left out, with commas; none: keep them (default: WAIT,LONG_PRESS).")
    ] = None,
    balance: Annotated[
        str | None,
        typer.Option(help="Spread each quota evenly over the values of this label; none: do not (default: element)."),
    ] = None,
    order: Annotated[str | None, typer.Option(help="random (default), or reasoning: longest first.")] = None,
    top: Annotated[
        int | None, typer.Option(min=1, help="Without quotas: so many steps over all, the first in the order.")
    ] = None,
    seed: Annotated[int, typer.Option(help="What is drawn.")] = 0,
    allow_fewer: Annotated[bool, typer.Option("--allow-fewer", help="Take what there is where a quota finds too few.")] = False,
    nested: Annotated[
        str | None,
        typer.Option(
            help="Subsets of so many episodes, each inside the next: 16,32,64, or hypertrack (16 to 8,192); with --bench."
        ),
    ] = None,
    bench: Annotated[str | None, typer.Option(help="--nested: the benchmark.")] = None,
    data: Annotated[Path | None, typer.Option(parser=path, metavar=PATH, help="--nested: its data folder.")] = None,
    split: Annotated[str | None, typer.Option(help="--nested: draw from this split (default train; all: every split).")] = None,
    override: Annotated[list[str] | None, typer.Option("--set", help="--nested: option=value, for the loader.")] = None,
    out: Annotated[
        Path | None, typer.Option(parser=path, metavar=PATH, help="The sample set to write (.json), or list of steps (.txt).")
    ] = None,
) -> None:
    """Select steps to train on: hard, clean and diverse ones of runs, or nested subsets of a benchmark."""
    from guieval.cli.run_folders import writable
    from guieval.errors import UsageError

    for_runs: dict[str, object] = {"preset": preset, "stages": stages, "per": per, "protocol": protocol, "order": order}
    for_runs |= {"clean-boxes": clean_boxes, "others": others, "without": without, "balance": balance, "top": top}
    for_runs["allow-fewer"] = allow_fewer or None
    for_nested: dict[str, object] = {"bench": bench, "data": data, "split": split, "set": override}
    if (nested is None) == (not runs):
        raise UsageError("name the run directories to select from, or --nested with --bench; one of both")
    wrong, where = (for_nested, _NESTED) if nested is None else (for_runs, _OF_RUNS)
    if given := next((name for name, value in wrong.items() if value is not None), None):
        raise UsageError(f"--{given} is for {where} alone")
    file = None if out is None else writable(out)
    if nested is not None:
        _select_nested(nested, bench, data, split or "train", override or [], seed, file)
        return
    told: dict[str, Any] = {"stages": stages, "per": per, "clean": clean_boxes, "others": others, "without": without}
    told |= {"balance": balance, "order": order, "top": top}
    _select_steps(list(runs or ()), preset, protocol, told, seed, file, allow_fewer=allow_fewer)


def _select_steps(
    directories: list[Path],
    preset: str | None,
    protocol: str | None,
    told: dict[str, Any],
    seed: int,
    file: Path | None,
    *,
    allow_fewer: bool,
) -> None:
    from guieval import __version__
    from guieval.cli.run_folders import several_runs
    from guieval.curation import curate, read_candidates, write_curated

    candidates = read_candidates(several_runs(directories), protocol)
    labels = list(dict.fromkeys(name for step in candidates.steps for name in step.groups))
    recipe = _recipe(preset, told, seed, labels)
    curated = curate(candidates.steps, recipe, allow_fewer=allow_fewer)
    _show(curated)
    if candidates.unanswered and "difficulty" in recipe.stages:
        typer.echo(
            f"note: {candidates.unanswered:,} steps were not answered, so whether they are hard is not known; "
            "`guieval run --resume` asks for those that their run can reach (mode sop: none behind an episode's end)",
            err=True,
        )
    if file is not None:
        written, manifest = write_curated(curated, file, runs=candidates.runs, version=__version__)
        for each in written:
            typer.echo(f"written:  {each.path} ({each.benchmark}: {each.episodes:,} episodes, {each.steps:,} steps)")
        typer.echo(f"manifest: {manifest}")


def _recipe(preset: str | None, told: dict[str, Any], seed: int, labels: list[str]) -> Recipe:
    """The preset's recipe, or the plain one, with whatever was said on the command line in its place."""
    from dataclasses import replace

    from guieval.curation import Recipe, get_preset, read_quota, read_source

    recipe = Recipe() if preset is None else get_preset(preset)
    said: dict[str, Any] = {"seed": seed}
    if told["stages"] is not None:
        said["stages"] = tuple(name.strip() for name in told["stages"].split(",") if name.strip())
        if "diversity" not in said["stages"] and not told["per"]:
            said["quotas"] = ()  # the preset's go with its stage
    if told["per"]:
        said["quotas"] = tuple(read_quota(text, labels) for text in told["per"])
    for name in ("clean", "others"):
        if told[name]:
            said[name] = tuple(read_source(text) for text in told[name])
    if told["without"] is not None:
        names = [name.strip() for name in told["without"].split(",")]
        said["without"] = () if names == ["none"] else tuple(names)
    if told["balance"] is not None:
        said["balance"] = None if told["balance"] == "none" else _label(told["balance"], labels)
    for name in ("order", "top"):
        if told[name] is not None:
            said[name] = told[name]
    return replace(recipe, **said)


def _label(name: str, labels: list[str]) -> str:
    from guieval.errors import UsageError, nearest

    known = ["action", *labels]
    if name not in known:
        raise UsageError(f"--balance {name!r} is no label of these steps{nearest(name, known)}; they have: {', '.join(known)}")
    return name


def _show(curated: Curated) -> None:
    from guieval.cli.tables import print_table

    print_table(("after", "steps"), ((stage, f"{count:,}") for stage, count in curated.left.items()))
    if curated.cells:
        typer.echo()
        rows = ((cell.key, f"{cell.wanted:,}", f"{cell.available:,}", f"{cell.taken:,}") for cell in curated.cells)
        print_table(("quota", "asked for", "there were", "taken"), rows)
    shown = ", ".join(f"{name} {count:,}" for name, count in curated.composition.most_common())
    typer.echo(f"\nselected: {len(curated.chosen):,} step{'s' * (len(curated.chosen) > 1)}: {shown}")


def _select_nested(
    sizes: str, bench: str | None, data: Path | None, split: str, override: list[str], seed: int, file: Path | None
) -> None:
    from guieval.cli.loader_options import loader_options
    from guieval.curation import HYPERTRACK_SIZES, nested_episodes, write_nested
    from guieval.errors import UsageError
    from guieval.registry import load_benchmark
    from guieval.selection import Choice
    from guieval.selection import select as select_episodes

    if bench is None:
        raise UsageError("--nested draws from a benchmark: name it with --bench")
    if file is None:
        raise UsageError("--out names the sample sets to write, e.g. --out train.json for train-16.json, train-32.json, ...")
    asked = HYPERTRACK_SIZES if sizes == "hypertrack" else tuple(_size(text) for text in sizes.split(","))
    benchmark = load_benchmark(bench, data, **loader_options(override))
    pool = select_episodes(benchmark, Choice(split=split))
    subsets = nested_episodes(pool.refs, asked, seed)
    dataset = benchmark.dataset or benchmark.load(pool.refs[0]).steps[0].dataset
    words = f"{bench}, {pool.text}"
    for each in write_nested(subsets, pool.plan, file, dataset=dataset, seed=seed, pool=words):
        typer.echo(f"written:  {each.path} ({each.episodes:,} episodes, {each.steps:,} steps)")
    typer.echo(f"drawn with seed {seed} from {words}")


def _size(text: str) -> int:
    from guieval.errors import UsageError

    number = text.strip().replace("_", "")
    if not (number.isascii() and number.isdigit()):
        raise UsageError(f"--nested lists sizes in episodes, like 16,32,64, or is hypertrack; got {text!r}")
    return int(number)
