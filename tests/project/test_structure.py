"""The architecture as a test: which module may import which, and what may be imported at the top of a module."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.conftest import REPOSITORY

LOOSE = {"redaction", "errors", "actions", "frames", "steps", "tasks"}
VOCABULARY = LOOSE | {"settings"}
CONTRACTS = VOCABULARY | {"data", "history", "evaluation", "models", "registry"}
RUNS = CONTRACTS | {"journal", "metrics"}
ALLOWED: dict[str, set[str]] = {
    "redaction": set(),
    "errors": set(),
    "actions": set(),
    "frames": {"actions"},
    "steps": {"actions", "errors"},
    "tasks": {"actions", "steps"},
    "settings": {"errors"},
    "data": VOCABULARY,
    "history": VOCABULARY,
    "parsing": VOCABULARY,
    "evaluation": VOCABULARY | {"data"},
    "models": VOCABULARY | {"data", "history", "evaluation"},
    "registry": VOCABULARY | {"data", "models"},
    "metrics": VOCABULARY | {"data", "history", "evaluation"},
    "telemetry": VOCABULARY | {"data"},
    "journal": VOCABULARY | {"data", "history"},
    "engines": VOCABULARY | {"data", "models", "journal"},
    "scoring": RUNS | {"parsing"},
    "testing": CONTRACTS | {"engines"},
    "online": CONTRACTS | {"engines", "metrics", "testing"},
    "running": RUNS | {"engines", "telemetry", "scoring", "online"},
    "analysis": RUNS | {"running", "scoring"},
    "reports": RUNS | {"scoring", "analysis", "online", "telemetry"},
    "rewards": CONTRACTS,
    "training": RUNS | {"engines", "rewards", "running", "testing", "analysis", "online"},
}
"""Which packages each package may import, in the order of docs/architecture.md."""
MAY_IMPORT_ALL = {"cli", "__main__", "__init__"}
PLUGINS_MAY = {
    "benchmarks": VOCABULARY | {"data", "evaluation", "testing"},
    "model_adapters": VOCABULARY | {"data", "history", "models", "parsing"},
}
FOLDERS = ("guieval", *PLUGINS_MAY)
BUILT_ON_HEAVY = ("guieval", "training")
"""What stands in there subclasses the classes of training frameworks; only `guieval train` imports it."""
HEAVY = {
    *("torch", "vllm", "transformers", "trl", "verl", "ray", "matplotlib", "pandas"),
    *("rapidocr", "rapidocr_onnxruntime", "cv2", "onnxruntime"),
}
CORE = {path.stem for path in (REPOSITORY / "guieval").iterdir()}
"""The modules and packages of the core."""


@cache
def sources() -> dict[Path, ast.Module]:
    """The tree of each file, by its path in the repository."""
    paths = sorted(path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*.py"))
    return {path.relative_to(REPOSITORY): ast.parse(path.read_bytes()) for path in paths}


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node, in functions and branches too; to walk the expressions as well takes ten times as long."""
    for block in ("body", "orelse", "handlers", "finalbody", "cases"):
        for node in getattr(tree, block, ()):
            yield node
            yield from statements(node)


def imported(node: ast.AST) -> set[str]:
    """Full dotted names of what a statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if not isinstance(node, ast.ImportFrom) or not node.module or node.level:
        return set()
    return {node.module, *(f"{node.module}.{alias.name}" for alias in node.names if node.module == "guieval")}


def wrong_imports(path: Path, tree: ast.Module) -> Iterator[str]:
    """What a file of the repository imports and may not."""
    names = set().union(*map(imported, statements(tree)))
    parts = {name.split(".")[1] for name in names if name.startswith("guieval.")}
    folder, part = path.parts[0], path.parts[1].removesuffix(".py")
    if folder != "guieval":
        yield from parts & CORE - PLUGINS_MAY[folder]
    elif part not in MAY_IMPORT_ALL:
        yield from parts & CORE - ALLOWED[part] - {part}
    yield from parts & PLUGINS_MAY.keys()  # only the registry finds them, and one plug-in never another
    if path.parts[:2] != BUILT_ON_HEAVY:
        at_the_top = {name.split(".")[0] for name in set().union(*map(imported, tree.body))}
        yield from (f"{name} at its top" for name in at_the_top & HEAVY)


def test_every_import_is_allowed() -> None:
    packages = {path.parts[1].removesuffix(".py") for path in sources() if path.parts[0] == "guieval"}
    assert packages - MAY_IMPORT_ALL == ALLOWED.keys(), "each package needs its row in ALLOWED"
    assert [f"{path} imports {name}" for path, tree in sources().items() for name in wrong_imports(path, tree)] == []


READER = Path("guieval/data/screenshots.py")


def opens_pictures(tree: ast.Module) -> bool:
    """Whether a file reads images by itself: with Pillow's ``open`` or its turn by EXIF, or with another package."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr="open", value=ast.Name(id="Image") | ast.Attribute(attr="Image")):
                return True
            case ast.ImportFrom(module="PIL.Image", names=names) if any(name.name == "open" for name in names):
                return True
            case ast.Attribute(attr="exif_transpose" | "imread" | "imdecode" | "decode_image" | "read_image"):
                return True
    return False


