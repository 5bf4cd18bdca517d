"""Runs many cases on all cores, or repeats one: ``python -m tests.fuzz [TARGET ...] [--cases N] [--seed N]``."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from .engine import Failed, run
from .targets import TARGETS, recorded

SHOWN = 20
"""Failed cases that are printed of each target."""


def cases(name: str, first: int, count: int) -> list[Failed]:
    with tempfile.TemporaryDirectory(prefix=f"guieval-fuzz-{name}-") as folder:
        target = TARGETS[name](Path(folder), recorded())
        try:
            return list(run(target, range(first, first + count)))
        finally:
            target.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", choices=[*TARGETS, []], help=f"default: {', '.join(TARGETS)}")
    parser.add_argument("--cases", type=int, default=100_000, help="cases of each target (default: 100,000)")
    parser.add_argument("--seed", type=int, default=None, help="seed of the first case; those after it follow (default: drawn)")
    chosen = parser.parse_args()
    first = random.SystemRandom().randrange(10**9) if chosen.seed is None else chosen.seed
    workers = min(os.cpu_count() or 1, max(1, chosen.cases // 100))
    failures = 0
    for name in chosen.targets or TARGETS:
        began = time.monotonic()
        part = -(-chosen.cases // workers)
        starts = range(first, first + chosen.cases, part)
        counts = [min(part, first + chosen.cases - start) for start in starts]
        with ProcessPoolExecutor(workers) as pool:
            found = [each for some in pool.map(cases, [name] * len(starts), starts, counts) for each in some]
        took = time.monotonic() - began
        print(f"{name}: {chosen.cases:,} cases, seeds {first} to {first + chosen.cases - 1}, {took:.0f} s: {len(found)} failed")
        for failed in found[:SHOWN]:
            print(f"\n{failed}", file=sys.stderr)
        failures += len(found)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
