"""Everything that a run needs, once it is resolved.

:func:`guieval.running.resolve.resolve` makes a :class:`ResolvedRun`. What differs between runs over recorded steps and
runs over tasks in an environment is in :mod:`guieval.running.kinds`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from guieval.data.benchmark import EpisodeRef, Listing
from guieval.data.content_digest import Content
from guieval.data.preflight import SECONDS, inspect
from guieval.data.selection import Selection
from guieval.engines import EndpointStats, ReportsServers
from guieval.errors import DataError, GuievalError
from guieval.evaluation import ActionEvaluator, Protocol
from guieval.history.modes import Mode
from guieval.journal.run_files import RecordedOverlay
from guieval.models import ABCModel, Engine
from guieval.running.engine_choice import Answering
from guieval.running.fixed_thoughts import FixedThoughts
from guieval.settings import RunConfig
from guieval.steps import Plan

if TYPE_CHECKING:
    from guieval.engines.vllm.server import VLLMServer
    from guieval.history.mixing import Mixture


@dataclass(frozen=True)
class ResolvedRun:
    """Everything that a configuration, its plug-ins and their data come to."""

    config: RunConfig
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
    """Whether a resume continues if model, data, prompts or sampling differ, and marks the run as mixed."""
    server: VLLMServer | None = None
    """The server that must be started before the run is executed."""

    @property
    def engine(self) -> Engine:
        return self.answering.engine

    @property
    def protocol(self) -> Protocol:
        """How steps are judged."""
        return self.evaluator.protocol

    @property
    def foreign(self) -> str:
        """The protocol's mark if its source does not evaluate such data; else empty."""
        return self.protocol.foreign_mark(filter(None, [self.benchmark.dataset]))

    @property
    def plan(self) -> Plan:
        """The steps that count of every episode."""
        return self.selection.plan

    @property
    def endpoints(self) -> Sequence[EndpointStats]:
        """How the servers fare, of an engine that knows it."""
        found = list[EndpointStats]()
        for engine in (self.engine, self.answering.grounder):
            if isinstance(engine, ReportsServers):
                found += engine.stats()
        return found

    @property
    def waiting(self) -> str | None:
        """Which servers are waited for now, in words; ``None`` when none are."""
        for engine in (self.engine, self.answering.grounder, self.thoughts):
            if isinstance(engine, ReportsServers) and (wait := engine.waiting()) is not None:
                return wait
        return None


class ScreenshotCheck:
    """Checks the screenshots of the chosen steps before the first request: once for all runs over the same steps."""

    def __init__(self) -> None:
        self._done = False

    def skip(self) -> None:
        self._done = True

    def look(self, run: ResolvedRun, *, resume: bool) -> str | None:
        """Raise :class:`UsageError` if screenshots are missing or damaged.

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
class GivenParts:
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
