"""The sources of a report besides the journal: the benchmark's data folder, and the adapter that rebuilds prompts.

Both may be missing. A run folder names them and is not trusted: no adapter file or program that only it names is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from guieval.data.benchmark import ABCBenchmark, EpisodeRef
from guieval.errors import DataError, UsageError
from guieval.history import recalled
from guieval.journal.run_files import IMPORTED, Manifest
from guieval.models.written_prompts import shown
from guieval.reports.viewer.reading import Prompter
from guieval.scoring.recorded_run import recorded_benchmark, recorded_model
from guieval.steps import EpisodeKey, StepRecord, StepTaskModel


def open_data(manifest: Manifest, data: Path | None) -> tuple[ABCBenchmark | None, str]:
    """The benchmark of a run on its data folder, or why there is none; a folder that the user named must exist."""
    config = manifest.config
    if manifest.imported is not None and config.data.bench == IMPORTED and data is None:
        return None, "there are no screenshots: the imported file has none; --data names a folder of them"
    try:
        return recorded_benchmark(manifest, data), ""
    except UsageError as error:
        if data is not None:
            raise
        return None, f"there are no screenshots: the run's data cannot be opened ({error}); --data names their folder"


class PlannedTasks:
    """The steps of a benchmark's data, by episode; none without a benchmark."""

    def __init__(self, benchmark: ABCBenchmark | None) -> None:
        self._benchmark = benchmark

    def of(self, key: EpisodeKey) -> Mapping[int, StepTaskModel]:
        """An episode's steps by index; empty if the data does not have the episode, or it is damaged."""
        ref = self._refs.get(key)
        if ref is None or self._benchmark is None:
            return {}
        try:
            return {step.step_index: step for step in self._benchmark.load(ref).steps}
        except DataError:
            return {}

    @cached_property
    def _refs(self) -> Mapping[EpisodeKey, EpisodeRef]:
        if self._benchmark is None:
            return {}
        try:
            return {ref.key: ref for ref in self._benchmark.skipping_damaged().index()}
        except (DataError, UsageError):
            return {}


def prompter(manifest: Manifest, adapter: str | None) -> Prompter:
    """Rebuilds what the run's model was sent at a step, by asking its adapter again."""
    mode = manifest.mode
    try:
        model = recorded_model(manifest, adapter)
    except UsageError as error:
        reason = f"The prompt cannot be rebuilt: {error}."
        return lambda record, known: ("", reason)

    def prompt(record: StepRecord, known: Mapping[int, StepRecord]) -> tuple[str, str]:
        before = range(record.task.step_index)
        if missing := [str(index) for index in before if index not in known]:
            return "", f"The prompt cannot be rebuilt: the run has no record of step {', '.join(missing[:5])} before it."
        past = tuple(recalled(mode.history, known[index].task, known[index]) for index in before)
        given = record.sample.thought if mode.fixed_thoughts else None
        try:
            prepared = (
                model.prepare_input(record.task, past)
                if given is None
                else model.prepare_fixed_thought(record.task, past, given)
            )
            text = shown(prepared)
        except Exception as error:  # an adapter may be anyone's code; the report shows everything else all the same
            return "", f"The prompt cannot be rebuilt: {type(error).__name__}: {error}"
        if record.history and tuple(entry.origin for entry in past) != record.history:
            return (text, "Rebuilt now; the run recorded another origin for a step of the past, so it sent something else.")
        return text, ""

    return prompt
