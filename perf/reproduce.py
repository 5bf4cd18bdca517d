"""Writes docs/reproduce.md: for each row of the three papers' tables the command, the number to expect, and what differs.

Published numbers are those of ``configs/results``, and for the other tables those of ``perf/reproduce.yaml``, which also holds
the commands. One test compares the page with what this writes, and another starts every command.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from guieval.data.doctor.counts import counted
from guieval.metrics.rounding import alike
from guieval.registry import model_config
from guieval.reports.leaderboards.published_results import PublishedModel, ResultTable, get_results
from guieval.running.campaign import planned, read_campaign, trainings_of
from guieval.running.config import settings_file
from guieval.training.building import TrainerParts
from guieval.training.config import read_config
from guieval.training.launch import Launch
from guieval.training.planning import make_plan
from guieval.training.study import check_trainings, forecasts
from guieval.training.trainings import costs, hours

PAGE = Path(__file__).parents[1] / "docs" / "reproduce.md"
TABLES = Path(__file__).with_suffix(".yaml")
REQUIREMENTS = Path(__file__).with_name("requirements.md")
HEAD = """# Reproducing the papers

For each row of the tables of UI-S1, UI-R1 and GUIEvalKit (HyperTrack): the command, the number to expect, GPU hours, and what
differs from the paper. GPU hours are the paper's, if it gives them, then ours: computed at 350 TFLOP/s of each GPU, without
decoding and evaluations, by `train plan` or by a campaign's `--dry-run`. The command `python -m perf.reproduce` writes
this page; one test compares the page with it, another starts every command against scripted servers on made-up data. None of
these numbers was reproduced here, because that needs GPUs, the weights and the data. [reproduced.md](reproduced.md) lists
scores that were reproduced from published replies.

