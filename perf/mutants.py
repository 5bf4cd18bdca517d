"""Whether a change of the tests loses what they find: small faults are planted one at a time, and a test has to notice each.

200 faults were drawn before any test changed, 20 of each of ten parts of guieval, and are kept in ``perf/mutants.jsonl``. Since
lines move, a kept one is found again by its text and its function; what the later source no longer holds is reported as gone.
cosmic-ray makes the faults (8.7.0 made the kept ones); those that no test could or every test would notice are not drawn: see
:func:`drawable`. Coverage with one context per test file says which files can notice a fault; lines that run when a module is
imported count as covered by every file that runs something else of the module. A failing test is run again: it kills a fault
if it fails a second time with the fault, alone, and passes without it. Tests run in a copy of the checkout.

    python -m perf.mutants draw --seed 28                 # needs cosmic-ray, in any environment: pip install cosmic-ray
    python -m perf.mutants run --checkout DIR --coverage FILE --times times.*.jsonl --out new.jsonl
    python -m perf.mutants table old.jsonl new.jsonl all.jsonl

FILE is a combined data file of coverage.py, its contexts the paths of test files (``import`` while none runs); a line of the
times is ``[node id, processor seconds, those of its children, seconds]``. Both are of the checkout that is tried. A second
``run`` goes on where the first one stopped.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import hashlib
import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent
KEPT = Path(__file__).with_suffix(".jsonl")
STRATA = ("evaluation", "metrics", "history", "parsing", "frames", "journal", "scoring", "rewards", "engines", "running")
EACH, PER_FUNCTION = 20, 2
FIRST = 12
"""So many files, the promising ones, are tried before the others."""
PATIENCE, SLACK = 10, 60.0
"""A test file may take so many times its measured seconds, and so many seconds more; then the fault counts as noticed."""
UNKNOWN_SECONDS = 5.0
LARGE = 100
JOB = "GUIEVAL_PLANTED_FAULT"
"""The environment variable that tells the watched pytest what it runs; by it what a test left running is found as well."""
WRONG_COPY = 97

Position = tuple[int, int]
Span = tuple[Position, Position]
Coverage = dict[str, dict[int, set[str]]]
"""Of each file (its path below ``guieval/``) and line, the test files that ran it."""


@dataclass(frozen=True)
class Mutant:
    """One fault: in ``function`` of ``file``, ``removed`` (the ``nth`` time, from 0, ``of`` as many) becomes ``added``.

    Both are without the indentation of the first removed line, which may be another one later. ``line`` and ``occurrence`` are
    those of the source that was drawn from; ``sha`` is of the removed text alone. ``function`` is empty at the module's level.
    """

    id: str
    stratum: str
    file: str
    function: str
    line: int
    operator: str
    occurrence: int
    removed: str
    added: str
    nth: int
    of: int
    sha: str


@dataclass(frozen=True, order=True)
class Candidate:
    """A fault that can be drawn."""

    file: str
    start: Position
    operator: str
    occurrence: int
    function: str

    @property
    def stratum(self) -> str:
        return Path(self.file).parts[1].removesuffix(".py")

    @property
    def family(self) -> str:
        """Operators of one kind, so that the kinds with many operators do not fill the list."""
        name = self.operator.partition("/")[2]
        if kind := re.match(r"Replace(Binary|Comparison|Unary)", name):
            return kind[1]
        return "/".join(sorted(name.removeprefix("Replace").split("With"))) if "With" in name else name


Plan = Callable[[Candidate], Mutant | None]
"""Makes the fault; nothing if there is none."""


# ---- the source


class Block(NamedTuple):
    """A function or a class: its dotted name, its lines with the decorators, and the first line of its body."""

    name: str
    first: int
    last: int
    body: int
    is_class: bool
    cached: bool


def blocks(tree: ast.AST, outer: str = "") -> Iterator[Block]:
    """Every function and class, outer ones first."""
    for node in ast.iter_child_nodes(tree):
        name = outer
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{outer}.{node.name}" if outer else node.name
            cached = any(re.search(r"\bcache\b|lru_cache", ast.unparse(each)) for each in node.decorator_list)
            yield Block(
                name, _first(node), node.end_lineno or node.lineno, _first(node.body[0]), isinstance(node, ast.ClassDef), cached
            )
        yield from blocks(node, name)


def block_of(found: Sequence[Block], line: int) -> Block | None:
    """The innermost one that holds the line."""
    return max((each for each in found if each.first <= line <= each.last), key=lambda each: each.first, default=None)


def _first(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def statement(tree: ast.AST, line: int) -> range:
    """The lines of the statement that holds ``line``; of a compound one those before its body."""
    found = range(line, line + 1)
    size = sys.maxsize
    for node in ast.walk(tree):
        if not isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            continue
        start = node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno
        body: list[ast.stmt] = getattr(node, "body", [])
        end = max(start, _first(body[0]) - 1) if body else getattr(node, "end_lineno", start)
        if start <= line <= end and end - start < size:
            found, size = range(start, end + 1), end - start
    return found


def runs_at_import(found: Sequence[Block], line: int) -> bool:
    """Whether a line belongs to a module, a class, a decorator or a default, or runs once for all tests since it is cached."""
    block = block_of(found, line)
    return block is None or block.is_class or block.cached or line < block.body


# ---- drawing


def drawable(source: str) -> Callable[[str, Span], bool]:
    """Which positions an operator may change, by rule.

    Left out are: annotations, imports, aliases and unions of types, and what only type checkers or ``python -m`` run;
    decorators that only inform a type checker or save time; ``frozen``, ``slots``, ``kw_only``, and ``strict`` of ``zip``,
    which guard; what an error quotes; numbers of 100 and more, since cosmic-ray moves a number by one, which no test of a
    limit or a size should see; operators that the operands do not have (a path or a text joined in another way raises at
    once); and replacements by an operator of another kind: arithmetic stays arithmetic, sets stay sets, an order stays an
    order, ``is`` does not become ``==``, and a sign is only dropped.
    """
    tree = ast.parse(source)
    lines = source.splitlines()

    def position(line: int | None, offset: int | None) -> Position:
        assert line is not None and offset is not None
        return line, len(lines[line - 1].encode()[:offset].decode())

    def span(node: ast.expr | ast.stmt | ast.keyword) -> Span:
        return position(node.lineno, node.col_offset), position(node.end_lineno, node.end_col_offset)

    closed: list[Span] = []
    open_binary: list[Span] = []
    for node in ast.walk(tree):
        closed += [span(each) for each in _unseen(node)]
        if isinstance(node, ast.BinOp) and not (isinstance(node.op, ast.BitOr) and _is_type(node)):
            texts = (ast.JoinedStr, ast.List, ast.Tuple)
            if not any(isinstance(e, texts) or isinstance(_value(e), str | bytes) for e in (node.left, node.right)):
                open_binary.append((span(node.left)[1], span(node.right)[0]))

    def allowed(operator: str, where: Span) -> bool:
        start, end = where
        if any(first <= start < last for first, last in closed):
            return False
        text = lines[start[0] - 1][start[1] : end[1] if end[0] == start[0] else None]
        name = operator.partition("/")[2]
        if name.startswith("ReplaceBinary"):
            return _same_kind(name) and any(first <= start < last for first, last in open_binary)
        if name.startswith("ReplaceComparison"):
            return _same_kind(name)
        if name == "NumberReplacer":
            return bool(abs(ast.literal_eval(text)) < LARGE)
        if name == "ExceptionReplacer":
            return text.isidentifier()
        if name == "RemoveDecorator":
            return not _SILENT.match(text)
        return not name.startswith("ReplaceUnary") or "_Delete_" in name

    return allowed


_SILENT = re.compile(r"@([\w.]+\.)?(overload|override|final|abstractmethod|runtime_checkable|cache|lru_cache)\b")
"""Decorators that change nothing, or nothing but the time."""
_KINDS = (
    {"Add", "Sub", "Mul", "Div", "FloorDiv", "Mod"},
    {"BitOr", "BitAnd", "BitXor"},
    {"Eq", "NotEq"},
    {"Lt", "LtE", "Gt", "GtE"},
    {"Is", "IsNot"},
)


def _same_kind(name: str) -> bool:
    _, before, after = name.split("_")
    return any({before, after} <= kind for kind in _KINDS)


def _unseen(node: ast.AST) -> Iterator[ast.expr | ast.stmt | ast.keyword]:
    """The parts of a node of which no test can see a change."""
    match node:
        case ast.arg(annotation=ast.expr() as annotation) | ast.FunctionDef(returns=ast.expr() as annotation):
            yield annotation
        case ast.AsyncFunctionDef(returns=ast.expr() as annotation):
            yield annotation
        case ast.AnnAssign():
            yield node.annotation
            if node.value and "TypeAlias" in ast.unparse(node.annotation):
                yield node.value
        case ast.Assign(value=value) if isinstance(value, ast.BinOp | ast.Subscript) and _is_type(value):
            yield value
        case ast.Import() | ast.ImportFrom():
            yield node
        case ast.If(test=test) if "TYPE_CHECKING" in ast.unparse(test) or "__name__" in ast.unparse(test):
            yield node
        case ast.Call(func=ast.Name(id="zip"), keywords=keywords):
            yield from (each for each in keywords if each.arg == "strict")
        case ast.Call(keywords=keywords) | ast.ClassDef(keywords=keywords):
            yield from (each for each in keywords if each.arg in ("slots", "kw_only", "frozen"))
        case ast.Raise():
            yield from (each for each in ast.walk(node) if isinstance(each, ast.JoinedStr))


def _is_type(node: ast.expr) -> bool:
    match node:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _is_type(left) and _is_type(right)
        case ast.Subscript(value=value):
            return _is_type(value)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return isinstance(getattr(builtins, name, None), type) or (name[:1].isupper() and not name.isupper())
        case ast.Constant(value=None):
            return True
    return False


def _value(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None


def difference(before: str, after: str) -> tuple[int, list[str], list[str]]:
    """Where two sources begin to differ (a line from 0), and the lines there of the one and of the other."""
    old, new = before.splitlines(), after.splitlines()
    start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    end = next(
        (i for i, (a, b) in enumerate(zip(reversed(old[start:]), reversed(new[start:]), strict=False)) if a != b),
        min(len(old), len(new)) - start,
    )
    removed, added = old[start : len(old) - end], new[start : len(new) - end]
    while removed and (not removed[0].strip() or removed[0].lstrip().startswith("#")):  # goes along with a decorator
        kept = removed.pop(0)
        added = added[1:] if added and added[0] == kept else added
        start += 1
    return start, removed, added


def planned(candidate: Candidate, source: str, changed: str) -> Mutant | None:
    """The fault as it is kept, its ``id`` left open; nothing if it is no Python or says the same."""
    try:
        if ast.dump(ast.parse(changed)) == ast.dump(ast.parse(source)):
            return None
        compile(changed, candidate.file, "exec", dont_inherit=True)
    except SyntaxError:
        return None
    start, removed, added = difference(source, changed)
    if not removed:
        return None
    indent = removed[0][: len(removed[0]) - len(removed[0].lstrip())]
    old, new = ("\n".join(line.removeprefix(indent) for line in lines) for lines in (removed, added))
    places = matches(source.splitlines(), old, spans(source, candidate.function))
    return Mutant(
        id="",
        stratum=candidate.stratum,
        file=candidate.file,
        function=candidate.function,
        line=start + 1,
        operator=candidate.operator,
        occurrence=candidate.occurrence,
        removed=old,
        added=new,
        nth=places.index(start),
        of=len(places),
        sha=digest(old),
    )


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def draw(candidates: Iterable[Candidate], seed: int, plan: Plan, each: int = EACH) -> list[Mutant]:
    """``each`` faults of every stratum: one of each family in turn, at most two per function and one per line.

    A stratum that has too few functions for that gets as few more per function as it needs.
    """
    by_stratum: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in sorted(candidates):
        by_stratum[candidate.stratum].append(candidate)
    drawn = []
    for stratum in STRATA:
        for limit in range(PER_FUNCTION, each + 1):
            found = _draw(by_stratum[stratum], Random(f"{seed}/{stratum}"), plan, each, limit)
            if len(found) == each:
                break
        found.sort(key=lambda mutant: (mutant.file, mutant.line))
        drawn += [Mutant(**{**asdict(mutant), "id": f"{stratum}-{place:02}"}) for place, mutant in enumerate(found, 1)]
    return drawn


def _draw(candidates: Sequence[Candidate], source: Random, plan: Plan, each: int, limit: int) -> list[Mutant]:
    families: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        families[candidate.family].append(candidate)
    for members in families.values():
        source.shuffle(members)
    found: list[Mutant] = []
    functions: Counter[tuple[str, str]] = Counter()
    lines: set[tuple[str, int]] = set()
    while len(found) < each and any(families.values()):
        turn = [name for name, members in families.items() if members]
        source.shuffle(turn)
        for name in turn:
            while families[name] and len(found) < each:
                one = families[name].pop()
                function = (one.file, one.function)
                if functions[function] == limit or (one.file, one.start[0]) in lines or not (mutant := plan(one)):
                    continue
                found.append(mutant)
                functions[function] += 1
                lines.add((one.file, one.start[0]))
                break
    return found


def _cosmic_ray(name: str) -> Any:
    try:
        import_module("parso")  # cosmic-ray 8.7 imports it in an order that only works once it is there
        return import_module(f"cosmic_ray.{name}")
    except ImportError:
        raise SystemExit("draw needs cosmic-ray, in any environment: pip install cosmic-ray==8.7.0") from None


def enumerate_all(checkout: Path) -> list[Candidate]:
    """What cosmic-ray can make of the strata and :func:`drawable` lets pass; operators with arguments change at random."""
    plugins, tools = _cosmic_ray("plugins"), _cosmic_ray("ast")
    classes = {name: plugins.get_operator(name) for name in sorted(plugins.operator_names())}
    operators = [(name, operator()) for name, operator in classes.items() if not operator.arguments()]
    found = []
    for stratum in STRATA:
        root = checkout / "guieval" / stratum
        for path in sorted(root.rglob("*.py")) or [root.with_suffix(".py")]:
            source = path.read_text(encoding="utf-8")
            allowed, inside = drawable(source), list(blocks(ast.parse(source)))
            nodes = list(tools.ast_nodes(tools.get_ast(source)))
            for name, operator in operators:
                places = (place for node in nodes for place in operator.mutation_positions(node))
                for occurrence, (start, end) in enumerate(places):
                    if allowed(name, (start, end)):
                        block = block_of(inside, start[0])
                        file = path.relative_to(checkout).as_posix()
                        found.append(Candidate(file, tuple(start), name, occurrence, block.name if block else ""))
    return found


def draw_all(checkout: Path, seed: int) -> list[Mutant]:
    plugins, mutating = _cosmic_ray("plugins"), _cosmic_ray("mutating")

    def plan(candidate: Candidate) -> Mutant | None:
        source = (checkout / candidate.file).read_text(encoding="utf-8")
        changed = mutating.mutate_code(source, plugins.get_operator(candidate.operator)(), candidate.occurrence)
        return changed and planned(candidate, source, changed)

    candidates = enumerate_all(checkout)
    print(f"{len(candidates):,} faults can be drawn")
    return draw(candidates, seed, plan)


# ---- finding one again


class Place(NamedTuple):
    """Where a fault is now: the file, relative to the checkout, and its first line from 0."""

    file: str
    at: int


def spans(source: str, function: str) -> list[range]:
    """The lines, from 0, of the function or class; of the whole module if there is no name."""
    if not function:
        return [range(len(source.splitlines()))]
    return [range(each.first - 1, each.last) for each in blocks(ast.parse(source)) if each.name == function]


def matches(lines: Sequence[str], text: str, within: Iterable[range]) -> list[int]:
    """Where lines are that read like ``text`` but for indentation."""
    wanted = [line.strip() for line in text.splitlines()]
    size = len(wanted)
    return [
        at
        for span in within
        for at in range(span.start, span.stop - size + 1)
        if [line.strip() for line in lines[at : at + size]] == wanted
    ]


def located(mutant: Mutant, checkout: Path) -> Place | None:
    """The place: in its function; else the only one that reads so in its file; else the only one in a function of that name."""
    own = checkout / mutant.file
    if own.is_file():
        source = own.read_text(encoding="utf-8")
        places = matches(source.splitlines(), mutant.removed, spans(source, mutant.function))
        if len(places) == mutant.of:
            return Place(mutant.file, places[mutant.nth])
        places = matches(source.splitlines(), mutant.removed, spans(source, ""))
        if len(places) == 1:
            return Place(mutant.file, places[0])
    found = []
    for path in sorted((checkout / "guieval").rglob("*.py")) if mutant.function else ():
        source = path.read_text(encoding="utf-8")
        if path != own and mutant.removed.split("\n")[0] in source:
            places = matches(source.splitlines(), mutant.removed, spans(source, mutant.function))
            found += [Place(path.relative_to(checkout).as_posix(), at) for at in places]
    return found[0] if len(found) == 1 else None


def planted(mutant: Mutant, source: str, at: int) -> str:
    """The source with the fault, indented as the lines are that it replaces."""
    lines = source.splitlines(keepends=True)
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    added = [f"{indent}{line}\n" for line in mutant.added.splitlines()]
    return "".join([*lines[:at], *added, *lines[at + len(mutant.removed.splitlines()) :]])


# ---- which test files can notice it


def read_coverage(path: Path) -> Coverage:
    """Read a data file of coverage.py (its documented tables); files of an installed copy count like those of the checkout."""
    found: Coverage = defaultdict(lambda: defaultdict(set))
    query = (
        "select file.path, context.context, line_bits.numbits from line_bits"
        " join file on file.id = line_bits.file_id join context on context.id = line_bits.context_id"
    )
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as data:
        for name, context, bits in data.execute(query):
            lines = found["guieval/" + name.rpartition("/guieval/")[2]]
            for at, byte in enumerate(bits):
                for bit in range(8):
                    if byte >> bit & 1:
                        lines[at * 8 + bit].add(
                            context.rpartition("|")[2]
                        )  # before the bar: the context that is never switched
    if not found:
        raise SystemExit(f"{path} has no lines with contexts")
    return found


def read_times(paths: Iterable[Path]) -> dict[str, float]:
    """Seconds of each test file."""
    seconds: dict[str, float] = defaultdict(float)
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            node, *_, wall = json.loads(line)
            seconds[node.partition("::")[0]] += wall
    return seconds


def covering(coverage: Coverage, checkout: Path, place: Place) -> set[str]:
    """The test files that run the statement at a place; those that run other parts of its module if it runs at import.

    The latter also when nothing is known to run it, since a killed process leaves no coverage; if the whole module only runs at
    import, they are those that run something of its package.
    """
    tree = ast.parse((checkout / place.file).read_text(encoding="utf-8"))
    lines = coverage.get(place.file, {})
    found = set().union(*(lines.get(line, ()) for line in statement(tree, place.at + 1)))
    at_import = "import" in found or runs_at_import(list(blocks(tree)), place.at + 1)
    if at_import or not found:
        package = [name for name in coverage if at_import and Path(name).parts[:2] == Path(place.file).parts[:2]]
        found |= _users(coverage, checkout, [place.file]) or _users(coverage, checkout, package)
    return {each for each in found if each.startswith("tests/") and (checkout / each).is_file()}


def _users(coverage: Coverage, checkout: Path, files: Iterable[str]) -> set[str]:
    """The test files that run lines which no import runs."""
    found: set[str] = set()
    for file in files:
        if file in coverage and (checkout / file).is_file():
            inside = list(blocks(ast.parse((checkout / file).read_text(encoding="utf-8"))))
            for line, names in coverage[file].items():
                if "import" not in names and not runs_at_import(inside, line):
                    found |= names
    return found


def ordered(files: Iterable[str], place: Place, seconds: dict[str, float]) -> list[str]:
    """Cheap files first; one of the same name, or in the folder of the same name, counts as cheaper."""
    module = Path(place.file)
    words = {word for word in (*module.parts[1:-1], module.stem) if word != "__init__"}

    def cost(file: str) -> tuple[float, str]:
        test = Path(file)
        named = module.stem in test.stem or module.stem == test.parent.name
        beside = not words.isdisjoint(test.parts)
        return (seconds.get(file, UNKNOWN_SECONDS) + 0.5) * (0.05 if named else 0.3 if beside else 1.0), file

    return sorted(files, key=cost)


# ---- the watched pytest: this file is also a plug-in of the pytest that runs in the copy


def _job() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(os.environ[JOB])
    return found


def _tell(**event: object) -> None:
    with open(_job()["events"], "a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\n")


def _ours(origin: str | None) -> bool:
    return origin is not None and Path(origin).is_relative_to(_job()["checkout"])


def pytest_configure(config: Any) -> None:
    spec = find_spec("guieval")
    if spec is None or not _ours(spec.origin):
        os._exit(WRONG_COPY)


def pytest_collection_finish(session: Any) -> None:
    order = {file: place for place, file in enumerate(_job()["order"])}
    session.items.sort(key=lambda item: order.get(item.nodeid.partition("::")[0], -1))


def pytest_runtest_logstart(nodeid: str) -> None:
    _tell(begun=nodeid)


def pytest_runtest_logreport(report: Any) -> None:
    if report.failed:
        _tell(failed=report.nodeid)


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        _tell(failed=report.nodeid)


def pytest_sessionfinish() -> None:
    module = sys.modules.get(_job()["module"])
    if module is not None and not _ours(module.__file__):
        os._exit(WRONG_COPY)


# ---- running


class Ran(NamedTuple):
    """How a selection ended: ``passed``, ``failed`` or ``timeout``; and the test that decided."""

    result: str
    by: str = ""


@dataclass
class Copy:
    """A checkout's files and an environment in which they, and nothing else, are guieval."""

    folder: Path
    checkout: Path
    python: Path
    seconds: dict[str, float]
    options: list[str] = field(default_factory=list)
    writes: Iterator[int] = field(default_factory=lambda: count(1_000_000_000, 10))

    def write(self, file: str, text: str) -> None:
        """Write a source file so that no earlier bytecode is taken for it: Python compares the second and the size."""
        (self.checkout / file).write_text(text, encoding="utf-8")
        moment = next(self.writes)
        os.utime(self.checkout / file, (moment, moment))

    @contextmanager
    def fault(self, mutant: Mutant, place: Place) -> Iterator[None]:
        source = (self.checkout / place.file).read_text(encoding="utf-8")
        self.write(place.file, planted(mutant, source, place.at))
        try:
            yield
        finally:
            self.write(place.file, source)

    def tests(self, targets: Sequence[str], module: str, *options: str) -> Ran:
        """Run tests in one process until the first failure."""
        import psutil

        events, scratch, log = self.folder / "events", self.folder / "t", self.folder / "log"
        events.write_text("")
        scratch.mkdir()
        job = {"events": str(events), "checkout": str(self.checkout), "module": module, "order": list(targets)}
        environment = os.environ | {JOB: json.dumps(job), "TMPDIR": str(scratch), "PYTHONDONTWRITEBYTECODE": ""}
        command = [str(self.python), "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "guieval_mutants"]
        command += ["--hypothesis-seed=0", *self.options, *options, *targets]
        with log.open("w") as output:
            process = subprocess.Popen(
                command,
                cwd=self.checkout,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            return self._watch(process, events, log)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for other in psutil.process_iter():  # what a failed test left running
                with suppress(psutil.Error):
                    if other.environ().get(JOB) == environment[JOB]:
                        other.kill()
            shutil.rmtree(scratch, ignore_errors=True)
            shutil.rmtree(self.checkout / ".hypothesis", ignore_errors=True)  # an example that failed is none of the next fault

    def _watch(self, process: subprocess.Popen[bytes], events: Path, log: Path) -> Ran:
        current, began, failed = "", time.monotonic(), ""
        with events.open(encoding="utf-8") as told:
            while True:
                code = process.poll()
                for line in told:
                    event = json.loads(line)
                    failed = failed or event.get("failed", "")
                    begun = event.get("begun", current)
                    if begun.partition("::")[0] != current.partition("::")[0]:
                        began = time.monotonic()
                    current = begun
                if code == WRONG_COPY:
                    raise SystemExit(f"the tests import guieval from elsewhere than {self.checkout}")
                if code is not None:
                    if code in (0, 5):  # 5: every test was deselected
                        return Ran("passed")
                    last = log.read_text(errors="replace").strip().rpartition("\n")[2][:200]
                    return Ran("failed", failed or f"pytest ended with {code} after {current or 'nothing'}: {last}")
                expected = self.seconds.get(current.partition("::")[0], UNKNOWN_SECONDS)
                if time.monotonic() - began > PATIENCE * expected + SLACK:
                    return Ran("timeout", current)
                time.sleep(0.1)


@contextmanager
def copied(checkout: Path, seconds: dict[str, float], options: list[str]) -> Iterator[Copy]:
    """Copy what git knows or would add, and make an environment for it: the packages of the checkout's, another guieval."""
    checkout = checkout.resolve()
    folder = Path(
        tempfile.mkdtemp(prefix="m")
    ).resolve()  # short: tests measure lines with paths in them, and sockets have limits
    try:
        copy = folder / checkout.name
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=checkout, stdout=subprocess.PIPE, text=True, check=True).stdout
        for name in filter(None, listed.split("\0")):
            if (checkout / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(checkout / name, copy / name)
        if (checkout.parent / "shared").is_dir():  # real data, which tests look for there
            (folder / "shared").symlink_to(checkout.parent / "shared")
        yield Copy(folder, copy, _environment(checkout, copy), seconds, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _environment(checkout: Path, copy: Path) -> Path:
    """A virtual environment with the packages of the checkout's, and its import finder of guieval pointed at the copy."""
    old, new = checkout / ".venv", copy / ".venv"
    subprocess.run([old / "bin" / "python", "-m", "venv", "--without-pip", new], check=True)
    packages, own = (next((each / "lib").glob("python3*")) / "site-packages" for each in (old, new))
    (own / "packages.pth").write_text(f"{packages}\n")  # no .pth file in there is read: the checkout's guieval stays out
    for path in [*packages.glob("__editable__*guieval*"), *packages.glob("guieval*.pth")]:
        (own / path.name).write_text(path.read_text(encoding="utf-8").replace(str(checkout), str(copy)), encoding="utf-8")
    shutil.copy2(Path(__file__), own / "guieval_mutants.py")
    for script in (old / "bin").iterdir():
        target = new / "bin" / script.name
        if not target.exists() and script.is_file() and not script.is_symlink():
            try:
                target.write_text(script.read_text(encoding="utf-8").replace(str(old), str(new)), encoding="utf-8")
            except UnicodeDecodeError:  # a program, such as ruff
                target.symlink_to(script)
            else:
                shutil.copymode(script, target)
    for extra in ("share", "etc"):  # the templates of nbconvert and the like
        if (old / extra).is_dir() and not (new / extra).exists():
            (new / extra).symlink_to(old / extra)
    return new / "bin" / "python"


@dataclass
class Trial:
    """Tries one fault after the other; what it learns about the tests serves the next ones."""

    copy: Copy
    coverage: Coverage
    failing: set[str]
    """Tests that fail without a fault; those found are written to the results, for the reader."""
    excluded: set[str]
    limit: float | None
    sound: set[str] = field(default_factory=set)
    """Tests that passed without a fault, alone."""

    def of(self, mutant: Mutant, passed: Sequence[str] = ()) -> dict[str, Any]:
        """The line of results; ``passed`` are the files that an earlier try got through."""
        place = located(mutant, self.copy.checkout)
        if place is None:
            return {"id": mutant.id, "result": "gone"}
        files = covering(self.coverage, self.copy.checkout, place) - self.excluded
        if not files:
            return {"id": mutant.id, "result": "uncovered"}
        began = time.monotonic()
        seconds = self.copy.seconds
        rest = [file for file in ordered(files, place, seconds) if file not in set(passed)]
        affordable, cost = 0, 0.0
        while affordable < len(rest) and (self.limit is None or affordable < FIRST or cost < self.limit):
            cost += seconds.get(rest[affordable], UNKNOWN_SECONDS)
            affordable += 1
        ran = Ran("passed")
        for stage in (rest[:FIRST], rest[FIRST:affordable]):
            ran = self._stage(mutant, place, stage)
            if ran.result != "passed":
                break
        result = {"failed": "killed", "passed": "survived"}.get(ran.result, ran.result)
        row: dict[str, Any] = {"id": mutant.id, "result": result}
        if ran.by:
            row["by"] = ran.by
        elif affordable < len(rest):
            row |= {"result": "open", "passed": [*passed, *rest[:affordable]]}
        return row | {"files": len(files), "seconds": round(time.monotonic() - began, 1)}

    def _stage(self, mutant: Mutant, place: Place, files: Sequence[str]) -> Ran:
        module = place.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        unstable: set[str] = set()
        while files:
            left_out = [f"--deselect={test}" for test in sorted(self.failing | unstable)]
            with self.copy.fault(mutant, place):
                ran = self.copy.tests(files, module, *left_out)
                file = ran.by.partition("::")[0]
                if ran.result != "failed" or file not in files:
                    return ran  # a pytest that did not come to a test was stopped by the fault
                at = files.index(file)
                again = self.copy.tests([ran.by], module, *left_out)
            if again.result == "passed":
                unstable.add(ran.by)
            elif ran.by in self.sound or self.copy.tests([ran.by], module).result == "passed":
                self.sound.add(ran.by)
                return ran
            else:
                self.failing.add(ran.by)
            files = files[at:] if "::" in ran.by else files[at + 1 :]
        return Ran("passed")


def run(arguments: argparse.Namespace) -> None:
    if arguments.nice:
        os.nice(15)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped; the same command goes on"))  # after the copy is removed
    mutants = read(arguments.mutants)
    if unknown := set(arguments.only or ()) - {mutant.id for mutant in mutants}:
        raise SystemExit(f"no such fault in {arguments.mutants}: {', '.join(sorted(unknown))}")
    lines = [json.loads(line) for line in arguments.out.read_text().splitlines()] if arguments.out.exists() else []
    rows = {line["id"]: line for line in lines if "id" in line}
    excluded = {name for name in arguments.exclude if "::" not in name}
    failing = set(arguments.exclude) - excluded  # not those that an earlier run found: another program may have held their port
    with (
        copied(arguments.checkout, read_times(arguments.times), shlex.split(arguments.select)) as copy,
        arguments.out.open("a", encoding="utf-8") as out,
    ):
        trial = Trial(copy, read_coverage(arguments.coverage), failing, excluded, arguments.limit)
        for mutant in mutants:
            known = rows.get(mutant.id, {"result": "open", "passed": ()})
            if known["result"] != "open" or (arguments.only and mutant.id not in arguments.only):
                continue
            before = set(trial.failing)
            row = trial.of(mutant, known["passed"])
            for line in [*({"fails": test} for test in sorted(trial.failing - before)), row]:
                out.write(json.dumps(line) + "\n")
            out.flush()
            told = [row["id"], row["result"], row.get("by", ""), f"{row.get('seconds', 0):.0f} s"]
            print(time.strftime("%H:%M"), *filter(None, told), flush=True)


# ---- the table


def results(path: Path) -> dict[str, dict[str, Any]]:
    """The last line of each fault."""
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {line["id"]: line for line in lines if "id" in line}


def killed(rows: dict[str, dict[str, Any]]) -> set[str]:
    return {name for name, row in rows.items() if row["result"] in ("killed", "timeout")}


def table(mutants: Sequence[Mutant], suites: Sequence[dict[str, dict[str, Any]]]) -> str:
    """What each suite notices of what was drawn; the first is the old one."""
    names = ("old", "make test", "test-all")[: len(suites)]
    found = [killed(rows) for rows in suites]
    lines = [" | ".join(["| part", "drawn", *names]) + " |", "|".join(["| ---", *[" ---:"] * (len(names) + 1)]) + " |"]
    for stratum in (*STRATA, "all"):
        own = {mutant.id for mutant in mutants if stratum in (mutant.stratum, "all")}
        lines.append(" | ".join([f"| {stratum}", str(len(own)), *(str(len(own & each)) for each in found)]) + " |")
    for name, each in zip(names[1:], found[1:], strict=True):
        kept = found[0] & each
        share = f" ({len(kept) / len(found[0]):.1%})" if found[0] else ""
        lines += ["", f"{name} kills {len(kept)} of the {len(found[0])} that the old suite kills{share}; not:"]
        lines += [f"- {_line(mutant)}: {suites[0][mutant.id].get('by')}" for mutant in mutants if mutant.id in found[0] - each]
    rows = suites[-1]
    lines += ["", f"not killed by {names[-1]}:"]
    for mutant in mutants:
        result = rows.get(mutant.id, {"result": "not run"})["result"]
        if mutant.id not in found[-1]:
            lines.append(f"- {result}: {_line(mutant)}")
    return "\n".join(lines)


def _line(mutant: Mutant) -> str:
    removed, added = (" ".join(text.split()) for text in (mutant.removed, mutant.added))
    return f"{mutant.id}, {mutant.file}:{mutant.line} `{removed}` -> `{added}`"


def read(path: Path = KEPT) -> list[Mutant]:
    return [Mutant(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Draw, run or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=Path, default=KEPT, help="the list of faults")
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw", help="draw the list")
    drawing.add_argument("--seed", type=int, required=True)
    drawing.add_argument("--checkout", type=Path, default=REPOSITORY)
    running = commands.add_parser("run", help="plant each, and run the tests that cover it")
    running.add_argument("--checkout", type=Path, required=True, help="with its environment in .venv")
    running.add_argument("--coverage", type=Path, required=True)
    running.add_argument("--times", type=Path, nargs="+", required=True)
    running.add_argument("--out", type=Path, required=True, help="one line per fault; those that are there are not tried again")
    running.add_argument("--select", default="", help="further arguments of pytest, in one string")
    running.add_argument("--only", nargs="+", metavar="ID")
    running.add_argument("--exclude", nargs="+", default=[], help="test files, or single tests, that fail without a fault")
    running.add_argument("--limit", type=float, help="expected seconds per fault; what needs more is 'open' until a later run")
    running.add_argument("--nice", action="store_true", help="let everything else go first")
    comparing = commands.add_parser("table", help="compare the results of two or three suites")
    comparing.add_argument("results", type=Path, nargs="+", metavar="OLD NEW [ALL]")
    arguments = parser.parse_args()
    if arguments.command == "draw":
        drawn = draw_all(arguments.checkout.resolve(), arguments.seed)
        arguments.mutants.write_text("".join(json.dumps(asdict(each)) + "\n" for each in drawn), encoding="utf-8")
        print(f"{len(drawn)} drawn with seed {arguments.seed}: {arguments.mutants}")
    elif arguments.command == "run":
        run(arguments)
    else:
        print(table(read(arguments.mutants), [results(path) for path in arguments.results]))


if __name__ == "__main__":
    main()
