"""The rows that were measured on cards, the goals that they are held against, and docs/gpu.md, which is written from both."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROWS = HERE / "rows.jsonl"
PAGE = HERE.parents[1] / "docs" / "gpu.md"


@dataclass(frozen=True)
class Row:
    """One number of a part. ``limit`` is what the arithmetic alone would take at the card's rate, in the same ``unit``."""

    part: str
    name: str
    what: str
    value: float
    unit: str
    limit: str = ""
    load: str = ""
    card: str = ""
    versions: str = ""
    date: str = ""

    @property
    def replaces(self) -> tuple[str, str, str]:
        """What a newer row has in common with the row that it takes the place of."""
        return self.part, self.name, self.card


@dataclass(frozen=True)
class Goal:
    """A row on ``card`` is at most ``bound``, or, as a share of the row ``of`` of the same measurement, at least."""

    what: str
    part: str
    name: str
    bound: float
    unit: str
    of: str | None = None
    card: str = "H100"

    def cells(self, rows: Sequence[Row]) -> list[str]:
        """The row of the table: what was measured, and whether the goal is reached."""
        on_card = {row.name: row for row in rows if row.part == self.part and self.card in row.card}
        found, base = on_card.get(self.name), None if self.of is None else on_card.get(self.of)
        wanted = f"at {'most' if self.of is None else 'least'} {self.bound:g} {self.unit}"
        if found is None or (self.of is not None and (base is None or base.date != found.date)):
            return [self.what, wanted, "", "not measured"]
        value = found.value / base.value if base is not None else found.value
        reached = value <= self.bound if self.of is None else value >= self.bound
        return [self.what, wanted, f"{value:.3g} ({found.card}, {found.date})", "reached" if reached else "**missed**"]


GOALS = (
    Goal("SOEval's rate on vLLM", "vllm", "soeval", 0.87, "of offline's", of="offline"),
    Goal("SOP's rate on vLLM", "vllm", "sop", 0.87, "of offline's", of="offline"),
    Goal("SFT of a 7B with LoRA, 7,400 tokens a row", "sft", "row", 1.8, "s a row"),
    Goal("a GRPO step of 4 x 100 tokens with vLLM, 7B with LoRA", "grpo", "step", 15.0, "s"),
)
"""On one H100."""


def read_rows(file: Path = ROWS) -> list[Row]:
    """The rows of a file, none if there is no file."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    return [Row(**json.loads(line)) for line in lines]


def merge(rows: Iterable[Row], new: Sequence[Row]) -> list[Row]:
    """``rows`` with the ``new`` ones, each in the place of an earlier one of the same part, name and card."""
    replaced = {row.replaces: row for row in [*rows, *new]}
    return list(replaced.values())


def write(new: Sequence[Row], rows: Path, page: Path) -> None:
    """Merge ``new`` rows into the file ``rows``, and write the ``page``."""
    merged = merge(read_rows(rows), new)
    rows.write_text("".join(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in merged), encoding="utf-8")
    page.write_text(text(merged), encoding="utf-8")


def text(rows: Sequence[Row], goals: Sequence[Goal] = GOALS) -> str:
    """The whole page."""
    setups = sorted({(row.date, row.card, row.versions) for row in rows})
    numbers = {setup: f"{number}" for number, setup in enumerate(setups, 1)}
    lines = [(HERE / "page.md").read_text(encoding="utf-8"), "\n## Goals\n\n"]
    lines += _table(["goal", "wanted", "measured", ""], [goal.cells(rows) for goal in goals])
    lines.append("\n## Measured\n\n")
    cells = [
        [row.part, row.what, f"{row.value:g} {row.unit}", row.limit, row.load, numbers[row.date, row.card, row.versions]]
        for row in sorted(rows, key=lambda row: row.part)
    ]
    lines += _table(["part", "what", "measured", "limit", "load", "set-up"], cells)
    lines.append("\n| set-up | date | card | versions |\n| --- | --- | --- | --- |\n")
    lines += [f"| {numbers[setup]} | {setup[0]} | {setup[1]} | {setup[2]} |\n" for setup in setups]
    return "".join(lines)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |\n" for cells in [heads, ["---"] * len(heads), *rows]]
