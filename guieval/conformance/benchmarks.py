"""The conformance suite of benchmarks.

A benchmark is tested against the contract in :mod:`guieval.data.benchmark` alone, on an example that it writes in its own
format. Each benchmark's own tests check that this is the authors' format and that its labels are read correctly.
"""

from __future__ import annotations

import pickle
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guieval.actions import Point, Scroll, Unsupported
from guieval.conformance.damage import Damage, damages
from guieval.conformance.finding import Violation, run_check
from guieval.data.benchmark import ABCBenchmark
from guieval.data.files import read_bytes
from guieval.data.screenshots import read_screenshot, resolve
from guieval.errors import DataError, ScreenshotError, UsageError
from guieval.steps import Episode, StepTaskModel

MIDDLE = Point(500.0, 500.0)
DAMAGES = 200
"""Number of single values of an example that are damaged, one after the other."""
SHOWN = 8
"""Number of findings of one check that are reported individually."""
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def check_benchmark(
    kind: type[ABCBenchmark], folder: Path, *, data: Path | None = None, most_damages: int = DAMAGES
) -> list[Violation]:
    """All violations of the contract by the benchmark; empty if it conforms.

    The example it writes, and what is made of it, goes into new folders below ``folder``. With ``data``, the promises about
    reading are tested on that folder too, which stays as it is.
    """
    example = Path(tempfile.mkdtemp(prefix="example-", dir=folder))
    suite = _Suite(kind, folder, example, most_damages)
    findings = suite.run("attributes", _attributes)
    if broken := suite.run("example", _writes):
        return findings + broken
    for title, check in (*READING, ("wrong folder", _wrong_folders), ("options", _options), ("damage", _damage)):
        findings += suite.run(title, check)
    if data is not None:
        over = _Suite(kind, folder, data, 0)
        findings += [finding for title, check in READING for finding in over.run(title, check)]
    return findings


def check_benchmarks(names: Sequence[str] | None = None) -> list[Violation]:
    """:func:`check_benchmark` for the named benchmarks (default: all)."""
    from guieval.registry import benchmarks, list_benchmarks

    findings: list[Violation] = []
    for name in list_benchmarks() if names is None else names:
        with tempfile.TemporaryDirectory(prefix="guieval-check-") as folder:
            findings += check_benchmark(benchmarks()[name], Path(folder))
    return findings


@dataclass(frozen=True)
class _Suite:
    """The context of the checks: the benchmark, a folder to write to, and the data to read."""

    kind: type[ABCBenchmark]
    folder: Path
    data: Path
    most_damages: int

    def run(self, title: str, check: Callable[[_Suite], Iterator[str]]) -> list[Violation]:
        subject = getattr(self.kind, "name", self.kind.__name__)
        findings = run_check(subject, title, check, self)
        if len(findings) > SHOWN:
            findings[SHOWN:] = [Violation(subject, title, f"and {len(findings) - SHOWN} more of this kind")]
        return findings

    def open(self, root: Path | None = None, *, skip_damaged: bool = False) -> ABCBenchmark:
        benchmark = self.kind(self.data if root is None else root)
        return benchmark.skipping_damaged() if skip_damaged else benchmark

    def episodes(self) -> list[Episode]:
        return list(self.open())


# --- the checks: each yields one sentence per broken promise ---------------------------------------------------------


def _attributes(suite: _Suite) -> Iterator[str]:
    from guieval.evaluation import get_protocol

    kind = suite.kind
    if not _NAME.fullmatch(kind.name):
        yield f"the name {kind.name!r} is not made of lower-case letters, digits and single hyphens"
    for field in ("title", "source", "licence", "dataset", "paper") if kind.published else ("title", "source", "licence"):
        value = getattr(kind, field)
        if not value.strip() or "\n" in value or value.endswith("."):
            yield f"{field} is {value!r}; expected one line without a final stop"
    get_protocol(kind.protocol)
    if not (kind.__doc__ or "").strip():
        yield "its class has no docstring"
    for count in kind.published:
        if not count.source:
            yield f"the published count {count.name!r} has no source"
        if count.steps is not None and sum(count.types.values()) > count.steps:
            yield f"the published count {count.name!r} has more actions than steps"
    if len({count.name for count in kind.published}) < len(kind.published):
        yield "two published counts have the same name"


