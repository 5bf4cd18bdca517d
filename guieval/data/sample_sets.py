"""Named sample sets: the exact steps of a data set that a published number is computed on.

A set is one JSON file in ``configs/sample_sets``: either the ids of its episodes (with the steps that do not count, or those
that do), or, if ids are not public or the set is a whole split, a part of the data with the published counts. In both cases
the data is checked: a set is filled completely or not at all. This module reads no data; :func:`fill` takes the episodes
that a benchmark lists, or that a run has recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, NamedTuple, Self, TypeAlias

from pydantic import Field, model_validator

from guieval.actions import ActionType, Frozen
from guieval.data.benchmark import EpisodeRef
from guieval.data.shipped import config_folder
from guieval.data.user_files import read_record
from guieval.errors import UsageError, nearest
from guieval.steps import EpisodeKey, StepTaskModel

SHOWN = 5
"""Number of episodes or steps that an error names before it counts the rest."""


class StepLabel(NamedTuple):
    """The properties of a step that a set may depend on: the unified type of its reference, and its group labels."""

    type: str
    groups: Mapping[str, str]

    @classmethod
    def of(cls, task: StepTaskModel) -> Self:
        return cls(task.action.type, task.groups)

    @classmethod
    def of_steps(cls, steps: Iterable[StepTaskModel]) -> dict[int, Self]:
        return {task.step_index: cls.of(task) for task in steps}


Labels: TypeAlias = Callable[[EpisodeRef], Mapping[int, StepLabel]]
"""The labels of an episode's steps by index, without unknown steps."""


class Unnamed(Frozen):
    """Episodes of a set whose ids are not public: all of ``split``, or the remaining ones if the data has no such split.

    ``steps`` excludes finish steps and steps whose reference has one of ``without_types``, which do not count.
    """

    split: str
    episodes: int = Field(ge=1)
    steps: int = Field(ge=1)
    without_types: tuple[ActionType, ...] = ()


class SampleSet(Frozen):
    """The steps that count, with their name and publication.

    ``episodes`` and ``steps`` are the numbers that count. ``types`` counts steps by the unified type of their reference, if
    published.
    """

    name: str
    title: str
    datasets: tuple[str, ...] = Field(min_length=1, description="data sets (not benchmarks) that it is part of")
    used_by: str = Field(description="publications that report numbers on it")
    source: str = Field(description="source of its ids or its counts")
    note: str = ""
    episodes: int = Field(ge=1)
    steps: int = Field(ge=1)
    types: dict[ActionType, int] = Field(default_factory=dict)
    split: str | None = Field(None, description="without ids: the split that it consists of")
    subset: str | None = Field(None, description="without ids: the subset that it consists of")
    groups: dict[str, str] = Field({}, description="without ids: the group labels of its steps")
    ids: dict[str, Annotated[int, Field(ge=1)]] = Field(
        {}, description="episode ids, with their numbers of steps before any finish step"
    )
    without: dict[str, tuple[int, ...]] = Field({}, description="steps of these episodes that do not count")
    only: dict[str, tuple[int, ...]] = Field({}, description="the only steps of these episodes that count")
    finish: bool = Field(False, description="a finish step at the end of every episode, added by the preparation, counts")
    unnamed: Unnamed | None = None
    editions: dict[str, str] = Field({}, description="digests of its labels in the known editions of the data set")
    sha256: str | None = Field(None, description="of the sorted lines episode_id#step_index of the named steps")

    @model_validator(mode="after")
    def _consistent(self) -> SampleSet:
        if not self.ids:
            if self.sha256 or self.without or self.only or self.finish or self.unnamed:
                raise ValueError("without ids there is nothing to hash, to leave out or to add to")
            return self
        if self.split or self.subset or self.groups:
            raise ValueError("a set selects its episodes by ids, or by split, subset and groups, not by both")
        if stray := (self.without.keys() | self.only.keys()) - self.ids.keys():
            raise ValueError(f"{min(stray)!r} is in without or only, but not among the ids")
        if twice := self.without.keys() & self.only.keys():
            raise ValueError(f"{min(twice)!r} is both in without and in only")
        for name, indices in (*self.without.items(), *self.only.items()):
            there = range(self.ids[name] + self.finish)
            if list(indices) != sorted(set(indices) & set(there)):
                raise ValueError(f"steps of {name!r} must ascend and be below {len(there)}, got {list(indices)}")
        if empty := [name for name in self.ids if not self.counted(name)]:
            raise ValueError(f"no step of {empty[0]!r} counts")
        named = {name: self.counted(name) for name in self.ids}
        rest = self.unnamed
        episodes = len(named) + (rest.episodes if rest else 0)
        steps = sum(map(len, named.values())) + (rest.steps + rest.episodes * self.finish if rest else 0)
        if (episodes, steps) != (self.episodes, self.steps):
            raise ValueError(f"its ids make {episodes} episodes and {steps} steps, not {self.episodes} and {self.steps}")
        if self.sha256 != step_digest(named):
            raise ValueError(f"the hash of its ids is {step_digest(named)}, not {self.sha256}")
        return self

    def counted(self, episode_id: str) -> Sequence[int]:
        """The steps of a named episode that count, including the finish step."""
        if episode_id in self.only:
            return self.only[episode_id]
        steps = range(self.ids[episode_id] + self.finish)
        left_out = set(self.without.get(episode_id, ()))
        return [index for index in steps if index not in left_out] if left_out else steps

    def describe(self) -> str:
        """Its name and the beginning of its hash, for results."""
        return f"sample set {self.name}" + (
            f" (sha256 {self.sha256[:12]})" if self.sha256 else " (a whole part, by its counts)"
        )


