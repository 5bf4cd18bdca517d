"""Writes docs/reproduce.md: for each row of the three papers' tables the command, the number to expect, and what differs.

Published numbers are those of ``configs/results``, and for the other tables those of ``perf/reproduce.yaml``, which also holds
the commands. A test compares the page with what this writes, and every command with the command line's own parser.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from guieval.registry import model_config
from guieval.reports.leaderboards.published_results import ResultTable, Row, get_results

PAGE = Path(__file__).parents[1] / "docs" / "reproduce.md"
TABLES = Path(__file__).with_suffix(".yaml")
HEAD = """# Reproducing the papers

For each row of the tables of UI-S1, UI-R1 and GUIEvalKit (HyperTrack): the command, the number to expect, the GPU hours that
the paper gives, and what differs from the paper. The command `python -m perf.reproduce` writes this page; a test compares the
page with it, and gives every command to the command line's parser. None of these numbers was reproduced here, because that
needs GPUs, the weights and the data. [reproduced.md](reproduced.md) lists scores that were reproduced from published replies.

`DATA/NAME` is the folder of a benchmark's data (`guieval benchmarks NAME` tells where to get it); evaluations read it from the
default folder (`guieval download NAME`), or with `--data DIR`. A training whose batch does not fit the number of processes is
refused with the numbers that fit. A budget of `null` is the papers' ∞. `guieval leaderboard runs/*` shows runs beside the
published rows.
"""
NOT_GIVEN = "not in the paper"


def page() -> str:
    """The text of docs/reproduce.md."""
    lines = [HEAD]
    for paper in yaml.safe_load(TABLES.read_text(encoding="utf-8")):
        lines.append(f"## {paper['paper']}\n")
        for section in paper["sections"]:
            lines += _published(section) if "results" in section else _listed(section)
        lines.append(paper["left"] + "\n")
    return "\n".join(lines).rstrip() + "\n"


def _table(title: str, rows: Iterator[tuple[str, str, str, str, str]]) -> list[str]:
    head = ["| row | command | expected | GPU hours | what differs |", "| --- | --- | --- | --- | --- |"]
    return [f"### {title}\n", *head, *("| " + " | ".join(row) + " |" for row in rows), ""]


def _listed(section: Mapping[str, Any]) -> list[str]:
    keys = section["keys"]

    def rows() -> Iterator[tuple[str, str, str, str, str]]:
        for values in section["rows"]:
            given = dict(zip(keys, values, strict=False))
            more = section.get("more", {}).get(given.get("patch"), "")
            commands = section["command"].format_map({**given, "more": more})
            expected = ", ".join(map(str, values[len(keys) :]))
            yield _named(given), _code(commands), expected, section["hours"], section["differs"]

    return _table(f"{section['table']}: {section['title']}", rows())


def _named(given: Mapping[str, Any]) -> str:
    return ", ".join(str(value) if name in ("row", "model", "bench") else f"{name} {value}" for name, value in given.items())


def _published(section: Mapping[str, Any]) -> list[str]:
    table = get_results(section["results"])
    titles = ", ".join(column.title for column in table.columns)

    def rows() -> Iterator[tuple[str, str, str, str, str]]:
        for row in table.rows:
            expected = " / ".join("-" if value is None else f"{value:g}" for value in row.values)
            command, hours, differs = _of_row(section, table, row)
            yield row.title, command, expected, hours, differs

    return _table(f"{table.table}: {titles}", rows())


def _of_row(section: Mapping[str, Any], table: ResultTable, row: Row) -> tuple[str, str, str]:
    runs = section.get("runs") or _runs(table)
    static = [value for value, column in zip(row.values, table.columns, strict=True) if not _live(column.name)]
    trained = section.get("trained", {})
    training = trained.get(row.variant) or trained.get(row.model)
    if training is None:
        if row.checkpoint is None:
            return "none", NOT_GIVEN, "not a model that guieval evaluates, or weights that are not published"
        differs = section.get("differs", "")
        if len(static) < len(row.values):
            differs = differs or "the live environments need their emulators: `--mode online`"
        if not any(value is not None for value in static):
            online = (
                f"guieval run --model {row.checkpoint} --bench androidworld --mode online --out runs/{row.checkpoint}-online"
            )
            return _code(online), NOT_GIVEN, differs
        return (
            _code("; ".join(_run(row, run, row.checkpoint, "") for run in runs)),
            NOT_GIVEN,
            differs or "nothing that is known",
        )
    name = training["train"].split("--set model=")[-1].split()[0] if "--set model=" in training["train"] else None
    name = name or ("ui-r1-3b" if "ui-r1" in training["train"] else "qwen2.5-vl-7b-ui-s1")
    weights = f" --set model_path={training['out']}/final"
    after = "; ".join(_run(row, run, name, weights) for run in runs)
    processes = 8 if "hours" in training or training["train"].startswith("sft") else 32
    command = f"accelerate launch --num_processes {processes} -m guieval train {training['train']}; {after}"
    return _code(command), training.get("hours", NOT_GIVEN), training["differs"]


def _live(column: str) -> bool:
    return column in ("aitw-gen", "aitw-web", "miniwob", "androidworld")


def _runs(table: ResultTable) -> list[tuple[str, str, str]]:
    found = [(column.benchmark, column.mode, column.protocol) for column in table.columns if column.benchmark and column.mode]
    return [(bench, mode, protocol or "") for bench, mode, protocol in dict.fromkeys(found)]


def _run(row: Row, run: tuple[str, str, str], model: str, weights: str) -> str:
    bench, mode, protocol = run
    thinking = {True: " --thinking", False: " --no-thinking", None: ""}[row.thinking]
    out = f"runs/{model}{thinking.replace(' --', '-')}-{bench}{'-trained' if weights else ''}"
    judged = f" --protocol {protocol}" if protocol else ""
    engine = " --engine vllm" if model_config(model, None).hf_id else ""  # a hosted model has a server of its own
    return f"guieval run --model {model}{thinking}{weights}{engine} --bench {bench} --mode {mode}{judged} --out {out}"


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
