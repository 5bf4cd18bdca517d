"""Everything that a run needs, once it is resolved, and what kind of run it is.

:func:`guieval.running.resolve.resolve` makes a :class:`ResolvedRun`. What differs between runs over recorded steps and
runs over tasks in an environment is in their :class:`RunKind` (:mod:`guieval.running.kinds`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from guieval.data.benchmark import EpisodeRef, Listing
from guieval.data.content_digest import Content
from guieval.data.preflight import SECONDS, inspect
from guieval.data.selection import Selection
from guieval.engines import EndpointStats, ReportsServers
from guieval.errors import DataError, GuievalError
from guieval.evaluation import ActionEvaluator, Protocol
from guieval.history.modes import Kind, Mode
from guieval.journal.run_files import RecordedOverlay
from guieval.models import ABCModel, Engine, ModelInput, Scaffold
from guieval.running.costs import Tokens
from guieval.running.engine_choice import Answering
from guieval.running.fixed_thoughts import FixedThoughts
from guieval.running.runner.asking import Asking
from guieval.running.runner.step import Asker
from guieval.settings import RunConfig
from guieval.steps import Plan, StepKey, StepRecord

if TYPE_CHECKING:
    from guieval.engines.vllm.server import VLLMServer
    from guieval.history.mixing import Mixture


class RunKind(ABC):
    """What a run is over, and what follows from that. Stateless; ``name`` is that of the run's mode.

    ``unit`` is one of its records, ``measure`` the metric that its progress shows.
    """

    name: ClassVar[Kind]
    unit: ClassVar[Literal["step", "task"]]
    measure: ClassVar[str]
    seeded: ClassVar[bool] = False
    """Whether the run's seed decides something without a limit."""
    settings: ClassVar[tuple[str, ...]] = ()
    """Fields of :class:`RunConfig` that only such runs have."""

    @abstractmethod
    def check(self, config: RunConfig) -> None:
        """Raise :class:`UsageError` for a setting that does not fit."""

    @abstractmethod
    def needs_data(self, config: RunConfig) -> bool:
        """Whether it reads a folder of data."""

    @abstractmethod
    def open(self, config: RunConfig, scaffold: Scaffold) -> tuple[Listing[Any], RecordedOverlay | None]:
        """What the run is over."""

    @abstractmethod
    def at_once(self, config: RunConfig, answering: Answering, scaffold: Scaffold) -> Answering:
        """The engine with as many requests at once as the run makes."""

    def acts_by(self, config: RunConfig) -> Any:
        """What of the model decides what the run is over."""
        return None

    def most_at_once(self, benchmark: Listing[Any]) -> int | None:
        """How many of its units can be under way at once; ``None`` for any number."""
        return None

    @abstractmethod
    def content(self, benchmark: Listing[Any], selection: Selection) -> Content:
        """A digest of what was selected."""

    @abstractmethod
    def earlier_contents(self, run: ResolvedRun) -> set[str | None]:
        """The digest as earlier versions computed it."""

    @abstractmethod
    def about(self, benchmark: Listing[Any]) -> dict[str, Any]:
        """What the manifest records of the benchmark besides."""

    @abstractmethod
    def part(self, loaded: Any, index: int) -> Any:
        """A record's step or task in what was loaded."""

    def belongs(self, step: StepKey, unit: StepKey) -> bool:
        """Whether a step that the model is asked for is (a part of) one of the run's units."""
        return step == unit

    @abstractmethod
    def requests(self, run: ResolvedRun) -> tuple[int, bool]:
        """The number of answers that a whole run takes, and whether it may take fewer."""

    @abstractmethod
    def examples(self, run: ResolvedRun, most: int) -> list[ModelInput] | None:
        """Prompts of steps spread evenly over the run; ``None`` if its screens are not known before."""

    @abstractmethod
    def screens(self, benchmark: Listing[Any], directory: Path) -> Path:
        """The folder of the screenshots that the model is shown."""

    @abstractmethod
    def asking(self, run: ResolvedRun, directory: Path, asker: Asker, seen: Callable[[StepRecord], None]) -> Asking:
        """Answers the run's steps or tasks; ``seen`` is called with every record of a step."""

    @abstractmethod
    def count(self, tokens: Tokens, record: Any) -> None:
        """Count the tokens of an earlier record, as far as they are nowhere else."""


