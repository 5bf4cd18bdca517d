"""Chooses the episodes and steps of a run: from a benchmark's episodes and the user's choice to a plan.

The order is always the benchmark's. A sample set is filled from all of the data; split, subsets and a file of episodes then
narrow it down, and ``limit`` comes last. The result includes a description in words for reports.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guieval.data.benchmark import DEFAULT_SPLIT, ABCBenchmark, EpisodeRef, Listing
from guieval.data.editions import Edition, LabelDigest, labels_of
from guieval.data.files import read_text
from guieval.data.sample_sets import Labels, SampleSet, StepLabel, fill, get_sample_set, sets_of, some
from guieval.errors import DataError, UsageError, nearest
from guieval.steps import EpisodeKey, Plan, StepKey

EVERY_SPLIT = "all"
"""The value of ``split`` for all splits."""


@dataclass(frozen=True)
class Choice:
    """The user's choice; see the settings ``data`` of a run, whose fields have the same names."""

    split: str | None = None
    subsets: tuple[str, ...] = ()
    sample_set: str | None = None
    episodes: Path | None = None
    limit: int | None = None
    seed: int = 0

    @property
    def narrows(self) -> bool:
        return self != Choice(seed=self.seed)


@dataclass(frozen=True)
class Selection:
    """The chosen episodes in the benchmark's order, their steps that count, and a description of both.

    ``title`` is for a table's head; ``text`` is the exact description; ``damaged`` are the errors of episodes left out.
    """

    refs: Sequence[EpisodeRef]
    plan: Plan
    title: str
    text: str
    sha256: str | None = None
    damaged: Sequence[str] = field(default=())

    def to_json(self) -> dict[str, Any]:
        values: dict[str, Any] = {"title": self.title, "text": self.text, "sample_set_sha256": self.sha256}
        if self.damaged:
            values["damaged"] = {"episodes": len(self.damaged), "first": list(self.damaged[:10])}
        return values


def select(benchmark: Listing[Any], choice: Choice, unusable: Mapping[EpisodeKey, str] | None = None) -> Selection:
    """Apply ``choice`` to a benchmark; damaged episodes are left out if its ``skip_damaged`` is set.

    So are the ``unusable`` episodes, which are given with their reasons, e.g. a missing screenshot. Raises
    :class:`UsageError` for an unknown split, subset or sample set, a set of another data set, or one that the data cannot
    fill, and :class:`DataError` for a benchmark that lists an episode twice.
    """
    where = f"benchmark {benchmark.name!r} at {str(benchmark.root)!r}"
    benchmark.skipped.clear()  # index() adds every damaged row again
    refs = list(benchmark.index())
    damaged = [str(error) for error in benchmark.skipped]
    if damaged:
        _check_some(refs, where, damaged)
    _check_listed(refs, where)

    def labels(ref: EpisodeRef) -> Mapping[int, StepLabel]:
        return StepLabel.of_steps(benchmark.load(ref).steps)

    def readable(ref: EpisodeRef) -> bool:
        if unusable and ref.key in unusable:
            damaged.append(unusable[ref.key])
            return False
        try:
            benchmark.load(ref)
        except DataError as error:
            damaged.append(str(error))
            return False
        return True

    if choice.sample_set is None:
        return narrow(refs, choice, labels, where, readable=readable if benchmark.skip_damaged else None, damaged=damaged)
    if benchmark.skip_damaged:  # a set must be filled from readable episodes: none of its own is ever left out
        refs = list(filter(readable, refs))
    _check_some(refs, where, damaged)
    if damaged:
        where += f" ({len(damaged):,} damaged left out, first: {damaged[0]})"
    dataset = benchmark.dataset or benchmark.load(refs[0]).steps[0].dataset
    check_dataset(choice.sample_set, dataset, f"benchmark {benchmark.name!r}")
    return narrow(refs, choice, labels, where)


