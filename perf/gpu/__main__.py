"""Measures guieval on a card, part by part (docs/gpu.md): ``make gpu PART=vllm``.

    python -m perf.gpu PART [--size card|tiny] [--model FOLDER] [--out FOLDER]
    python -m perf.gpu page         # writes docs/gpu.md from perf/gpu/rows.jsonl

Rows of size ``card`` go to perf/gpu/rows.jsonl and docs/gpu.md, those of size ``tiny`` and the page of them to the folder.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import get_args

from guieval.errors import UsageError, nearest
from perf.gpu.page import PAGE, ROWS, write
from perf.gpu.parts import ROOT, SIZES, Part, PartName

PARTS: tuple[PartName, ...] = get_args(PartName)


def main() -> int:
    """Measure the parts that are named; the exit code is 2 for a part that there is not, and 1 for one that fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", default="", help=f"{', '.join(PARTS)}; all; or page")
    parser.add_argument("--size", choices=SIZES, default="card", help="tiny: in small, on a CPU")
    parser.add_argument("--model", type=Path, help="folder of a checkpoint; random weights when not given")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "gpu", help="folder for checkpoints, screens and runs")
    given = parser.parse_args()
    names = (*PARTS, "all", "page")
    if given.part not in names:
        wrong = f"PART is {given.part!r}" if given.part else "PART is not given"
        print(f"gpu: {wrong}: expected one of {', '.join(names)}{nearest(given.part, names)}", file=sys.stderr)
        return 2
    if given.model is not None and not (given.model / "config.json").is_file():
        print(f"gpu: MODEL is {str(given.model)!r}: expected a folder with config.json", file=sys.stderr)
        return 2
    rows, page = (ROWS, PAGE) if given.size == "card" else (given.out / "rows.jsonl", given.out / "gpu.md")
    failed = False
    for name in PARTS if given.part == "all" else [each for each in PARTS if each == given.part]:
        try:
            measured = Part(name, SIZES[given.size], given.out.resolve(), given.model).rows()
        except UsageError as error:
            print(f"gpu: part {name}: {error}", file=sys.stderr)
            failed = True
            continue
        for row in measured:
            print(
                f"{row.part:12} {row.value:g} {row.unit}{f' (limit {row.limit})' if row.limit else ''}: {row.what}", flush=True
            )
        write(measured, rows, page)
        print(f"the rows are in {rows} and on {page}", flush=True)
    if given.part == "page":
        write([], rows, page)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