def step_digest(steps: Mapping[str, Iterable[int]]) -> str:
    """The SHA-256 over the lines ``episode_id#step_index`` of all steps, sorted as text."""
    lines = sorted(f"{name}#{index}\n" for name, indices in steps.items() for index in indices)
    return sha256("".join(lines).encode()).hexdigest()


def sample_sets_folder() -> Path:
    """The folder of the shipped sample sets."""
    return config_folder() / "sample_sets"


def list_sample_sets() -> list[str]:
    """Names of all sets."""
    return sorted(path.stem for path in sample_sets_folder().glob("*.json"))


@cache
def get_sample_set(name: str) -> SampleSet:
    """The set called ``name``, or the one in a file if ``name`` is a path that ends in ``.json``.

    Raises :class:`UsageError` with the nearest name, or with the problem in the file.
    """
    if name.endswith(".json"):
        path = Path(name)
    else:
        path = sample_sets_folder() / f"{name}.json"
        if name not in (known := list_sample_sets()):
            raise UsageError(f"unknown sample set {name!r}{nearest(name, known)}; `guieval data sample-sets` lists them")
    sample_set = read_record(path, SampleSet, "the sample set")
    if sample_set.name != path.stem:  # results show only the name, so a file must not use another set's name
        raise UsageError(f"the sample set {str(path)!r} has the name {sample_set.name!r}; it must have its file's name")
    return sample_set


def sets_of(dataset: str) -> list[str]:
    """Names of the sets of one data set."""
    return [name for name in list_sample_sets() if dataset in get_sample_set(name).datasets]


def fill(sample_set: SampleSet, refs: Sequence[EpisodeRef], labels: Labels, data: str) -> dict[EpisodeKey, Sequence[int]]:
    """The set's steps among ``refs``, in their order; ``data`` describes the searched data in errors.

    ``labels`` is called only if the set depends on labels. Raises :class:`UsageError` with the number and the names of
    missing episodes or steps.
    """
    if sample_set.ids:
        return _NamedEpisodes(sample_set, refs, labels, data).plan()
    return _whole(sample_set, refs, labels, data)


def some(names: Sequence[object]) -> str:
    """The first few names, and the number of further ones."""
    rest = len(names) - SHOWN
    return ", ".join(map(str, names[:SHOWN])) + (f" and {rest:,} more" if rest > 0 else "")


def _whole(sample_set: SampleSet, refs: Sequence[EpisodeRef], labels: Labels, data: str) -> dict[EpisodeKey, Sequence[int]]:
    part = [ref for ref in refs if sample_set.split in (None, ref.split) and sample_set.subset in (None, ref.key.subset)]
    plan: dict[EpisodeKey, Sequence[int]] = {}
    for ref in part:
        steps: Sequence[int] = range(ref.length)
        if sample_set.groups:
            known = labels(ref)
            steps = [index for index in steps if sample_set.groups.items() <= _label(known, index, ref).groups.items()]
        if steps:
            plan[ref.key] = steps
    episodes, count = len(plan), sum(map(len, plan.values()))
    if (episodes, count) != (sample_set.episodes, sample_set.steps):
        raise UsageError(
            f"sample set {sample_set.name!r} is {_wanted(sample_set)} of {sample_set.episodes:,} episodes and "
            f"{sample_set.steps:,} steps, but {data} has {episodes:,} episodes and {count:,} steps of it; the set "
            "lists no ids, so the ones that differ cannot be named"
        )
    return plan


def _label(known: Mapping[int, StepLabel], index: int, ref: EpisodeRef) -> StepLabel:
    if index not in known:
        raise UsageError(
            f"it is unknown whether step {index} of episode {ref.key} belongs to the set: the run has no record of it"
        )
    return known[index]


