"""Which episodes, and which of their steps, are counted: from what a benchmark lists and what was asked for to a plan.

The order is always the benchmark's. A sample set is filled from everything the data holds; split, subsets and a file of
episodes then narrow it down, and ``limit`` comes last. What came out is described in words, for results to show.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guieval.benchmark import ABCBenchmark, EpisodeRef
from guieval.config import RunConfig
from guieval.errors import DataError, UsageError, nearest
from guieval.sample_sets import Labels, SampleSet, StepLabel, fill, get_sample_set, sets_of, some
from guieval.steps import EpisodeKey, Plan

EVERY_SPLIT = "all"
"""The value of ``split`` that asks for all of them."""
DEFAULT_SPLIT = "test"


@dataclass(frozen=True)
class Choice:
    """What was asked for; see the fields of the same names in :class:`guieval.config.RunConfig`."""

    split: str | None = None
    subsets: tuple[str, ...] = ()
    sample_set: str | None = None
    episodes: Path | None = None
    limit: int | None = None
    seed: int = 0

    @classmethod
    def of(cls, config: RunConfig) -> Choice:
        """What a run's configuration asks for."""
        episodes = None if config.episodes is None else Path(config.episodes)
        return cls(config.split, config.subset, config.sample_set, episodes, config.limit, config.seed)

    @property
    def narrows(self) -> bool:
        """Whether anything was asked for at all."""
        return self != Choice(seed=self.seed)


@dataclass(frozen=True)
class Selection:
    """The chosen episodes in the benchmark's order, the steps of each that count, and both in words.

    ``title`` fits a table's head; ``text`` says exactly what is counted; ``damaged`` are the errors of episodes left out.
    """

    refs: Sequence[EpisodeRef]
    plan: Plan
    title: str
    text: str
    sha256: str | None = None
    damaged: Sequence[str] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """What a manifest keeps of it."""
        values: dict[str, Any] = {"title": self.title, "text": self.text, "sample_set_sha256": self.sha256}
        if self.damaged:
            values["damaged"] = {"episodes": len(self.damaged), "first": list(self.damaged[:10])}
        return values


def select(benchmark: ABCBenchmark, choice: Choice) -> Selection:
    """What ``choice`` asks for of a benchmark, whose damaged episodes are left out when its ``skip_damaged`` is set.

    Raises :class:`UsageError` for an unknown split, subset or sample set, a set of another data set, or one that the data
    cannot fill, and :class:`DataError` for a benchmark that lists an episode twice.
    """
    where = f"benchmark {benchmark.name!r} at {str(benchmark.root)!r}"
    benchmark.skipped.clear()  # listing names every damaged row anew
    refs = list(benchmark.index())
    damaged = [str(error) for error in benchmark.skipped]
    if damaged:
        _check_some(refs, where, damaged)
    _check_listed(refs, where)

    def labels(ref: EpisodeRef) -> Mapping[int, StepLabel]:
        return {task.step_index: StepLabel.of(task) for task in benchmark.load(ref).steps}

    def readable(ref: EpisodeRef) -> bool:
        try:
            benchmark.load(ref)
        except DataError as error:
            damaged.append(str(error))
            return False
        return True

    if choice.sample_set is None:
        return narrow(refs, choice, labels, where, readable=readable if benchmark.skip_damaged else None, damaged=damaged)
    if benchmark.skip_damaged:  # a set is filled by what can be read, or not at all: nothing of it is ever left out
        refs = list(filter(readable, refs))
    _check_some(refs, where, damaged)
    if damaged:
        where += f" ({len(damaged):,} damaged left out, the first because {damaged[0]})"
    dataset = benchmark.dataset or benchmark.load(refs[0]).steps[0].dataset
    check_dataset(choice.sample_set, dataset, f"benchmark {benchmark.name!r}")
    return narrow(refs, choice, labels, where)


def type_differences(benchmark: ABCBenchmark, selection: Selection, sample_set: SampleSet) -> list[str]:
    """What the labels of a set's steps have of other types than published, in words; nothing when they agree."""
    found: Counter[str] = Counter()
    for ref in selection.refs:
        steps = benchmark.load(ref).steps
        found.update(steps[index].action.type for index in selection.plan[ref.key])
    return [
        f"{found[name]:,} steps are {name}, and {count:,} in the set"
        for name, count in sample_set.types.items()
        if found[name] != count
    ]