def _writes(suite: _Suite) -> Iterator[str]:
    suite.kind.write_example(suite.data)
    again = Path(tempfile.mkdtemp(prefix="again-", dir=suite.folder))
    suite.kind.write_example(again)
    first, second = _contents(suite.data), _contents(again)
    if not first:
        yield "write_example wrote no file"
    if different := sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name)):
        yield f"write_example wrote another {different[0]!r} the second time"


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): read_bytes(path) for path in folder.rglob("*") if path.is_file()}


def _same_twice(suite: _Suite) -> Iterator[str]:
    benchmark, other = suite.open(), suite.open()
    refs = list(benchmark.index())
    if refs != list(benchmark.index()) or refs != list(other.index()):
        yield "index() lists other episodes, or in another order, the second time"
        return
    if not refs:
        yield "index() lists no episode and raises no error"
    episodes = [benchmark.load(ref) for ref in refs]
    if episodes != list(benchmark):
        yield "iterating gives other episodes than loading what index() lists"
    backwards = [other.load(ref) for ref in reversed(refs)]
    if episodes != backwards[::-1]:
        yield "an episode depends on which were loaded before it"
    if pickle.loads(pickle.dumps(refs)) != refs:
        yield "a reference is another one after pickling"


def _index_is_true(suite: _Suite) -> Iterator[str]:
    benchmark = suite.open()
    refs = benchmark.index()
    for key, count in Counter(ref.key for ref in refs).items():
        if count > 1:
            yield f"index() lists {key} {count} times"
    for ref in refs:
        episode = benchmark.load(ref)
        if episode.key != ref.key or len(episode) != ref.length:
            yield f"index() says {ref.key} with {ref.length} steps, but {episode.key} with {len(episode)} is loaded"
        if splits := {step.split for step in episode.steps} - {ref.split}:
            yield f"index() says that {ref.key} is of split {ref.split!r}, but its steps say {', '.join(sorted(splits))}"


def _fields(suite: _Suite) -> Iterator[str]:
    kind = suite.kind
    for episode in suite.episodes():
        for step in episode.steps:
            for field in ("name", "dataset", "setting"):
                value, wanted = getattr(step, "benchmark" if field == "name" else field), getattr(kind, field)
                if value != wanted and (wanted or field != "dataset"):
                    yield f"{step.key}: {field} is {value!r}, but the benchmark says {wanted!r}"
            if step.setting == "low" and not step.low_level_instruction:
                yield f"{step.key}: has no low-level instruction, which is all that the model receives"
            for action in (step.action, *step.alternatives):
                if not isinstance(action, Unsupported) and action not in kind.action_space:
                    yield f"{step.key}: {action!r} is outside the benchmark's action space"
            if step.action in step.alternatives:
                yield f"{step.key}: the reference action is among its own alternatives"
            if any(box.x1 > box.x2 or box.y1 > box.y2 for box in step.boxes_of_screen):
                yield f"{step.key}: a box has its corners crossed"


def _round_trips(suite: _Suite) -> Iterator[str]:
    for episode in suite.episodes():
        for step in episode.steps:
            read = StepTaskModel.model_validate_json(step.model_dump_json())
            if read != step:
                yield f"{step.key}: is another record after JSON: {_difference(step, read)}"
            if pickle.loads(pickle.dumps(step)) != step:
                yield f"{step.key}: is another record after pickling"
        if Episode.model_validate_json(episode.model_dump_json()) != episode:
            yield f"{episode.key}: is another episode after JSON"


def _difference(one: StepTaskModel, other: StepTaskModel) -> str:
    fields = [name for name in StepTaskModel.model_fields if getattr(one, name) != getattr(other, name)]
    return ", ".join(f"{name} {getattr(one, name)!r:.100} became {getattr(other, name)!r:.100}" for name in fields)