def _wanted(sample_set: SampleSet) -> str:
    parts = [f"the subset {sample_set.subset}"] if sample_set.subset else []
    parts += [f"the split {sample_set.split}"] if sample_set.split else []
    parts += [f"all with {name} {value}" for name, value in sample_set.groups.items()]
    return ", ".join(parts) or "all the data"


class _NamedEpisodes:
    """Finds the named episodes of a set in the data."""

    def __init__(self, sample_set: SampleSet, refs: Sequence[EpisodeRef], labels: Labels, data: str) -> None:
        self._set = sample_set
        self._refs = refs
        self._labels = labels
        self._data = data
        self._by_id: dict[str, EpisodeRef] = {}
        for ref in refs:
            name = ref.key.episode_id
            if name in sample_set.ids and self._by_id.setdefault(name, ref) is not ref:
                raise self._error(f"names the episode {name!r}, which {data} has in several subsets")

    def plan(self) -> dict[EpisodeKey, Sequence[int]]:
        refs = self._by_id
        if missing := [name for name in self._set.ids if name not in refs]:
            raise self._error(
                f"needs {len(self._set.ids):,} named episodes, and {self._data} has {len(refs):,} of them; "
                f"missing: {some(missing)}"
            )
        chosen = {name: self._steps_of(refs[name]) for name in self._set.ids}
        steps: dict[EpisodeKey, Sequence[int]] = {refs[name].key: counted for name, counted in chosen.items()}
        if self._set.unnamed is not None:
            steps |= self._unnamed(self._set.unnamed)
        self._check_last_step()
        return {ref.key: steps[ref.key] for ref in self._refs if ref.key in steps}

    def _steps_of(self, ref: EpisodeRef) -> Sequence[int]:
        """The steps of an episode that count. The data may have an additional finish step, or only the steps that count."""
        name, length = ref.key.episode_id, self._set.ids[ref.key.episode_id]
        counted = self._set.counted(name)
        if self._reduced:
            return range(ref.length)
        if ref.length == length + 1 or (ref.length == length and not self._set.finish):
            return counted
        if ref.length == length:
            raise self._error(
                f"counts a finish step at the end of its episodes, but in {self._data} episode {name!r} has "
                f"{ref.length} steps and none: the data must be prepared with finish steps, as `guieval data prepare` does"
            )
        wrong = [other for other in self._set.ids if self._by_id[other].length not in self._lengths(other)]
        raise self._error(
            f"does not fit {self._data}: episode {name!r} has {ref.length} steps there and {length} in the set; "
            f"{len(wrong):,} episodes differ: {some(wrong)}"
        )

    def _lengths(self, name: str) -> range:
        length = self._set.ids[name]
        return range(length + self._set.finish, length + 2)

    @cached_property
    def _reduced(self) -> bool:
        """Whether the data has only the steps that count, renumbered, as UI-R1's file does."""
        if self._set.finish or self._set.only or not self._set.without:
            return False
        return all(ref.length == len(self._set.counted(name)) for name, ref in self._by_id.items())

    def _unnamed(self, unnamed: Unnamed) -> dict[EpisodeKey, Sequence[int]]:
        named = {ref.key for ref in self._by_id.values()}
        others = [ref for ref in self._refs if ref.key not in named and ref.split != "train"]
        inside = [ref for ref in others if ref.split == unnamed.split] or others
        steps: dict[EpisodeKey, Sequence[int]] = {}
        for ref in inside:
            counted: Sequence[int] = range(ref.length)
            if unnamed.without_types:
                known = self._labels(ref)
                counted = [index for index in counted if _label(known, index, ref).type not in unnamed.without_types]
            if counted:
                steps[ref.key] = counted
        wanted = (unnamed.episodes, unnamed.steps + unnamed.episodes * self._set.finish)
        if (len(steps), count := sum(map(len, steps.values()))) != wanted:
            raise self._error(
                f"also needs the {wanted[0]:,} episodes of split {unnamed.split}, with {wanted[1]:,} steps that count, and "
                f"{self._data} has {len(steps):,} with {count:,}"
            )
        return steps

    def _check_last_step(self) -> None:
        """Check that a step beyond the published length is a finish step. One episode is enough: all are prepared alike."""
        for name, length in self._set.ids.items():
            ref = self._by_id[name]
            if ref.length == length + 1:
                last = self._labels(ref).get(length)
                if last is not None and last.type != "STOP":
                    raise self._error(
                        f"does not fit {self._data}: episode {name!r} has {ref.length} steps there and {length} in the set, "
                        f"and its last one is {last.type}, not a finish step"
                    )
                return

    def _error(self, problem: str) -> UsageError:
        return UsageError(f"sample set {self._set.name!r} {problem}")
