"""The architecture as a test: which module may import which, and what may be imported at the top of a module."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

VOCABULARY = {"errors", "actions", "frames", "steps"}
CONTRACTS = VOCABULARY | {"data", "history", "evaluation", "models", "registry"}
RUNS = CONTRACTS | {"journal", "metrics"}
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "actions": set(),
    "frames": {"actions"},
    "steps": {"actions", "errors"},
    "data": VOCABULARY,
    "history": VOCABULARY,
    "parsing": VOCABULARY,
    "evaluation": VOCABULARY | {"data"},
    "models": VOCABULARY | {"data", "history", "evaluation"},
    "registry": VOCABULARY | {"data", "models"},
    "metrics": VOCABULARY | {"history", "evaluation"},
    "telemetry": VOCABULARY | {"data"},
    "journal": VOCABULARY | {"data", "history"},
    "engines": VOCABULARY | {"data", "models", "journal"},
    "scoring": RUNS | {"parsing"},
    "testing": CONTRACTS | {"engines"},
    "online": CONTRACTS | {"metrics", "testing"},
    "running": RUNS | {"engines", "telemetry", "scoring", "online"},
    "analysis": RUNS | {"running", "scoring"},
    "reports": RUNS | {"scoring", "analysis", "online", "telemetry"},
    "rewards": CONTRACTS,
    "training": RUNS | {"engines", "rewards", "running", "testing", "analysis", "online"},
}
"""Which packages each package may import, in the order of docs/architecture.md."""
MAY_IMPORT_ALL = {"cli", "__main__", "__init__"}
BUILT_ON_HEAVY = REPOSITORY / "guieval" / "training"
"""What stands in there subclasses the classes of training frameworks; only `guieval train` imports it."""
BENCHMARK_MAY = VOCABULARY | {"data", "evaluation", "testing"}
ADAPTER_MAY = VOCABULARY | {"data", "history", "models", "parsing"}
HEAVY = {
    *("torch", "vllm", "transformers", "trl", "verl", "ray", "matplotlib", "pandas"),
    *("rapidocr", "rapidocr_onnxruntime", "cv2", "onnxruntime"),
}


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
    assert part in ALLOWED, f"a new package {part!r} needs its row in ALLOWED"
    extra = core_parts(imported(ast.parse(path.read_text(encoding="utf-8")))) - ALLOWED[part] - {part}
    assert not extra, f"{path.name} may not import {sorted(extra)}"


def test_only_the_vocabulary_is_loose() -> None:
    loose = {path.stem for path in (REPOSITORY / "guieval").glob("*.py")}
    assert loose == VOCABULARY | {"registry", "__init__", "__main__"}


@pytest.mark.parametrize("folder", ["guieval", "benchmarks", "model_adapters"])
def test_every_package_states_what_it_holds(folder: str) -> None:
    for package in {path.parent for path in sources(folder)}:
        start = package / "__init__.py"
        assert start.is_file() and ast.get_docstring(ast.parse(start.read_text(encoding="utf-8"))), package


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
        "import sys, guieval.cli\n"
        "print([m for m in ('numpy', 'pydantic', 'aiohttp', 'PIL', 'yaml', 'rich') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