def labels_of_set(benchmark: ABCBenchmark, selection: Selection, sample_set: SampleSet) -> tuple[Edition, list[str]]:
    """The edition of a set's labels, and how the action types of its steps differ from the published ones, if they do.

    The edition is the one whose digest is in the set, or what can be said of the single steps.
    """
    labels: dict[StepKey, LabelDigest] = {}
    types: Counter[str] = Counter()
    dataset = sample_set.datasets[0]
    for ref in selection.refs:
        steps = benchmark.load(ref).steps
        dataset, chosen = steps[0].dataset, [steps[index] for index in selection.plan[ref.key]]
        labels |= labels_of(chosen)
        types.update(step.action.type for step in chosen)
    edition = Edition.of(dataset, labels)
    held = tuple(name for name, digest in sample_set.editions.items() if digest == edition.digest)
    unlike = ((name, count) for name, count in sample_set.types.items() if types[name] != count)
    differences = [f"{types[name]:,} steps are {name}, and {count:,} in the set" for name, count in unlike]
    return (edition.model_copy(update={"names": held}) if held else edition), differences


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
    """Apply ``choice`` to ``refs`` and all of their steps, or to the ``plan`` of a run.

    Chosen episodes that are not ``readable`` (which adds its reason to ``damaged``) are left out. A sample set or a file may
    name more than the plan; :func:`restrict` checks that.
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
        title.append(f"episodes in {choice.episodes.name}")
    kept = [ref for ref in refs if ref.key in chosen and all(condition(ref) for condition in conditions)]
    if not kept:
        among = " that the file lists" if choice.episodes is not None else ""
        raise UsageError(f"{where} has no episode{among} of {' and '.join(words)}{_elsewhere(refs, choice)}")
    if readable is not None:
        kept = list(filter(readable, kept))
        _check_some(kept, where, damaged)
    kept, counted = _drawn(kept, choice, title)
    final: Plan = {ref.key: chosen[ref.key] for ref in kept}
    text = f"{counted} of {', '.join(words)}" if words else counted
    if choice.episodes is not None:
        text += f", as listed in {choice.episodes.name}"
    if damaged:
        text += f", {len(damaged):,} damaged left out"
    return Selection(kept, final, ", ".join(title) or "all", text, sha256, tuple(damaged))


def _drawn(kept: list[EpisodeRef], choice: Choice, title: list[str]) -> tuple[list[EpisodeRef], str]:
    """The episodes within the limit, drawn with the seed, and how many they are in words; a sample is added to ``title``."""
    if choice.limit is None or choice.limit >= len(kept):
        return kept, f"all {len(kept):,} episodes" if len(kept) > 1 else "the only episode"
    title.append(f"{choice.limit} of {len(kept)}")
    drawn = sorted(random.Random(choice.seed).sample(range(len(kept)), choice.limit))
    text = f"{choice.limit:,} episode{'s' * (choice.limit > 1)}, drawn with seed {choice.seed} from the {len(kept):,}"
    return [kept[index] for index in drawn], text


def _check_listed(refs: Sequence[EpisodeRef], where: str) -> None:
    if not refs:
        raise UsageError(f"{where} has no episode")
    seen: set[EpisodeKey] = set()
    for ref in refs:
        if ref.key in seen or ref.length < 1:
            raise DataError(f"{where} lists episode {ref.key} {'twice' if ref.length > 0 else 'without steps'}")
        seen.add(ref.key)


def _check_some(readable: Sequence[EpisodeRef], where: str, damaged: Sequence[str]) -> None:
    if not readable:
        raise UsageError(f"{where} has no readable episode among those selected; the first damaged one: {damaged[0]}")


def check_dataset(name: str, dataset: str, whose: str) -> None:
    """Refuse a sample set of another data set than that of ``whose``, a benchmark or a run."""
    sample_set = get_sample_set(name)
    if dataset not in sample_set.datasets:
        known = sets_of(dataset)
        there = f"; its sets are {', '.join(known)}" if known else f"; no set of {dataset} is known"
        raise UsageError(
            f"sample set {sample_set.name!r} is of {', '.join(sample_set.datasets)}, "
            f"but the data set of {whose} is {dataset}{there}"
        )


def _check_known(kind: str, names: Iterable[str], present: Iterable[str], where: str, more: str = "") -> None:
    counts = Counter(present)
    for name in names:
        if name not in counts:
            if not any(counts):
                raise UsageError(f"{where} has no {kind}s; leave out --{kind} {name}")
            known = ", ".join(map(repr, sorted(filter(None, counts))))
            raise UsageError(f"{where} has no {kind} {name!r}{nearest(name, counts)}; it has {known}{more}")


def _elsewhere(refs: Sequence[EpisodeRef], choice: Choice) -> str:
    """A hint for a subset that is in another split than the default one."""
    if choice.split is None and choice.subsets:
        splits = sorted({ref.split for ref in refs if ref.key.subset in choice.subsets})
        return f"; this subset is in split {', '.join(splits)}: add --split {splits[0]}" if splits else ""
    return ""


def _meet(one: Plan, other: Plan) -> dict[EpisodeKey, Sequence[int]]:
    both: dict[EpisodeKey, Sequence[int]] = {}
    for key, steps in one.items():
        if key in other:
            inside = other[key]
            shared = steps if inside == steps else [index for index in steps if index in inside]
            if shared:
                both[key] = shared
    return both


def _listed(file: Path, refs: Sequence[EpisodeRef]) -> dict[EpisodeKey, Sequence[int]]:
    """The episodes in a file: one ``episode``, ``subset/episode`` or ``episode#step`` per line, or a JSON list of these."""
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
        matches = by_name.get(name, [])
        if not matches:
            raise UsageError(f"{place}: unknown episode {name!r}{nearest(name, by_name)}")
        if len(matches) > 1:
            subsets = ", ".join(f"{ref.key.subset}/{name}" for ref in matches)
            raise UsageError(f"{place}: the episode {name!r} is in several subsets; write one of {subsets}")
        ref = matches[0]
        lengths[ref.key] = ref.length
        if index is None:
            whole.add(ref.key)
        elif index < ref.length:
            single[ref.key].add(index)
        else:
            raise UsageError(f"{place}: episode {name!r} has no step {index}; its {ref.length} steps are counted from 0")
    if not lengths:
        raise UsageError(f"the file {str(file)!r} lists no episode")
    return {key: range(length) if key in whole else sorted(single[key]) for key, length in lengths.items()}


