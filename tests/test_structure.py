"""The architecture as a test: which module may import which, and what may be imported at the top of a module."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

LAYER_0 = {"errors", "actions", "frames", "rows", "steps", "screenshots", "benchmark"}
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "actions": set(),
    "rows": {"errors"},
    "frames": {"actions"},
    "steps": {"actions", "errors"},
    "screenshots": {"errors"},
    "benchmark": {"actions", "errors", "screenshots", "steps"},
    "evaluation": {"actions", "errors", "steps"},
    "history": {"actions", "steps"},
    "modes": {"errors", "history"},
    "parsing": {"actions", "errors", "frames"},
    "models": {"actions", "errors", "frames", "history", "screenshots", "steps"},
    "metrics": {"actions", "errors", "evaluation", "modes", "steps"},
    "cluster": LAYER_0
    | {"audit", "config", "engines", "identity", "journal", "metrics", "opening", "registry", "runner", "scheduler"}
    | {"selection"},
    "packing": set(),
    "thoughts": {"errors", "journal", "selection", "steps"},
    "decisions": LAYER_0
    | {"config", "evaluation", "history", "journal", "metrics", "registry", "run_settings", "runner", "scoring", "selection"}
    | {"thoughts"},
    "patching": {"errors", "history", "models", "steps"},
    "rewards": LAYER_0 | {"evaluation", "history", "models", "modes", "patching", "registry", "replies"},
    "curation": LAYER_0 | {"evaluation", "journal", "sample_sets", "scoring"},
    "training": LAYER_0
    | {"audit", "config", "engines", "evaluation", "history", "journal", "metrics", "models", "modes", "opening", "patching"}
    | {"registry", "replies", "rewards", "runner", "scoring", "selection", "synth"},
    "results": {"errors"},
    "predictions": LAYER_0 | {"evaluation", "frames", "parsing"},
    "matrix": LAYER_0
    | {"evaluation", "journal", "metrics", "models", "modes", "overlays", "predictions", "registry", "replies"}
    | {"sample_sets", "scoring", "selection"},
    "prompts": {"actions", "frames", "history", "models", "steps"},
    "audit": LAYER_0 | {"models"},
    "engines": {"errors", "models", "packing", "screenshots", "steps"},
    "registry": {"actions", "benchmark", "errors", "models", "prepared"},
    "config": {"errors"},
    "checks": LAYER_0 | {"evaluation", "history", "models", "registry"},
    "synth": {"actions", "errors", "steps"},
    "scheduler": {"benchmark", "steps"},
    "telemetry": {"errors", "steps"},
    "journal": {"benchmark", "errors", "packing", "steps"},
    "reports": LAYER_0 | {"decisions", "evaluation", "history", "journal", "matrix", "metrics", "modes", "results"},
    "replies": LAYER_0 | {"evaluation", "models"},
    "scoring": LAYER_0
    | {"evaluation", "journal", "metrics", "models", "modes", "overlays", "registry", "replies", "sample_sets", "selection"},
    "mock_server": LAYER_0 | {"engines", "models", "registry"},
    "opening": {
        "config",
        "decisions",
        "engines",
        "errors",
        "evaluation",
        "journal",
        "modes",
        "overlays",
        "registry",
        "run_settings",
        "runner",
        "sample_sets",
        "selection",
        "thoughts",
    },
    "images": {"models", "screenshots"},
    "identity": {"config", "errors"},
    "prepared": LAYER_0,
    "preparation": LAYER_0 | {"prepared", "published"},
    "sample_sets": LAYER_0,
    "selection": LAYER_0 | {"config", "sample_sets"},
    "overlays": LAYER_0,
    "lint": LAYER_0,
    "published": {"actions", "benchmark"},
    "examination": LAYER_0 | {"lint", "published", "sample_sets", "selection"},
    "run_settings": {"config", "errors", "models", "modes"},
    "workers": {"engines"},
    "asking": {"engines", "errors", "evaluation", "history", "images", "models", "modes", "patching", "replies", "screenshots"}
    | {"steps", "thoughts", "workers"},
    "runner": LAYER_0
    | {"asking", "audit", "images", "identity", "patching", "prompts", "run_settings", "workers"}
    | {"config", "engines", "evaluation", "history", "journal", "metrics", "models", "modes", "registry", "scheduler"}
    | {"sample_sets", "selection", "telemetry", "thoughts"},
}
MAY_IMPORT_ALL = {"cli", "__main__", "__init__"}
BUILT_ON_HEAVY = REPOSITORY / "guieval" / "training"
"""What stands in there subclasses the classes of training frameworks; only `guieval train` imports it."""
BENCHMARK_MAY = LAYER_0 | {"evaluation", "prepared", "synth"}
ADAPTER_MAY = {"actions", "errors", "frames", "history", "models", "parsing", "screenshots", "steps"}
HEAVY = {"torch", "vllm", "transformers", "trl", "verl", "ray", "matplotlib", "rapidocr_onnxruntime", "cv2", "onnxruntime"}


def imported(tree: ast.AST) -> set[str]:
    """Full dotted names of what a module imports, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names if node.module == "guieval")
    return names