@dataclass(frozen=True)
class ResolvedRun:
    """Everything that a configuration, its plug-ins and their data come to."""

    config: RunConfig
    kind: RunKind
    benchmark: Listing[Any]
    model: ABCModel
    answering: Answering
    mode: Mode
    evaluator: ActionEvaluator
    sampling: Sequence[Mapping[str, Any]]
    """The request parameters of each sample of a step."""
    selection: Selection
    content: Content
    """The planned steps: a digest, and the types of their reference actions."""
    screenshots: ScreenshotCheck
    overlay: RecordedOverlay | None = None
    """The overlay of further accepted actions, as the manifest records it; its ``sha256`` is part of the run's identity."""
    thoughts: Engine | None = None
    """Writes the thoughts of off-policy patches."""
    fixed: FixedThoughts | None = None
    """The thoughts that the model is made to think; steps without one are left out."""
    mixture: Mixture | None = None
    """The content of a mixed history."""
    accept_changes: bool = False
    """Whether a resume continues where model, data, prompts or sampling differ, and marks the run as mixed."""
    server: VLLMServer | None = None
    """The server that must be started before the run is executed."""

    @property
    def engine(self) -> Engine:
        """The engine that answers."""
        return self.answering.engine

    @property
    def protocol(self) -> Protocol:
        """How steps are judged."""
        return self.evaluator.protocol

    @property
    def plan(self) -> Plan:
        """The steps that count of every episode."""
        return self.selection.plan

    @property
    def endpoints(self) -> Sequence[EndpointStats]:
        """How the servers fare, of an engine that knows it."""
        return self.engine.stats() if isinstance(self.engine, ReportsServers) else ()

    @property
    def waiting(self) -> str | None:
        """Which servers are waited for now, in words; ``None`` when none are."""
        for engine in (self.engine, self.thoughts):
            if isinstance(engine, ReportsServers) and (wait := engine.waiting()) is not None:
                return wait
        return None


class ScreenshotCheck:
    """Checks the screenshots of the chosen steps before the first request: once for all runs over the same steps."""

    def __init__(self) -> None:
        self._done = False

    def skip(self) -> None:
        """Count the screenshots as looked at."""
        self._done = True

    def look(self, run: ResolvedRun, *, resume: bool) -> str | None:
        """Raise :class:`UsageError` where screenshots are missing or damaged.

        The steps of a run that is resumed cannot be changed, so there it is a warning, unless no step at all can be asked.
        """
        benchmark = run.benchmark
        if self._done or not benchmark.needs_data or benchmark.skip_damaged:
            return None
        self._done = True
        if not shows_screenshots(benchmark, run.model, run.engine, run.selection):
            return None
        found = inspect(benchmark, run.selection.refs, run.plan, seconds=SECONDS)
        if found.reasons and (not resume or found.unusable == found.steps):
            raise found.refusal(benchmark)
        return str(found) if found.reasons else None


@dataclass(frozen=True)
class Parts:
    """Parts of a run that the caller has at hand, e.g. weights in training; they stand in for what a configuration names."""

    benchmark: Listing[Any]
    model: ABCModel
    answering: Answering
    overlay: RecordedOverlay | None = None
    thoughts: Engine | None = None
    fixed: FixedThoughts | None = None
    mixture: Mixture | None = None


def load_episode(benchmark: Listing[Any], ref: EpisodeRef) -> Any:
    """An episode, or a task; :class:`DataError` for whatever its loader raises."""
    with blaming(f"episode {ref.key} cannot be loaded"):
        return benchmark.load(ref)


@contextmanager
def blaming(what: str) -> Iterator[None]:
    """Turn whatever a loader raises against its contract into the :class:`DataError` that it should have raised."""
    try:
        yield
    except GuievalError:
        raise
    except Exception as error:  # a loader may be anyone's code
        raise DataError(f"{what}: {type(error).__name__}: {error}") from error


def shows_screenshots(benchmark: Listing[Any], model: ABCModel, engine: Engine, selection: Selection) -> bool:
    """Whether the model is shown any, judged by the first step; yes where that cannot be prepared."""
    if engine.images == "none":
        return False
    ref = selection.refs[0]
    try:
        task = benchmark.load(ref).steps[selection.plan[ref.key][0]]
        return bool(model.prepare_input(task, ()).images)
    except Exception:  # a plug-in may be anyone's code; the step will fail, and its record names the failure
        return True
