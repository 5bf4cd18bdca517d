"""The architecture as a test: which module may import which, and what may be imported at the top of a module."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

from tests.conftest import REPOSITORY
from tests.rows import every_row

VOCABULARY = {"errors", "actions", "frames", "steps", "secrets", "settings", "wings", "given"}
CONTRACTS = VOCABULARY | {"data", "history", "evaluation", "models", "registry"}
RUNS = CONTRACTS | {"journal", "metrics"}
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "actions": set(),
    "frames": {"actions"},
    "steps": {"actions", "errors"},
    "secrets": {"errors"},
    "wings": {"errors"},
    "given": set(),
    "settings": {"errors", "secrets"},
    "data": VOCABULARY,
    "history": VOCABULARY,
    "evaluation": VOCABULARY | {"data"},
    "models": VOCABULARY | {"data", "history", "evaluation"},
    "registry": VOCABULARY | {"data", "models"},
    "metrics": VOCABULARY | {"data", "history", "evaluation"},
    "journal": VOCABULARY | {"data", "history"},
    "engines": VOCABULARY | {"data", "models", "journal"},
    "scoring": RUNS,
    "online": CONTRACTS,
    "running": RUNS | {"engines", "scoring", "online"},
    "rewards": CONTRACTS,
    "reports": RUNS | {"scoring", "online", "running"},
    "cli": RUNS | {"engines", "scoring", "online", "running", "reports"},
}
"""Which packages of the core each of them may import, in the order of docs/architecture.md."""
WINGS: dict[str, set[str]] = {
    **{name: set() for name in ("conformance", "connectors", "graphs", "exchange", "cluster", "perturbed")},
    **{"board": set(), "playground": {"training"}, "studies": {"training"}, "training": {"studies"}},
    **{"assistants": set(), "plugins": set()},
}
"""The wings, which the core finds by name, and the other wings that each may import."""
MAY_IMPORT_ALL = {"__main__", "__init__"}
PLUGINS_MAY = {
    "benchmarks": VOCABULARY | {"data", "evaluation", "playground"},
    "model_adapters": VOCABULARY | {"data", "history", "models"},
}
FOLDERS = ("guieval", *PLUGINS_MAY)
MAPPED = {"guieval.benchmarks", "guieval.model_adapters", "guieval.configs"}
"""Folders next to the package that are installed in it; what is in them is found by name."""
BUILT_ON_HEAVY = {("guieval", "training"), ("guieval", "playground", "tiny_policy")}
"""What stands in there subclasses the classes of training frameworks; only `guieval train` imports it."""
HEAVY = {
    *("torch", "vllm", "transformers", "trl", "verl", "ray", "matplotlib", "pandas", "sklearn"),
    *("rapidocr", "rapidocr_onnxruntime", "cv2", "onnxruntime"),
}
MOST_ROOMS, MOST_ARROWS, MOST_MODULES = 18, 80, 40
"""Rooms of the core, pairs of them of which one imports the other, and modules of a folder. A room is a folder of ``guieval/``
with all in it, or one of the modules at the top; but for those that are the vocabulary, which are one room."""
WORDS = {"errors", "actions", "frames", "steps", "secrets", "wings", "given"}
PAGE = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
TREE = re.search(r"^    guieval/\n((?:      .*\n)+)", PAGE, re.MULTILINE)
NAMED = sorted(set(re.findall(r"`((?:guieval|benchmarks|model_adapters|configs|docs|tests)/[\w./-]*)`", PAGE)))
"""What docs/architecture.md says: its tree of rooms, and the paths that it names."""
CORE = {path.stem for path in (REPOSITORY / "guieval").iterdir()}
"""The modules and packages of the core."""


@cache
def sources() -> dict[Path, str]:
    """The text of each file, by its path in the repository."""
    paths = sorted(path for folder in FOLDERS for path in (REPOSITORY / folder).rglob("*.py"))
    return {path.relative_to(REPOSITORY): path.read_text(encoding="utf-8") for path in paths}


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node, in functions and branches too; to walk the expressions as well takes ten times as long."""
    for block in ("body", "orelse", "handlers", "finalbody", "cases"):
        for node in getattr(tree, block, ()):
            yield node
            yield from statements(node)