_MOST_DIGITS = 9
"""Limit for a step's index, since Python refuses to parse numbers of thousands of digits."""


def _split_step(entry: str, known: Mapping[str, object]) -> tuple[str, int | None]:
    """The episode and the step of an entry; an id may itself contain the separator."""
    name, separator, index = entry.rpartition("#")
    if entry in known or not separator or not (index.isascii() and index.isdigit()) or len(index) > _MOST_DIGITS:
        return entry, None
    return name, int(index)


def _entries(file: Path) -> list[tuple[str, str]]:
    try:
        text = read_text(file, encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"the list of episodes {str(file)!r} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"the list of episodes {str(file)!r} is not UTF-8 text") from None
    if text.lstrip().startswith("["):
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"the list of episodes {str(file)!r} is not a JSON list: {error}") from None
        for number, value in enumerate(values, 1):
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise UsageError(f"{str(file)!r}, entry {number}: expected an episode id, got {value!r:.80}")
        return [(f"{str(file)!r}, entry {number}", str(value)) for number, value in enumerate(values, 1)]
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return [(f"{str(file)!r}, line {number}", line) for number, line in lines if line]


def missing_from(plan: Plan, ran: Plan) -> list[str]:
    """Names of the episodes or steps of ``plan`` that are not in ``ran``."""
    lacking: list[str] = []
    for key, steps in plan.items():
        if key not in ran:
            lacking.append(str(key))
        elif absent := [index for index in steps if index not in ran[key]]:
            lacking += [f"{key}#{index}" for index in absent]
    return lacking


def restrict(selection: Selection, ran: Plan, run: str) -> Selection:
    """The selection, after a check that all of it was run; :class:`UsageError` names what was not."""
    if lacking := missing_from(selection.plan, ran):
        raise UsageError(
            f"{run} does not hold {len(lacking):,} of the selected steps or episodes ({selection.text}): {some(lacking)}"
        )
    return selection