`DATA/NAME` is the folder of a benchmark's data (`guieval benchmarks NAME` lists its source); evaluations find it as
`data/NAME`, where `guieval data download NAME` puts it, or with `--data DIR`. A training on several machines is started on each
of them, with `--machine_rank` 0, 1, 2 and 3; HOST is the address of machine 0. A training whose batch does not fit the number
of processes is refused with the numbers that fit. URL is the address of a running server: of AndroidWorld
([environments.md](connectors/environments.md)), or of the model that writes thoughts. A budget of `null` is the papers' ∞. A
command that occurs in several rows is run once. A table or figure of many trainings is one campaign
([campaigns.md](campaigns.md)), which trains, evaluates, and prints its numbers next to the printed ones; `--dry-run` lists what
it does. `guieval leaderboard runs/*` shows runs next to the published rows.
"""
NOT_GIVEN = "not in the paper"
PARTS = {
    "node": "accelerate launch --config_file configs/training/accelerate/zero3.yaml --num_processes 8 -m guieval train ",
    "nodes": "accelerate launch --config_file configs/training/accelerate/zero3.yaml --num_machines 4 --num_processes 32 "
    "--machine_rank 0 --main_process_ip HOST --main_process_port 29500 -m guieval train ",
    "five": "--bench androidcontrol --bench aitz --bench gui-odyssey --bench cagui --bench hypertrack",
    "androidworld": "--bench androidworld --mode online --set bench_options.url=URL --set bench_options.combinations=1",
}
"""Parts of commands, by the names in braces in ``perf/reproduce.yaml``."""


@cache
def page() -> str:
    """The text of docs/reproduce.md."""
    lines = [HEAD]
    for paper in yaml.safe_load(TABLES.read_text(encoding="utf-8")):
        lines.append(f"## {paper['paper']}\n")
        for section in paper["sections"]:
            lines += (_study if "campaign" in section else _published if "results" in section else _listed)(section)
        lines.append(paper["left"] + "\n")
    return "\n".join(lines).rstrip() + "\n\n" + _requirements()


def _requirements() -> str:
    """``perf/requirements.md`` with its rows counted."""
    text = REQUIREMENTS.read_text(encoding="utf-8")
    verdicts = Counter(
        row.rpartition(" | ")[2].removesuffix(" |").partition(":")[0] for row in re.findall(r"^\| \d.*", text, re.M)
    )
    counted = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
    head, first, rest = text.partition("\n### ")
    return f"{head.rstrip()}\n\n{verdicts.total()} requirements: {counted}.\n{first}{rest}"


def _table(title: str, rows: Iterator[tuple[str, str, str, str, str]], notes: Iterable[str] = ()) -> list[str]:
    head = ["| row | command | expected | GPU hours | what differs |", "| --- | --- | --- | --- | --- |"]
    above = [f"In all rows: {'; '.join(notes)}.\n"] if notes else []
    return [f"### {title}\n", *above, *head, *("| " + " | ".join(row) + " |" for row in rows), ""]


def _study(section: Mapping[str, Any]) -> list[str]:
    """A table or figure of many trainings, which one campaign makes; its printed rows are those of ``configs/results``."""
    name = section["campaign"]
    more = [f"`{command}`" for command in section.get("then", ())]
    lines = [f"### {section['table']}: {section['title']}\n", f"`guieval campaign {name} --out runs/{name}`\n"]
    lines += [f"Then {', and '.join(more)}.\n"] * bool(more)
    lines.append(f"GPU hours: {section['hours']}; {_of_campaign(name)}. What differs: {section['differs']}.\n")
    if "results" not in section:
        return lines
    table = get_results(section["results"])
    head = ["row", *(column.title for column in table.columns), "training"]
    lines += ["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |"]
    for row in table.rows:
        printed = [
            "-" if value is None else f"{value:.{column.decimals}f}"
            for value, column in zip(row.values, table.columns, strict=True)
        ]
        lines.append("| " + " | ".join([row.title, *printed, row.training or "-"]) + " |")
    return [*lines, ""]


def _listed(section: Mapping[str, Any]) -> list[str]:
    keys = section["keys"]

    def rows() -> Iterator[tuple[str, str, str, str, str]]:
        for values in section["rows"]:
            given = dict(zip(keys, values, strict=False))
            commands = section["command"].format_map({**PARTS, **given}).replace("  ", " ")
            expected = ", ".join(map(str, values[len(keys) :]))
            yield _named(given), _code(commands), expected, section["hours"], section["differs"]

    return _table(f"{section['table']}: {section['title']}", rows())


def _named(given: Mapping[str, Any]) -> str:
    shown = {name: value for name, value in given.items() if name not in ("thinking", "folder", "sampling")}
    return ", ".join(str(value) if name in ("row", "model", "bench") else f"{name} {value}" for name, value in shown.items())


def _published(section: Mapping[str, Any]) -> list[str]:
    table = get_results(section["results"])
    titles = ", ".join(column.title for column in table.columns)
    known = [
        [value for value in values if value is not None] for values in zip(*(row.values for row in table.rows), strict=True)
    ]
    shown = [dict(zip(values, alike(values), strict=True)) for values in known]

    def rows() -> Iterator[tuple[str, str, str, str, str]]:
        for row in table.rows:
            expected = " / ".join("-" if value is None else of[value] for value, of in zip(row.values, shown, strict=True))
            command, cost, differs = _of_row(section, table, row)
            yield row.title, command, expected, cost, differs

    return _table(f"{table.table}: {titles}", rows(), section.get("columns", {}).values())


class _Run(NamedTuple):
    """An evaluation and the columns of a table that it fills."""

    name: str
    columns: frozenset[str]
    arguments: str


def _of_row(section: Mapping[str, Any], table: ResultTable, row: PublishedModel) -> tuple[str, str, str]:
    """Commands, GPU hours and differences of a published row."""
    own = section.get("rows", {}).get(row.title, {})
    given = {column.name for column, value in zip(table.columns, row.values, strict=True) if value is not None}
    runs = [run for run in _runs(section, table) if not run.columns or run.columns & given]
    noted = any(given & set(names.split()) for names in section.get("columns", {}))
    notes = [own.get("differs"), "see above" if noted else None]
    commands: list[str] = []
    if "train" in own:
        launched = own.get("launch", "nodes")
        commands = [] if own.get("trained") else [PARTS[launched] + own["train"]]
        label, weights = Path(own["out"]).name, f" --set model_path={own['out']}/final {own.get('options', '')}".rstrip()
        commands += [_run(run, own.get("model", "qwen2.5-vl-7b-ui-s1"), weights, label, row) for run in runs]
    elif checkpoint := own.get("checkpoint", row.checkpoint):
        for run in runs:
            model = checkpoint if isinstance(checkpoint, str) else checkpoint.get(run.name, checkpoint["else"])
            weights = f" --set model_path={own['weights']}" if "weights" in own else ""
            commands.append(_run(run, model, weights, f"{model}-base" if weights else model, row))
    else:
        return "none", NOT_GIVEN, own["none"]
    cost = own.get("hours", NOT_GIVEN)
    if own.get("train"):
        cost += f"; ours {_of_recipe(own['train'], own.get('launch', 'nodes'))}"
    return _code("; ".join(commands)), cost, "; ".join(filter(None, notes)) or "nothing that is known"


def _of_recipe(train: str, launched: str) -> str:
    """The GPU hours of a recipe, and the command that prints them; weights made by another training have the same shape."""
    words, processes = shlex.split(train), {"node": 8, "nodes": 32}[launched]
    settings = [given for name, given in pairwise(words) if name == "--set" and not given.startswith("model_path=training/")]
    recipe = words[words.index("--config") + 1]
    parts = TrainerParts(read_config(settings_file(Path(recipe), "training", "training"), settings))
    work = make_plan(parts, Launch(processes, "zero3")).work
    assert work is not None, f"{recipe} states no sizes"
    given = "".join(f" --set {setting}" for setting in settings)
    command = f"guieval train plan --accelerate zero3 --processes {processes} --config {recipe}{given}"
    return f"{hours(work.gpu_hours())}: `{command}`"


def _of_campaign(name: str) -> str:
    """The GPU hours that a campaign's trainings need, as its dry run sums them up."""
    campaign = read_campaign(Path(name))
    trainings = trainings_of(planned(campaign, Path("runs") / name))
    known = forecasts(trainings, check_trainings(trainings))
    left = costs(trainings, {of: each.steps for of, each in known.items()}, {of: each.gpu_hours for of, each in known.items()})
    amounts: defaultdict[str, float] = defaultdict(float)
    for cost in left:
        amounts[cost.source] += cost.left or 0.0
    words = " and ".join(f"{hours(amount)} {source}" for source, amount in sorted(amounts.items()))
    return f"ours of {counted(len(trainings), 'training')} (`--dry-run`): {words}"