def imported(node: ast.AST) -> set[str]:
    """Full dotted names of what a statement imports; relative ones begin with dots."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if not isinstance(node, ast.ImportFrom):
        return set()
    return {f"{'.' * node.level}{node.module}.{alias.name}".replace(".None", "") for alias in node.names}


@cache
def imports(code: str) -> set[str]:
    """Full dotted names of what a file imports anywhere; one that calls ``import_module`` imports what its strings name too."""
    names = set().union(*map(imported, statements(ast.parse(code))))
    if "import_module" in code:
        names.update(re.findall(r'import_module\("(guieval\.\w[\w.]*)"', code), re.findall(r'"(guieval(?:\.\w+){2,})"', code))
    return names - MAPPED


def wrong_imports(path: Path, code: str) -> Iterator[str]:
    """What a file of the repository imports and may not."""
    parts = {name.split(".")[1] for name in imports(code) if name.startswith("guieval.")}
    folder, part = path.parts[0], path.parts[1].removesuffix(".py")
    if folder != "guieval":
        yield from parts & CORE - PLUGINS_MAY[folder]
    elif part not in MAY_IMPORT_ALL:
        yield from parts & CORE - (ALLOWED.keys() | WINGS[part] if part in WINGS else ALLOWED[part]) - {part}
    yield from parts & PLUGINS_MAY.keys()  # they are found by name, and one plug-in never another
    if not {path.parts[:2], path.parts[:3]} & BUILT_ON_HEAVY:
        at_the_top = {name.split(".")[0] for name in set().union(*map(imported, ast.parse(code).body))}
        yield from (f"{name} at its top" for name in at_the_top & HEAVY)


@cache
def arrows() -> dict[str, set[str]]:
    """The modules that each module imports, by their full dotted names."""
    names = {path: ".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in sources()}
    names = {path: name if name.startswith("guieval") else f"guieval.{name}" for path, name in names.items()}
    known, found = set(names.values()), dict[str, set[str]]()
    for path, code in sources().items():
        package = names[path] if path.stem == "__init__" else names[path].rpartition(".")[0]
        full = [(package + name if name.startswith(".") else name).split(".") for name in imports(code)]
        parts = ([".".join(name[:end]) for end in range(len(name), 0, -1)] for name in full)
        found[names[path]] = {next((part for part in each if part in known), names[path]) for each in parts} - {names[path]}
    return found


def room(module: str) -> str:
    """The room of a module."""
    name = (module + ".__init__").split(".")[1]
    return "vocabulary" if name in WORDS else name


def test_every_import_is_allowed() -> None:
    packages = {path.parts[1].removesuffix(".py") for path in sources() if path.parts[0] == "guieval"}
    assert packages - MAY_IMPORT_ALL == ALLOWED.keys() | WINGS.keys(), "each package needs its row in ALLOWED or WINGS"
    assert [f"{path} imports {name}" for path, code in sources().items() for name in wrong_imports(path, code)] == []


def test_few_arrows_between_rooms_and_few_modules_in_a_folder() -> None:
    rooms = {room(f"guieval.{name}") for name in ALLOWED}
    pairs = {(room(start), room(end)) for start, ends in arrows().items() for end in ends}
    between = {pair for pair in pairs if pair[0] != pair[1] and rooms.issuperset(pair)}
    print(f"{len(between)} arrows between {len(rooms)} rooms of the core, {len(WINGS)} wings")
    assert len(rooms) <= MOST_ROOMS
    assert len(between) <= MOST_ARROWS, f"{len(between)} arrows: {sorted(between)}"
    sizes = Counter(path.parent for path in sources() if path.parts[0] == "guieval")
    assert [(str(folder), size) for folder, size in sizes.items() if size > MOST_MODULES] == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    TopologicalSorter(arrows()).prepare()  # raises an error with the circle


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
    assert [path for path, code in sources().items() if opens_pictures(ast.parse(code))] == [READER]


def test_a_wrong_import_is_found() -> None:
    def found(path: str, code: str) -> set[str]:
        return set(wrong_imports(Path(path), code))

    inside = "def f():\n    from guieval.running.a import b\n    import guieval.cli"
    assert found("guieval/data/a.py", inside) == {"running", "cli"}
    assert found("guieval/data/a.py", "from guieval import engines, errors, data") == {"engines"}
    nested = "try:\n    a\nexcept b:\n    import guieval.{}\nelse:\n    import guieval.{}\nfinally:\n    import guieval.{}"
    assert found("guieval/data/a.py", nested.format("cli", "online", "engines")) == {"cli", "online", "engines"}
    assert found("guieval/data/a.py", 'def f():\n    return import_module("guieval.reports.a").b()') == {"reports"}
    assert found("guieval/data/a.py", "match a:\n    case 1:\n        import guieval.cli") == {"cli"}
    assert found("guieval/cli/a.py", "import guieval.running\nfrom guieval.benchmarks.demo import a") == {"benchmarks"}
    assert found("guieval/cli/a.py", "import torch.nn, numpy\ndef f():\n    import vllm") == {"torch at its top"}
    assert found("guieval/training/a.py", "import torch, guieval.training.b") == set()
    assert found("benchmarks/a.py", "from guieval.models.parsing import a\nfrom .b import c") == {"models"}
    assert found("model_adapters/a.py", "from guieval.model_adapters.b import c") == {"model_adapters"}


def test_each_class_has_a_name_of_its_own() -> None:
    """Else a reader of one file takes a class for another."""
    classes = {
        (path, node.name)
        for path, code in sources().items()
        for node in statements(ast.parse(code))
        if isinstance(node, ast.ClassDef)
    }
    names = Counter(name for _, name in classes)
    assert sorted(f"{name} of {path}" for path, name in classes if names[name] > 1) == []


def test_no_function_has_more_than_sixty_lines() -> None:
    """Else it has more ideas than a reader keeps in mind."""
    functions = (
        (f"{path}: {node.name}", (node.end_lineno or 0) - node.lineno + 1)
        for path, code in sources().items()
        for node in statements(ast.parse(code))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert [(name, lines) for name, lines in functions if lines > 60] == []


def test_nobody_asks_for_the_kind_of_a_run() -> None:
    """Else each kind of run has code all over the place; what differs is in tables by kind, in the modules that use it."""
    asking = re.compile(r"\brun_kind\b|\bkind_of\([^)]*\) [!=]=|\bmode\.kind\b|\bkind [!=]= .(?:steps|tasks|online)\b")
    lines = ((path, line) for path, code in sources().items() for line in code.splitlines() if path.stem != "modes")
    assert [f"{path}: {line.strip()}" for path, line in lines if asking.search(line)] == []


def test_every_package_states_what_it_holds() -> None:
    stated = {
        path.parent for path, code in sources().items() if path.name == "__init__.py" and ast.get_docstring(ast.parse(code))
    }
    assert stated == {path.parent for path in sources()}


def test_no_stray_folder_hides_the_plugins() -> None:
    assert not {"benchmarks", "model_adapters", "configs"} & CORE


def test_asking_for_help_imports_nothing_heavy() -> None:
    heavy = "('numpy', 'pydantic', 'aiohttp', 'PIL', 'yaml', 'rich', 'scipy', 'sklearn')"
    code = f"import sys, guieval.cli\nloaded = [m for m in {heavy} if m in sys.modules]\nsys.argv[1:] = ['study', '--help']\n"
    code += (
        f"try: guieval.cli.main()\nexcept SystemExit: exit(loaded + [m for m in {heavy} if m in sys.modules and m != 'rich'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.strip() == "[]" and "rollout" in done.stdout


def in_the_tree() -> list[str]:
    assert TREE is not None
    names: list[str] = []
    for line in TREE.group(1).splitlines():
        names += re.split(r"\s{2,}", line.strip())[0].replace("/", "").split(" ")
    return names


def test_the_tree_has_every_room_below_what_it_imports() -> None:
    names = in_the_tree()
    assert names == [*ALLOWED, *WINGS]
    below = {name: names[:place] for place, name in enumerate(names)}
    assert [(name, end) for name in ALLOWED for end in ALLOWED[name] if end not in below[name]] == []


@every_row("path", NAMED)
def test_every_path_that_the_page_names_exists(path: str) -> None:
    place = REPOSITORY / path
    assert place.exists() or place.with_name(f"{place.name}.py").is_file()


def test_each_question_is_answered_by_one_or_two_files() -> None:
    rows = [line for line in PAGE[PAGE.index("## Where is it?") :].splitlines() if line.startswith("| ")][2:]
    assert len(rows) == 23 and [row for row in rows if not 1 <= sum(f"`{path}`" in row for path in NAMED) <= 2] == []
