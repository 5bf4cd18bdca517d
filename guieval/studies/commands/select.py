"""``guieval study select``: steps to train on, of runs by UI-R1's three stages, or nested subsets of a benchmark's episodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from guieval.cli import options
from guieval.cli.settings import path_argument, path_option
from guieval.cli.tables import JSON, echo, print_json, say, show
from guieval.data.doctor.counts import counted
from guieval.data.selection import Choice
from guieval.data.selection import select as select_episodes
from guieval.data.shipped import __version__
from guieval.errors import UsageError, nearest, refuse
from guieval.journal.run_folders import runs_over, several_runs
from guieval.reports.tables.records import writable
from guieval.reports.tables.table import Table, columns
from guieval.studies.data_selection.candidates import read_candidates
from guieval.studies.data_selection.curated_files import HYPERTRACK_SIZES, nested_episodes, write_curated, write_nested
from guieval.studies.data_selection.stages import Curated, Recipe, curate, get_preset, read_quota, read_source


def select(
    runs: Annotated[list[Path] | None, path_argument("[RUNS...]", "Run directories.")] = None,
    preset: Annotated[str | None, typer.Option(help="A published selection to start from: ui-r1.")] = None,
    stages: Annotated[str | None, typer.Option(help="Of quality,difficulty,diversity (default: all three).")] = None,
    per: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=N", help="Steps of a kind, e.g. SCROLL=5, element:icon=50, action=20 (each)."),
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="Protocol of exact match, see `guieval protocols` (default: each run's own).")
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
        str | None, typer.Option(help="Rare actions to leave out, separated by commas, or none (default: WAIT,LONG_PRESS).")
    ] = None,
    balance: Annotated[
        str | None, typer.Option(help="Spread each quota evenly over the values of this label, or none (default: element).")
    ] = None,
    order: Annotated[str | None, typer.Option(help="random (default), or reasoning: longest first.")] = None,
    top: Annotated[
        int | None, typer.Option(min=1, help="Without quotas: this many steps in all, the first in the order.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    allow_fewer: Annotated[bool, typer.Option("--allow-fewer", help="Take fewer steps if a quota cannot be filled.")] = False,
    nested: Annotated[
        str | None, typer.Option(help="Nested subsets of 16,32,64 episodes, or hypertrack (16 to 8,192); with --bench.")
    ] = None,
    bench: Annotated[str | None, typer.Option(help="--nested: the benchmark.")] = None,
    data: Annotated[Path | None, path_option("--nested: its data folder.")] = None,
    split: Annotated[str | None, typer.Option(help="--nested: draw from this split (default train; all: every split).")] = None,
    override: Annotated[list[str] | None, typer.Option("--set", help="--nested: option=value, for the loader.")] = None,
    out: Annotated[Path | None, path_option("The sample set to write (.json), or list of steps (.txt).")] = None,
    json: JSON = False,
) -> None:
    """Select steps to train on: hard, clean and diverse ones of runs, or nested subsets of a benchmark."""
    for_runs: dict[str, Any] = {"preset": preset, "stages": stages, "per": per, "protocol": protocol, "order": order}
    for_runs |= {"clean-boxes": clean_boxes, "others": others, "without": without, "balance": balance, "top": top}
    for_runs |= {"allow-fewer": allow_fewer, "json": json}
    for_nested: dict[str, Any] = {"bench": bench, "data": data, "split": split, "set": override}
    if (nested is None) == (not runs):
        raise UsageError("name the run directories to select from, or --nested with --bench; one of both")
    file = None if out is None else writable(out)
    if nested is not None:
        refuse(for_runs, "is for runs alone")
        _select_nested(nested, bench, data, split or "train", override or [], seed, file)
    else:
        refuse(for_nested, "is for --nested alone")
        _select_steps(list(runs or ()), for_runs, seed, file)


def _select_steps(directories: list[Path], given: dict[str, Any], seed: int, file: Path | None) -> None:
    runs = runs_over("steps", several_runs(directories), "select from runs with --mode offline")
    candidates = read_candidates(runs, given["protocol"])
    labels = list(dict.fromkeys(name for step in candidates.steps for name in step.groups))
    recipe = _recipe(given, seed, labels)
    curated = curate(candidates.steps, recipe, allow_fewer=given["allow-fewer"])
    _show(curated, json=given["json"])
    if candidates.unanswered and "difficulty" in recipe.stages:
        say(
            f"note: {candidates.unanswered:,} steps were not answered, so whether they are hard is not known; "
            "`guieval run --resume` asks for those that their run can reach (in mode sop, none after a mismatch)",
            err=True,
        )
    if file is not None:
        written, manifest = write_curated(curated, file, runs=candidates.runs, version=__version__)
        for part in written:
            echo(
                f"written:  {part.path} ({part.benchmark}: {counted(part.episodes, 'episode')}, {counted(part.steps, 'step')})"
            )
        echo(f"manifest: {manifest}")


def _recipe(given: dict[str, Any], seed: int, labels: list[str]) -> Recipe:
    recipe = Recipe() if given["preset"] is None else get_preset(given["preset"])
    changed: dict[str, Any] = {"seed": seed}
    if given["stages"] is not None:
        changed["stages"] = tuple(name.strip() for name in given["stages"].split(",") if name.strip())
        if "diversity" not in changed["stages"] and not given["per"]:
            changed["quotas"] = ()  # the preset's go with its stage
    if given["per"]:
        changed["quotas"] = tuple(read_quota(text, labels) for text in given["per"])
    for field, option in (("clean", "clean-boxes"), ("others", "others")):
        if given[option]:
            changed[field] = tuple(read_source(text) for text in given[option])
    if given["without"] is not None:
        names = [name.strip() for name in given["without"].split(",")]
        changed["without"] = () if names == ["none"] else tuple(names)
    if given["balance"] is not None:
        changed["balance"] = None if given["balance"] == "none" else _label(given["balance"], labels)
    changed |= {name: given[name] for name in ("order", "top") if given[name] is not None}
    return replace(recipe, **changed)


def _label(name: str, labels: list[str]) -> str:
    known = ["action", *labels]
    if name not in known:
        raise UsageError(
            f"--balance {name!r} is not a label of these steps{nearest(name, known)}; they have: {', '.join(known)}"
        )
    return name


def _show(curated: Curated, *, json: bool) -> None:
    if json:
        chosen = {"selected": len(curated.chosen), "composition": curated.composition}
        print_json({"left": curated.left, "quotas": curated.cells, **chosen})
        return
    quotas = tuple((cell.key, cell.wanted, cell.available, cell.taken) for cell in curated.cells)
    show(
        Table("", columns("after", "steps"), tuple(curated.left.items())),
        Table("", columns("quota", "asked for", "there were", "taken"), quotas) if quotas else None,
    )
    shown = ", ".join(f"{name} {count:,}" for name, count in curated.composition.most_common())
    say(f"selected: {len(curated.chosen):,} step{'s' * (len(curated.chosen) > 1)}: {shown}")


def _select_nested(
    sizes: str, bench: str | None, data: Path | None, split: str, override: list[str], seed: int, file: Path | None
) -> None:
    if bench is None:
        raise UsageError("--nested draws from a benchmark: name it with --bench")
    if file is None:
        raise UsageError("--out names the sample sets to write, e.g. --out train.json for train-16.json, train-32.json, ...")
    wanted = HYPERTRACK_SIZES if sizes == "hypertrack" else tuple(_size(text) for text in sizes.split(","))
    benchmark = options.open_benchmark(bench, data, override)
    pool = select_episodes(benchmark, Choice(split=split))
    subsets = nested_episodes(pool.refs, wanted, seed)
    dataset = benchmark.dataset or benchmark.load(pool.refs[0]).steps[0].dataset
    words = f"{bench}, {pool.text}"
    for each in write_nested(subsets, pool.plan, file, dataset=dataset, seed=seed, pool=words):
        echo(f"written:  {each.path} ({counted(each.episodes, 'episode')}, {counted(each.steps, 'step')})")
    say(f"drawn with seed {seed} from {words}")


def _size(text: str) -> int:
    number = text.strip().replace("_", "")
    if not (number.isascii() and number.isdigit()):
        raise UsageError(f"--nested lists sizes in episodes, like 16,32,64, or is hypertrack; got {text!r}")
    return int(number)