def narrow(
    refs: Sequence[EpisodeRef],
    choice: Choice,
    labels: Labels,
    where: str,
    *,
    plan: Plan | None = None,
    readable: Callable[[EpisodeRef], bool] | None = None,
    damaged: Sequence[str] = (),
) -> Selection:
    """What ``choice`` asks for among ``refs``, by default all of their steps or, of a run, those in its ``plan``.

    Of what is asked for, episodes that are not ``readable`` (which adds its reason to ``damaged``) are left out. A sample set
    or a file may name more than the plan; whether that was run is for :func:`restrict` to say.
    """
    chosen: dict[EpisodeKey, Sequence[int]] = {ref.key: range(ref.length) for ref in refs} if plan is None else dict(plan)
    words: list[str] = []
    title: list[str] = []
    sha256 = None
    if choice.sample_set is not None:
        sample_set = get_sample_set(choice.sample_set)
        chosen = fill(sample_set, refs, labels, where)
        words.append(sample_set.describe())
        title.append(sample_set.name)
        sha256 = sample_set.sha256
    split = choice.split
    if split is None and choice.sample_set is None and choice.episodes is None and plan is None:
        split = DEFAULT_SPLIT if any(ref.split == DEFAULT_SPLIT for ref in refs) else EVERY_SPLIT
    conditions: list[Callable[[EpisodeRef], bool]] = []
    if split is not None and split != EVERY_SPLIT:
        _check_known("split", (split,), [ref.split for ref in refs], where, f", and {EVERY_SPLIT!r} takes every split")
        conditions.append(lambda ref: ref.split == split)
        words.append(f"split {split}")
    if choice.subsets:
        _check_known("subset", choice.subsets, [ref.key.subset for ref in refs], where)
        conditions.append(lambda ref: ref.key.subset in choice.subsets)
        words.append(f"subset{'s' * (len(choice.subsets) > 1)} {', '.join(choice.subsets)}")
    title += words[len(title) :]
    if choice.episodes is not None:
        listed = _listed(choice.episodes, refs)
        chosen = listed if choice.sample_set is None else _meet(chosen, listed)
        title.append(choice.episodes.name)
    kept = [ref for ref in refs if ref.key in chosen and all(condition(ref) for condition in conditions)]
    if not kept:
        among = " that the file lists" if choice.episodes is not None else ""
        raise UsageError(f"{where} holds no episode{among} of {' and '.join(words)}{_elsewhere(refs, choice)}")
    if readable is not None:
        kept = list(filter(readable, kept))
        _check_some(kept, where, damaged)
    counted = f"all {len(kept):,} episodes" if len(kept) > 1 else "the one episode"
    if choice.limit is not None and choice.limit < len(kept):
        counted = f"{choice.limit:,} episode{'s' * (choice.limit > 1)}, drawn with seed {choice.seed} from the {len(kept):,}"
        title.append(f"{choice.limit} of {len(kept)}")
        drawn = sorted(random.Random(choice.seed).sample(range(len(kept)), choice.limit))
        kept = [kept[index] for index in drawn]
    final: Plan = {ref.key: chosen[ref.key] for ref in kept}
    text = f"{counted} of {', '.join(words)}" if words else counted
    if choice.episodes is not None:
        text += f", as listed in {choice.episodes.name}"
    if damaged:
        text += f", {len(damaged):,} damaged left out"
    return Selection(kept, final, ", ".join(title) or "all", text, sha256, tuple(damaged))


def _check_listed(refs: Sequence[EpisodeRef], where: str) -> None:
    """Refuse an index that is empty, or that no run could keep apart."""
    if not refs:
        raise UsageError(f"{where} holds no episode")
    seen: set[EpisodeKey] = set()
    for ref in refs:
        if ref.key in seen or ref.length < 1:
            raise DataError(f"{where} lists episode {ref.key} {'twice' if ref.length > 0 else 'without steps'}")
        seen.add(ref.key)


def _check_some(readable: Sequence[EpisodeRef], where: str, damaged: Sequence[str]) -> None:
    if not readable:
        raise UsageError(f"{where} holds no episode asked for that can be read; the first is damaged: {damaged[0]}")


def check_dataset(name: str, dataset: str, whose: str) -> None:
    """Refuse a sample set of another data set than ``whose``, a benchmark's or a run's."""
    sample_set = get_sample_set(name)
    if dataset not in sample_set.datasets:
        known = sets_of(dataset)
        there = f"; its sets are {', '.join(known)}" if known else f"; no set of {dataset} is known"
        raise UsageError(
            f"sample set {sample_set.name!r} is of {', '.join(sample_set.datasets)}, "
            f"but the data set of {whose} is {dataset}{there}"
        )


