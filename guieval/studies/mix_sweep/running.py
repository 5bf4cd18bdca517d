"""Runs the settings of a sweep one after the other, each in its own run directory, and records the outcome of each."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from guieval.data.benchmark import EpisodeRef
from guieval.history.mixing import Mix, Mixture
from guieval.journal import METRICS, Journal, RunFolder, is_run
from guieval.journal.run_files import Manifest
from guieval.running.engine_choice import asks_a_model, open_server
from guieval.running.execute import Executor, Job
from guieval.running.outcome import RunOutcome
from guieval.running.progress.display import Display
from guieval.running.resolve import resolve
from guieval.running.resolved import ResolvedRun
from guieval.running.resume.identity import in_terms_of, manifest_of, refuse_unlike
from guieval.running.resume.trust import remember
from guieval.running.runner.runner import Runner
from guieval.running.telemetry import Telemetry
from guieval.settings import RunConfig
from guieval.settings.sampling import is_greedy
from guieval.steps import HistoryOrigin, Plan, StepKey, StepRecord
from guieval.studies.mix_sweep.sweep import (
    MixOutcome,
    Sweep,
    SweepFile,
    append_outcome,
    read_outcome,
    read_outcomes,
    read_sweep,
    setting_name,
    write_sweep,
)

SETTINGS = "settings"
"""Folder of a sweep with a run directory for each setting."""


@dataclass(frozen=True)
class OpenSweep:
    """A sweep in ``directory`` with its first run resolved; ``left`` are the numbers of the settings to run.

    These are the ones without an outcome, or whose run has lost its metrics.
    """

    directory: Path
    mixes: list[Mix]
    left: list[int]
    first: ResolvedRun

    @classmethod
    def of(cls, config: RunConfig, sweep: Sweep, directory: Path, *, resumed: bool) -> OpenSweep | None:
        """Begin a sweep, or open one that was begun; ``None`` if nothing of it is left.

        Raises :class:`guieval.errors.UsageError` if the settings are not those that it was begun with, and whatever
        :func:`guieval.running.resolve.resolve` raises.
        """
        mixes = sweep.mixes()
        known = {outcome.number for outcome in read_outcomes(directory)} if resumed else set()
        left = [number for number, mix in enumerate(mixes) if number not in known or _lacks_metrics(directory, number, mix)]
        first_mix = next((mix for mix in mixes if mix.near is not None), mixes[0])  # its manifest names the decisions, too
        given = _configured(config, first_mix)
        begun = read_sweep(directory).manifest if resumed else None
        if begun is not None:
            requested = Manifest.of({**begun.to_json(), "config": given.model_dump(mode="json")})
            refuse_unlike(begun, requested, directory)
        if not left:
            return None
        server = open_server(given, directory / "vllm.log")
        first = resolve(given, server)
        manifest = Manifest.of(manifest_of(first))
        remember([given])
        if begun is not None:
            refuse_unlike(begun, in_terms_of(begun, manifest, first), directory)
        else:
            write_sweep(directory, SweepFile(sweep=sweep, manifest=manifest))
        return cls(directory, mixes, left, first)

    @property
    def description(self) -> str:
        """The numbers of settings and steps, and how many steps can be mixed, in words."""
        mixture = _mixture(self.first)
        artifacts = mixture.artifacts.steps
        plan = self.first.plan
        counted = sum(map(len, plan.values()))
        have = sum(StepKey(*key, index) in artifacts for key, steps in plan.items() for index in steps)
        once = "; decoding is greedy, so equal prompts are sent once" if self._answers_alike else ""
        have_text = f"{have:,} of the steps have an exact answer to mix in"
        if mixture.diversities is not None:
            diverse = mixture.diversities.diverse(mixture.mix.threshold)
            near = sum(len({*steps} & {*diverse.get(key, ())}) for key, steps in plan.items())
            have_text += f", {near:,} have diverse decisions (above {mixture.mix.threshold:g} nats)"
        return f"{len(self.mixes):,} settings of {counted:,} steps; {have_text}{once}"

    def run(
        self, display: Display, *, drop_answers: bool, opened: Callable[[Executor], None] = lambda executor: None
    ) -> Iterator[tuple[int, RunOutcome, MixOutcome | None]]:
        """Run the settings that are left, and yield the number of each, how its run ended, and its outcome if it was completed.

        Ends early if a run is interrupted or gives up. With ``drop_answers`` the run directory of a finished setting is
        removed. Raises what a run raises.
        """
        telemetry = Telemetry([self.first], display, tracked=False)
        # the sweep's own journal keeps a second process out, too
        with Journal(self.directory, compact=True) as journal, Executor(self.first.config, display, telemetry) as executor:
            opened(executor)
            pool = AnswerPool(journal) if self._answers_alike else None
            for number in self.left:
                job = self._job(number)
                if not is_run(job.directory):
                    Runner(*job).begin()
                    if pool is not None:
                        pool.prefill(job.directory, _mixture(job.run), job.run.plan, job.run.selection.refs)
                ended = [result.outcome for result in executor.execute(job)][-1]
                if pool is not None:
                    pool.add(job.directory)
                outcome = read_outcome(job.directory, number, _mixture(job.run))
                if outcome is not None:
                    append_outcome(self.directory, outcome)
                    if drop_answers:
                        shutil.rmtree(job.directory)
                yield number, ended, outcome
                if outcome is None and not ended.interrupted:
                    executor.check()
                if ended.interrupted or ended.gave_up:
                    return

    @property
    def _answers_alike(self) -> bool:
        """Whether a model decodes greedily, with one sample for each step: equal prompts then have equal answers."""
        first, *further = self.first.sampling
        return asks_a_model(self.first.config, self.first.model.config) and not further and is_greedy(first)

    def _job(self, number: int) -> Job:
        mix = self.mixes[number]
        run = resolve(_configured(self.first.config, mix), self.first.server, like=self.first)
        return Job(run, _setting_folder(self.directory, number, mix))


def _setting_folder(directory: Path, number: int, mix: Mix) -> Path:
    return directory / SETTINGS / setting_name(number, mix)


def _lacks_metrics(directory: Path, number: int, mix: Mix) -> bool:
    """Whether a finished setting's run is there without its metrics, which going on with it writes again."""
    folder = _setting_folder(directory, number, mix)
    return is_run(folder) and not (folder / METRICS).exists()