def _references_score(suite: _Suite) -> Iterator[str]:
    from guieval.evaluation import ActionEvaluator

    evaluator = ActionEvaluator(suite.kind.protocol)
    for episode in suite.episodes():
        for step in episode.steps:
            for action in (step.action, *step.alternatives):
                outcome = evaluator.evaluate(step, action)
                if not outcome.exact_match:
                    kind = "reference" if action == step.action else "alternative"
                    yield f"{step.key}: the {kind} {action!r} is not right under {suite.kind.protocol}: {outcome.reason}"


def _screenshots(suite: _Suite) -> Iterator[str]:
    benchmark = suite.open()
    for episode in benchmark:
        for step in episode.steps:
            try:
                read_screenshot(benchmark.root, step.screenshot, step.screenshot_size)
            except ScreenshotError as error:
                yield f"{step.key}: {error}"


READING: tuple[tuple[str, Callable[[_Suite], Iterator[str]]], ...] = (
    ("same twice", _same_twice),
    ("index", _index_is_true),
    ("fields", _fields),
    ("round trip", _round_trips),
    ("reference scores", _references_score),
    ("screenshots", _screenshots),
)


def _wrong_folders(suite: _Suite) -> Iterator[str]:
    if not suite.kind.needs_data:
        return
    empty = Path(tempfile.mkdtemp(prefix="empty-", dir=suite.folder))
    foreign = Path(tempfile.mkdtemp(prefix="foreign-", dir=suite.folder))
    (foreign / "holiday.json").write_text('{"days": 12, "places": ["Rome"]}', encoding="utf-8")
    (foreign / "notes.txt").write_text("Buy milk.\n", encoding="utf-8")
    (foreign / "pictures" / "2024").mkdir(parents=True)
    (foreign / "pictures" / "2024" / "rome.json").write_text("[1, 2, 3]", encoding="utf-8")
    for what, folder in (("an empty folder", empty), ("a folder of something else", foreign)):
        try:
            refs = suite.open(folder).index()
        except UsageError as error:
            command = f"guieval data prepare {suite.kind.name}"
            yield from (f"{what}: {problem}" for problem in _unclear(str(error), command, folder))
        else:
            yield f"{what} was accepted, with {len(refs)} episodes"


def _unclear(sentence: str, *needed: object) -> Iterator[str]:
    if "\n" in sentence or not sentence.strip():
        yield f"the message is not one sentence: {sentence!r}"
    for name in map(str, needed):
        if name not in sentence:
            yield f"the message does not name {name!r}: {sentence!r}"


def _options(suite: _Suite) -> Iterator[str]:
    try:
        suite.kind(suite.data, no_such_option=1)
    except UsageError as error:
        yield from _unclear(str(error), "no_such_option")
    else:
        yield "an option that it does not have is accepted"


def _damage(suite: _Suite) -> Iterator[str]:
    if not suite.kind.needs_data:
        return
    whole = suite.episodes()
    for damage in damages(suite.data, suite.most_damages):
        before = read_bytes(damage.file)
        damage.file.write_bytes(damage.content)
        try:
            yield from _after(suite, damage, whole)
        finally:
            damage.file.write_bytes(before)
    yield from _without_images(suite, whole)


def _after(suite: _Suite, damage: Damage, whole: Sequence[Episode]) -> Iterator[str]:
    where = f"{damage.file.relative_to(suite.data)}: {damage.what}"
    try:
        read = suite.episodes()
    except (DataError, UsageError) as error:
        needed: list[object] = [damage.file.name]
        if damage.demand == "label" and damage.keys and not any(key.removesuffix("s") in str(error) for key in damage.keys):
            needed.append(damage.keys[-1])
        yield from (f"{where}: {problem}" for problem in _unclear(str(error), *needed))
        if isinstance(error, DataError) and damage.in_row:
            yield from (f"{where}: {problem}" for problem in _skipped(suite, damage, whole))
    except Exception as error:  # any other exception is a finding
        yield f"{where}: {type(error).__name__} instead of DataError: {error}"
    else:
        if problem := _silently(damage, whole, read):
            yield f"{where}: {problem}"