def test_one_module_reads_pictures() -> None:
    """Else one part of a run would see a picture turned, or on black, that another sees otherwise."""
    assert [path for path, tree in sources().items() if opens_pictures(tree)] == [READER]


def test_a_second_reader_of_pictures_is_found() -> None:
    for code in (
        "def f():\n    from PIL import Image\n    with Image.open(a) as b:\n        pass",
        "import PIL.Image\nPIL.Image.open(a)",
        "from PIL.Image import open",
        "ImageOps.exif_transpose(a)",
        "cv2.imread(a)",
    ):
        assert opens_pictures(ast.parse(code)), code
    assert not opens_pictures(ast.parse("from PIL import Image\nImage.new(a)\nopen(a)\npath.open()"))


def test_a_wrong_import_is_found() -> None:
    def found(path: str, code: str) -> set[str]:
        return set(wrong_imports(Path(path), ast.parse(code)))

    inside = "def f():\n    from guieval.running.a import b\n    import guieval.cli"
    assert found("guieval/data/a.py", inside) == {"running", "cli"}
    assert found("guieval/data/a.py", "from guieval import engines, errors, data") == {"engines"}
    nested = "try:\n    a\nexcept b:\n    import guieval.{}\nelse:\n    import guieval.{}\nfinally:\n    import guieval.{}"
    assert found("guieval/data/a.py", nested.format("cli", "online", "engines")) == {"cli", "online", "engines"}
    assert found("guieval/data/a.py", "match a:\n    case 1:\n        import guieval.cli") == {"cli"}
    assert found("guieval/cli/a.py", "import guieval.running\nfrom guieval.benchmarks.demo import a") == {"benchmarks"}
    assert found("guieval/cli/a.py", "import torch.nn, numpy\ndef f():\n    import vllm") == {"torch at its top"}
    assert found("guieval/training/a.py", "import torch, guieval.training.b") == set()
    assert found("benchmarks/a.py", "from guieval.parsing import a\nfrom .b import c") == {"parsing"}
    assert found("model_adapters/a.py", "from guieval.model_adapters.b import c") == {"model_adapters"}


def test_only_the_vocabulary_is_loose() -> None:
    loose = {path.stem for path in (REPOSITORY / "guieval").glob("*.py")}
    assert loose == LOOSE | {"registry", "__init__", "__main__"}


def test_every_package_states_what_it_holds() -> None:
    stated = {path.parent for path, tree in sources().items() if path.name == "__init__.py" and ast.get_docstring(tree)}
    assert stated == {path.parent for path in sources()}


def test_the_allowed_arrows_have_no_cycle() -> None:
    done: set[str] = set()
    while len(done) < len(ALLOWED):
        ready = {part for part, targets in ALLOWED.items() if part not in done and targets <= done}
        assert ready, f"cycle among {sorted(ALLOWED.keys() - done)}"
        done |= ready


def test_no_stray_folder_hides_the_plugins() -> None:
    assert not {"benchmarks", "model_adapters", "configs"} & CORE


def test_asking_for_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, guieval.cli\n"
        "print([m for m in ('numpy', 'pydantic', 'aiohttp', 'PIL', 'yaml', 'rich') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