def core_parts(names: set[str]) -> set[str]:
    """The core modules (first part below guieval) among imported names."""
    parts = {name.split(".")[1] for name in names if name.startswith("guieval.")}
    return {
        part for part in parts if (REPOSITORY / "guieval" / f"{part}.py").exists() or (REPOSITORY / "guieval" / part).is_dir()
    }


def sources(folder: str) -> list[Path]:
    return sorted((REPOSITORY / folder).rglob("*.py"))


@pytest.mark.parametrize("path", sources("guieval"), ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_core_imports_point_one_way(path: Path) -> None:
    part = path.relative_to(REPOSITORY / "guieval").parts[0].removesuffix(".py")
    if part in MAY_IMPORT_ALL:
        return
    assert part in ALLOWED, f"a new core module {part!r} needs its row in ALLOWED"
    extra = core_parts(imported(ast.parse(path.read_text(encoding="utf-8")))) - ALLOWED[part] - {part}
    assert not extra, f"{path.name} may not import {sorted(extra)}"


def test_the_allowed_arrows_have_no_cycle() -> None:
    done: set[str] = set()
    while len(done) < len(ALLOWED):
        ready = {part for part, targets in ALLOWED.items() if part not in done and targets <= done}
        assert ready, f"cycle among {sorted(ALLOWED.keys() - done)}"
        done |= ready


@pytest.mark.parametrize(("folder", "allowed"), [("benchmarks", BENCHMARK_MAY), ("model_adapters", ADAPTER_MAY)])
def test_plugins_import_only_contracts(folder: str, allowed: set[str]) -> None:
    for path in sources(folder):
        names = imported(ast.parse(path.read_text(encoding="utf-8")))
        assert not core_parts(names) - allowed, f"{path.name} may not import {sorted(core_parts(names) - allowed)}"
        assert not any(name.startswith(("guieval.benchmarks", "guieval.model_adapters")) for name in names), path.name


def test_only_the_registry_names_the_plugin_folders() -> None:
    for path in sources("guieval"):
        names = imported(ast.parse(path.read_text(encoding="utf-8")))
        assert not any(name.startswith(("guieval.benchmarks", "guieval.model_adapters")) for name in names), path.name


def test_no_stray_folder_hides_the_plugins() -> None:
    for name in ("benchmarks", "model_adapters", "configs"):
        assert not (REPOSITORY / "guieval" / name).exists()


@pytest.mark.parametrize("folder", ["guieval", "benchmarks", "model_adapters"])
def test_heavy_packages_are_imported_where_they_are_used(folder: str) -> None:
    for path in sources(folder):
        if path.is_relative_to(BUILT_ON_HEAVY):
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                tops = {name.split(".")[0] for name in imported(ast.Module([node], []))}
                assert not tops & HEAVY, f"{path.name} imports {sorted(tops & HEAVY)} at its top"


def test_asking_for_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, guieval.cli; print([m for m in ('numpy', 'pydantic', 'httpx', 'PIL', 'yaml', 'rich') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