def _check_known(kind: str, asked: Iterable[str], there: Iterable[str], where: str, more: str = "") -> None:
    counts = Counter(there)
    for name in asked:
        if name not in counts:
            known = ", ".join(repr(each) for each in sorted(counts))
            raise UsageError(f"{where} has no {kind} {name!r}{nearest(name, counts)}; it has {known}{more}")


def _elsewhere(refs: Sequence[EpisodeRef], choice: Choice) -> str:
    """A hint for a subset that lies in another split than the usual one."""
    if choice.split is None and choice.subsets:
        splits = sorted({ref.split for ref in refs if ref.key.subset in choice.subsets})
        return f"; it lies in split {', '.join(splits)}: add --split {splits[0]}" if splits else ""
    return ""


def _meet(one: Plan, other: Plan) -> dict[EpisodeKey, Sequence[int]]:
    """The steps that two plans share."""
    both: dict[EpisodeKey, Sequence[int]] = {}
    for key, steps in one.items():
        if key in other:
            inside = other[key]
            shared = steps if inside == steps else [index for index in steps if index in inside]
            if shared:
                both[key] = shared
    return both


def _listed(file: Path, refs: Sequence[EpisodeRef]) -> dict[EpisodeKey, Sequence[int]]:
    """What a file names: one ``episode``, ``subset/episode`` or ``episode#step`` a line, or a JSON list of these."""
    by_name: defaultdict[str, list[EpisodeRef]] = defaultdict(list)
    for ref in refs:
        by_name[ref.key.episode_id].append(ref)
        if ref.key.subset:
            by_name[f"{ref.key.subset}/{ref.key.episode_id}"].append(ref)
    whole: set[EpisodeKey] = set()
    single: defaultdict[EpisodeKey, set[int]] = defaultdict(set)
    lengths: dict[EpisodeKey, int] = {}
    for place, entry in _entries(file):
        name, index = _split_step(entry, by_name)
        found = by_name.get(name, [])
        if not found:
            raise UsageError(f"{place}: there is no episode {name!r}{nearest(name, by_name)}")
        if len(found) > 1:
            subsets = ", ".join(f"{ref.key.subset}/{name}" for ref in found)
            raise UsageError(f"{place}: the episode {name!r} is in several subsets; write one of {subsets}")
        ref = found[0]
        lengths[ref.key] = ref.length
        if index is None:
            whole.add(ref.key)
        elif index < ref.length:
            single[ref.key].add(index)
        else:
            raise UsageError(f"{place}: episode {name!r} has {ref.length} steps, counted from 0, and no step {index}")
    if not lengths:
        raise UsageError(f"the file {str(file)!r} lists no episode")
    return {key: range(length) if key in whole else sorted(single[key]) for key, length in lengths.items()}


_MOST_DIGITS = 9
"""Of a step's index; Python reads no number of thousands of digits."""


def _split_step(entry: str, known: Mapping[str, object]) -> tuple[str, int | None]:
    """An entry's episode and its step; an id may itself hold the character that separates them."""
    name, separator, index = entry.rpartition("#")
    if entry in known or not separator or not (index.isascii() and index.isdigit()) or len(index) > _MOST_DIGITS:
        return entry, None
    return name, int(index)


def _entries(file: Path) -> list[tuple[str, str]]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"the list of episodes {str(file)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the list of episodes {str(file)!r} is no UTF-8 text") from None
    if text.lstrip().startswith("["):
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"the list of episodes {str(file)!r} is no JSON list: {error}") from None
        for number, value in enumerate(values, 1):
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise UsageError(f"{str(file)!r}, entry {number}: expected an episode id, got {value!r:.80}")
        return [(f"{str(file)!r}, entry {number}", str(value)) for number, value in enumerate(values, 1)]
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [(f"{str(file)!r}, line {number}", line) for number, line in lines if line]


def missing_from(plan: Plan, ran: Plan) -> list[str]:
    """Names of episodes, or steps, of ``plan`` that are not in ``ran``."""
    lacking: list[str] = []
    for key, steps in plan.items():
        if key not in ran:
            lacking.append(str(key))
        elif absent := [index for index in steps if index not in ran[key]]:
            lacking += [f"{key}#{index}" for index in absent]
    return lacking


def restrict(selection: Selection, ran: Plan, run: str) -> Selection:
    """The selection, which must lie within what was run; :class:`UsageError` says what does not."""
    if lacking := missing_from(selection.plan, ran):
        raise UsageError(f"{run} lacks {len(lacking):,} of what is asked for ({selection.text}): {some(lacking)}")
    return selection