class AnswerPool:
    """The answered records of one sweep, one for each prompt, in a journal of their own; ``journal`` writes it.

    Under greedy decoding an equal prompt has an equal answer. Two settings of history mixing show a step the same past wherever
    the same of its steps are the model's own: a step with k past steps that can be replaced has at most 2^k prompts, however
    many settings there are. The artifacts are the same throughout a sweep, so the origins of the past identify the prompt.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._directory: Path = journal.directory
        self._places: dict[tuple[StepKey, tuple[HistoryOrigin, ...]], int] = {
            (record.task.key, record.history): offset for offset, record in RunFolder(self._directory).records.with_offsets()
        }

    def add(self, run: Path) -> None:
        """Add the answers of a finished run whose prompts are new."""
        file = RunFolder(self._directory).records.path
        for record in RunFolder(run).steps:
            prompt = record.task.key, record.history
            if record.finished and prompt not in self._places:
                self._places[prompt] = file.stat().st_size  # where a journal's next line begins
                self._journal.append(record)

    def prefill(self, run: Path, mixture: Mixture, plan: Plan, refs: Sequence[EpisodeRef]) -> int:
        """Copy the known answers into a begun run's journal, where a resume finds them, and return the number of steps.

        The copies have no usage and no time, because they took none.
        """
        lengths: dict[object, int] = {ref.key: ref.length for ref in refs}
        records = RunFolder(self._directory).records
        found = 0
        with Journal(run) as journal:
            for episode, steps in plan.items():
                for index in steps:
                    prompt = StepKey(*episode, index), mixture.origins(episode, index, lengths[episode])
                    if prompt not in self._places:
                        continue
                    journal.append(_copy(records.at(self._places[prompt])))
                    found += 1
        return found


def _copy(record: StepRecord) -> StepRecord:
    samples = tuple(sample.model_copy(update={"usage": None, "seconds": None}) for sample in record.samples)
    return record.model_copy(update={"samples": samples})


def _configured(config: RunConfig, mix: Mix) -> RunConfig:
    decisions = None if mix.near is None else config.history.mix_decisions
    return config.having(mix=mix.model_dump(mode="json", exclude_none=True), mix_decisions=decisions)


def _mixture(run: ResolvedRun) -> Mixture:
    assert isinstance(run.mixture, Mixture)  # every run of a sweep has a mix
    return run.mixture