def _silently(damage: Damage, whole: Sequence[Episode], read: Sequence[Episode]) -> str:
    before = [step for episode in whole for step in episode.steps]
    after = [step for episode in read for step in episode.steps]
    if damage.demand == "survive" or before == after:
        return ""
    if damage.demand == "refuse":
        return "was read without an error, as other records"
    if len(before) != len(after):
        return f"was read without an error, as {len(after)} steps instead of {len(before)}"
    same = {"label": _same(_label), "word": _same_kind_and_place, "absent": _same_needed}[damage.demand]
    for one, other in zip(before, after, strict=True):
        if not same(one, other):
            return f"was read without an error: {one.key}: {_difference(one, other)}"
    return ""


def _same(part: Callable[[StepTaskModel], object]) -> Callable[[StepTaskModel, StepTaskModel], bool]:
    return lambda one, other: part(one) == part(other)


def _label(step: StepTaskModel) -> dict[str, Any]:
    """All of a record but ids, positions and extras."""
    return step.model_dump(exclude={"episode_id", "step_index", "episode_length", "extras"})


def _same_kind_and_place(one: StepTaskModel, other: StepTaskModel) -> bool:
    """Whether an exchanged word left what no word may change: the kind of action and, on the same screenshot, its place.

    A word that a format does not list may be an action without a unified name.
    """
    if isinstance(other.action, Unsupported):
        return True
    moved = {"point"} if one.screenshot != other.screenshot else set()
    if moved == set() and (one.targets, one.elements) != (other.targets, other.elements):
        return False
    texts = {"text", "app"}
    return one.action.model_dump(exclude=texts | moved) == other.action.model_dump(exclude=texts | moved)


def _same_needed(one: StepTaskModel, other: StepTaskModel) -> bool:
    """Whether what is never optional is the same; a duration is, and a scroll with a direction may start in the middle."""
    usual = {"duration"}
    if isinstance(other.action, Scroll) and other.action.point == MIDDLE:
        usual.add("point")

    def needed(step: StepTaskModel) -> tuple[object, ...]:
        return step.action.model_dump(exclude=usual), step.instruction, step.screenshot, step.screenshot_size

    return needed(one) == needed(other)


def _skipped(suite: _Suite, damage: Damage, whole: Sequence[Episode]) -> Iterator[str]:
    """The violations when damaged rows are skipped."""
    try:
        benchmark = suite.open(skip_damaged=True)
        rest = list(benchmark)
    except Exception as error:
        yield f"with skip_damaged, {type(error).__name__} is raised: {error}"
        return
    if not any(damage.file.name in str(error) for error in benchmark.skipped):
        yield f"with skip_damaged, .skipped does not name {damage.file.name!r}: {[str(error) for error in benchmark.skipped]}"
    if not rest:
        yield "with skip_damaged, nothing is left, though other rows are whole"
    known = {repr(_label(step)) for episode in whole for step in episode.steps}
    for episode in rest:
        for step in episode.steps:
            if repr(_label(step)) not in known:
                yield f"with skip_damaged, {step.key} is another step than before"


def _without_images(suite: _Suite, whole: Sequence[Episode]) -> Iterator[str]:
    """With a damaged or missing screenshot, a label may be unreadable (its size is needed), but nothing else may fail."""
    steps = [step for episode in whole for step in episode.steps]
    root = suite.open().root
    image = resolve(root, steps[0].screenshot)
    before = read_bytes(image)
    for what, content in (("cut off", before[:20]), ("missing", None)):
        image.unlink()
        if content is not None:
            image.write_bytes(content)
        try:
            read = suite.episodes()
            if len(read) != len(whole):
                yield f"with the screenshot {image.name!r} {what}, {len(read)} episodes are read instead of {len(whole)}"
        except DataError as error:
            yield from (f"with the screenshot {what}: {problem}" for problem in _unclear(str(error)))
        except Exception as error:
            yield f"with the screenshot {image.name!r} {what}: {type(error).__name__} instead of DataError: {error}"
        finally:
            image.write_bytes(before)
