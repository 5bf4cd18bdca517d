"""The contract that a module in ``benchmarks/`` implements.

A loader reads one published data format. It lists its episodes cheaply (:meth:`ABCBenchmark.index`) and loads them one at
a time (:meth:`ABCBenchmark.load`), so that memory does not grow with the benchmark. Screenshots stay on disk. A release that
cannot be read in place (packed records, embedded screenshots) is a :class:`Release`, which ``guieval data prepare`` converts
into a folder of our own format (:mod:`guieval.data.episodes.read`); any loader of that data set reads it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import Field

from guieval.actions import ActionSpace, ActionType
from guieval.data.files import read_bytes
from guieval.data.plugin_options import check_options, unknown_option
from guieval.errors import DataError, UsageError, nearest
from guieval.steps import Episode, EpisodeKey, Setting

_Loaded = TypeVar("_Loaded")
DEFAULT_SPLIT = "test"
"""The split of an episode whose loader names none."""


@dataclass(frozen=True)
class EpisodeRef:
    """An episode that can be loaded: its key, its number of steps, and its loader's ``locator``."""

    key: EpisodeKey
    length: int
    locator: Any = field(default=None, compare=False, repr=False)
    split: str = DEFAULT_SPLIT


@dataclass(frozen=True)
class PublishedCount:
    """The size of a part of a benchmark, as published in a paper or in its authors' code.

    ``name`` is the authors' name of the part. ``split``, ``subset`` and ``groups`` select its steps (``None`` or empty: all
    of them). ``types`` counts steps by the unified type of their reference action. ``steps`` or ``episodes`` are ``None`` if
    they are not published. ``source`` cites the publication.
    """

    name: str
    steps: int | None
    source: str
    episodes: int | None = None
    split: str | None = None
    subset: str | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[ActionType, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ReleasedEpisode:
    """An episode of a release, and its screenshot files.

    ``screenshots`` maps every screenshot path of its steps (relative to the prepared folder) to a function that returns the
    unchanged bytes of the image file.
    """

    episode: Episode
    screenshots: Mapping[str, Callable[[], bytes]]


class LocatedEpisode(Episode):
    """An episode as a benchmark gives it: with the folder of its screenshots, which is neither compared nor written down."""

    root: Path = Field(exclude=True, repr=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Episode) and self.steps == other.steps

    __hash__ = Episode.__hash__


class _DamageRule(ABC):
    """Refuses damaged data, or skips it."""

    skip_damaged: bool = False
    """Whether damaged data is left out, and noted in :attr:`skipped`, instead of raised."""
    skipped: list[DataError]

    def refuse(self, error: DataError) -> None:
        """Raise ``error``, or add it to :attr:`skipped` if damaged data is to be skipped."""
        if not self.skip_damaged:
            raise error
        self.skipped.append(error)


class Release(_DamageRule):
    """An authors' release as ``guieval data prepare`` reads it: episodes in parts that can be skipped once done."""

    episodes_expected: int | None = None
    """Number of episodes, for the progress bar (read after ``parts``); ``None`` if it is not known in advance."""

    def __init__(self) -> None:
        self.skipped = []

    @abstractmethod
    def parts(self) -> Sequence[str]:
        """Names of the parts (usually files) in reading order; a resume does not read a finished part again."""

    @abstractmethod
    def episodes(self, part: str, done: Callable[[EpisodeKey], bool]) -> Iterator[ReleasedEpisode]:
        """The part's episodes, one in memory at a time, without those that are ``done``.

        Pass a damaged record to :meth:`refuse` as a :class:`DataError` that names file, record and field.
        """


class Listing(_DamageRule, Generic[_Loaded]):
    """What a run can be over: episodes of a benchmark, or tasks of an environment, listed and loaded one at a time."""

    name: ClassVar[str]
    """Registered name, as used on the command line."""
    title: ClassVar[str]
    """Name in publications."""
    source: ClassVar[str]
    """Origin of the data and the expected files, in one line without a final stop."""
    licence: ClassVar[str] = ""
    """The data's licence as stated by its authors, or that they state none."""
    dataset: ClassVar[str] = ""
    """The underlying data set, by which protocols choose their rules; several benchmarks may share one."""
    protocol: ClassVar[str]
    """The default protocol of a run."""
    action_space: ClassVar[ActionSpace] = ActionSpace()
    """The unified actions that its labels can hold."""
    needs_data: ClassVar[bool] = True
    """Whether ``--data DIR`` is required (a generated benchmark creates its own data)."""
    perturbation: Mapping[str, str] = {}
    """What is drawn into its screenshots, and how; a benchmark as it is has none."""
    most_at_once: int | None = None
    """How many of its episodes or tasks can be under way at once; ``None`` for any number."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.skipped = []

    @abstractmethod
    def index(self) -> Sequence[EpisodeRef]:
        """All episodes in the benchmark's own, deterministic order, without loading annotations into memory.

        Pass a row that is too damaged to be listed to :meth:`refuse`.
        """

    @abstractmethod
    def load(self, ref: EpisodeRef) -> _Loaded:
        """Load the episode of ``ref``. Raises :class:`guieval.errors.DataError` that names file, line and field."""


class ABCBenchmark(Listing[Episode]):
    """A benchmark on one data folder.

    Subclasses set the class attributes and implement :meth:`index` and :meth:`load`; the constructor must not read data
    beyond a check of ``root``, and raises :meth:`wrong_folder` if that fails. Options of a loader are keyword-only arguments
    of its constructor.
    """

    paper: ClassVar[str] = ""
    """The paper that describes the data, e.g. ``arXiv 2406.03679``."""
    published: ClassVar[tuple[PublishedCount, ...]] = ()
    """The expected counts; `guieval doctor` and `guieval data prepare` compare the data with them."""
    setting: ClassVar[Setting] = "high"
    """The instruction that the model gets: the goal, the step's own instruction too, or a description of a target."""

    def __init__(self, root: Path, **options: Any) -> None:
        if options:
            raise unknown_option(type(self), next(iter(options)), f"benchmark {self.name!r}")
        super().__init__(root)

    def skipping_damaged(self) -> Self:
        """This benchmark, leaving out what is damaged; this one itself stays as it is."""
        other = copy(self)
        other.skip_damaged, other.skipped = True, []
        return other

    @classmethod
    def check_options(cls, options: Mapping[str, Any]) -> None:
        """Raise :class:`UsageError` for an option that the constructor does not have, or with a value of the wrong type."""
        check_options(cls, options, f"benchmark {cls.name!r}")

    @classmethod
    def release(cls, source: Path, /, **options: Any) -> Release:
        """The authors' release in ``source``, to be prepared; by default, the folder that the loader reads in place."""
        cls.check_options(options)
        return _InPlace(cls(source, **options))

    @classmethod
    def write_example(cls, folder: Path, *, episodes: int = 2, seed: int = 0) -> None:
        """Write a few synthetic episodes into ``folder`` in the authors' exact format, with screenshots.

        The conformance suite loads them. Writers use :mod:`guieval.playground.phone`.
        """
        raise NotImplementedError(f"benchmark {cls.name!r} writes no example of its format")

    @classmethod
    def wrong_folder(cls, root: Path, lacks: str) -> UsageError:
        """The error for a folder of the wrong format; ``lacks`` completes "the folder X has no ..."."""
        return UsageError(
            f"the folder {str(root)!r} has no {lacks}; {cls.title} comes from {cls.source}; "
            f"to convert a release in another folder, run `guieval data prepare {cls.name} --source RELEASE --out DIR`"
        )

    def __iter__(self) -> Iterator[Episode]:
        for ref in self.index():
            try:
                episode = self.load(ref)
            except DataError as error:
                self.refuse(error)
                continue
            yield self.located(episode)

    def episode(self, which: int | str, *, subset: str | None = None) -> LocatedEpisode:
        """The episode at a place in :meth:`index`, or of an id; in a notebook it shows its screenshots.

        Raises :class:`UsageError` if no episode or several have this id.
        """
        refs = self.index()
        if isinstance(which, int):
            if not 0 <= which < len(refs):
                raise UsageError(f"benchmark {self.name!r} has no episode {which}: it has {len(refs):,}, counted from 0")
            return self.located(self.load(refs[which]))
        by_key = {ref.key: ref for ref in refs}
        return self.located(self.load(by_key[named_key(by_key, which, subset, f"benchmark {self.name!r}")]))

    def located(self, episode: Episode) -> LocatedEpisode:
        return LocatedEpisode(steps=episode.steps, root=self.root)


def named_key(
    keys: Iterable[EpisodeKey], name: str, subset: str | None, where: str, kind: Literal["episode", "task"] = "episode"
) -> EpisodeKey:
    """The key with an episode's id; :class:`UsageError` if none of those ``where`` has it, or several subsets have it."""
    known = list(keys)
    named = [key for key in known if key.episode_id == name and subset in (None, key.subset)]
    if not named:
        first = f"; it has {len(known):,}, the first is {known[0].episode_id!r}" if known else ""
        raise UsageError(f"{where} has no {kind} {name!r}{nearest(name, [key.episode_id for key in known]) or first}")
    if len(named) > 1:
        subsets = ", ".join(repr(key.subset) for key in named)
        raise UsageError(f"several subsets have the {kind} {name!r}: add subset, one of {subsets}")
    return named[0]


CLASS_ATTRIBUTES = (*Listing.__annotations__, *ABCBenchmark.__annotations__)
"""The names of what a benchmark's class states."""


class _InPlace(Release):
    """A release that its loader reads in place."""

    def __init__(self, benchmark: ABCBenchmark) -> None:
        super().__init__()
        self._benchmark = benchmark
        self._refs: Sequence[EpisodeRef] = ()

    def parts(self) -> Sequence[str]:
        """A single part, since a loader lists episodes and not files."""
        if self.skip_damaged:
            self._benchmark = self._benchmark.skipping_damaged()
        self._refs = self._benchmark.index()
        self.episodes_expected = len(self._refs)
        return ("",)

    def episodes(self, part: str, done: Callable[[EpisodeKey], bool]) -> Iterator[ReleasedEpisode]:
        root = self._benchmark.root
        self.skipped += self._benchmark.skipped  # rows that could not be listed are damage of this part
        for ref in self._refs:
            if done(ref.key):
                continue
            try:
                episode = self._benchmark.load(ref)
            except DataError as error:
                self.refuse(error)
                continue
            paths = {step.screenshot for step in episode.steps}
            yield ReleasedEpisode(episode, {path: _reader(root, path) for path in paths})


def _reader(root: Path, path: str) -> Callable[[], bytes]:
    from guieval.data.screenshots import resolve

    return lambda: read_bytes(resolve(root, path))
