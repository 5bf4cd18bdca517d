"""The first cases of every target; ``make fuzz`` runs many more."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

from tests.rows import every_row

from .engine import run
from .targets import TARGETS, recorded

CASES = int(os.environ.get("GUIEVAL_FUZZ_CASES", "1000"))
SEED = int(os.environ.get("GUIEVAL_FUZZ_SEED", "0"))


@every_row("name", [name for name in TARGETS if name != "trajectories"])
def test_hostile_material_is_taken_or_refused_in_a_sentence(name: str, tmp_path: Path) -> None:
    count = CASES // 5 if name == "run-folders" else CASES
    print(f"{name}: seeds {SEED} to {SEED + count - 1}")
    target = TARGETS[name](tmp_path, recorded())
    try:
        failed = list(islice(run(target, range(SEED, SEED + count)), 3))
    finally:
        target.close()
    assert not failed, "\n\n".join(map(str, failed))