def _runs(section: Mapping[str, Any], table: ResultTable) -> list[_Run]:
    """The evaluations of a table: those listed, else one for each benchmark, mode and protocol of its columns."""
    if "runs" in section:
        return [_Run(each["name"], frozenset(each.get("columns", ())), each["run"]) for each in section["runs"]]
    columns = [column for column in table.columns if column.benchmark and column.mode]
    found = dict.fromkeys((column.benchmark, column.mode, column.protocol) for column in columns)
    return [
        _Run(f"{bench}-{mode}", frozenset(), f"--bench {bench} --mode {mode}" + (f" --protocol {protocol}" if protocol else ""))
        for bench, mode, protocol in found
    ]


def _run(run: _Run, model: str, weights: str, label: str, row: PublishedModel) -> str:
    thinking = {True: " --thinking", False: " --no-thinking", None: ""}[row.thinking]
    engine = " --engine vllm" if model_config(model, None).hf_id else ""  # a hosted model has a server of its own
    out = f"runs/{label}{thinking.replace(' --', '-')}-{run.name}"
    return f"guieval run --model {model}{thinking}{weights}{engine} {run.arguments} --out {out}"


def _code(commands: str) -> str:
    return "<br>".join(f"`{command.strip()}`" for command in _split(commands))


def _split(commands: str) -> list[str]:
    """The commands of a line; a loop is one."""
    parts: list[str] = []
    for part in commands.split("; "):
        if parts and parts[-1].startswith("for ") and not parts[-1].endswith("done"):
            parts[-1] += f"; {part}"
        else:
            parts.append(part)
    return parts


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
