"""Which tier a test belongs to: ``core`` (`make test`), ``ci`` (what `.ci/run` adds) or ``full`` (what `make test-all` adds).

A folder or file is named here when all of it belongs to a larger tier, and is then not even imported in a smaller one; a single
test carries the mark ``ci`` or ``full``. What stands in neither place is core.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal, get_args

Tier = Literal["core", "ci", "full"]
TIERS: tuple[Tier, ...] = get_args(Tier)
LARGER: dict[str, Tier] = {
    "studies/decisions/test_consistency_command.py": "ci",
    "studies/decisions/test_mix_interrupted.py": "ci",
    "assistants/test_mcp.py": "ci",
    "browser": "ci",
    "cli/test_cli_plot.py": "ci",
    "cli/test_cli_audit_engine.py": "ci",
    "docs": "ci",
    "engines/apis": "ci",
    "engines/vllm/test_vllm_server.py": "ci",
    "faults": "ci",
    "fuzz": "ci",
    "model_adapters/test_ceilings.py": "ci",
    "models/test_new_adapter.py": "ci",
    "connectors/pages": "ci",
    "online/test_demonstrate.py": "ci",
    "online/test_device_actions.py": "ci",
    "perf/test_reproduce_commands.py": "ci",
    "perf/test_board.py": "ci",
    "perf/test_reproduced.py": "ci",
    "project/test_core_alone.py": "ci",
    "project/test_first_run.py": "ci",
    "exchange/test_push.py": "ci",
    "cluster": "ci",
    "running/test_notebook_progress.py": "ci",
    "playground/test_mock_server.py": "ci",
    "training_verl": "ci",
    "vllm": "ci",
}
"""Files and folders below tests/ of the larger tiers."""


def tier_of(path: PurePosixPath, marks: frozenset[str] = frozenset()) -> Tier:
    """The tier of a test in a file or folder below tests/, by its marks and then by the longest path in :data:`LARGER`."""
    marked = [tier for tier in TIERS if tier in marks]
    places = [LARGER[place.as_posix()] for place in (path, *path.parents) if place.as_posix() in LARGER]
    return max([*marked, *places[:1], "core"], key=TIERS.index)
