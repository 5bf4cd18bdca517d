"""The two kinds of runs: over recorded steps, and over tasks in an environment. Which one it is follows from the mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, Literal

from guieval.data.benchmark import Listing
from guieval.data.content_digest import Content, read_content
from guieval.data.earlier_boxes import earlier_json
from guieval.data.overlays import Overlaid, read_overlay
from guieval.data.plugin_options import option_names
from guieval.data.selection import Selection
from guieval.errors import UsageError
from guieval.history import reference_entry
from guieval.history.modes import Kind, get_mode
from guieval.journal.earlier_tasks import digests
from guieval.journal.run_files import RecordedOverlay
from guieval.models import ModelInput, Scaffold
from guieval.models.composition import Composition
from guieval.models.faults import named_faults
from guieval.models.scaffold import OF_TASKS
from guieval.online import ABCEnvironment
from guieval.online.find import environments, load_environment
from guieval.online.tasks import PROTOCOL, EnvironmentTasks
from guieval.registry import benchmark_class, default_data_folder, list_benchmarks, load_benchmark
from guieval.running.costs import Tokens
from guieval.running.engine_choice import Answering
from guieval.running.resolved import ResolvedRun, load_episode
from guieval.running.runner.actor import Actor
from guieval.running.runner.asking import Asking
from guieval.running.runner.episodes import EpisodeAsking
from guieval.running.runner.step import Asker
from guieval.settings import RunConfig
from guieval.steps import OnlineTask, StepKey, StepRecord, TaskRecord
from guieval.wings import offered


class RunKind:
    """What a run is over, and what follows from that: here the steps of recorded episodes. Stateless.

    ``name`` is that of the run's mode, ``unit`` one of its records, ``recorded`` what it has, ``measure`` the metric that its
    progress shows.
    """

    name: ClassVar[Kind] = "steps"
    unit: ClassVar[Literal["step", "task"]] = "step"
    recorded: ClassVar[str] = "an answer"
    measure: ClassVar[str] = "exact match"
    seeded: ClassVar[bool] = False
    """Whether the run's seed decides something without a limit."""
    judged_again: ClassVar[bool] = True
    """Whether other protocols can judge it."""
    settings: ClassVar[tuple[str, ...]] = ()
    """Fields of :class:`RunConfig` that only such runs have."""

    def check(self, config: RunConfig) -> None:
        """Raise :class:`UsageError` for a setting that does not fit."""
        for name in ("max_steps", "allow_network"):
            if getattr(config.online, name):
                raise UsageError(f"{name} is for mode online, and the mode is {config.history.mode!r}")

    def check_rounds(self) -> None:
        """Raise :class:`UsageError` if a rollout cannot sample it."""

    def needs_data(self, config: RunConfig) -> bool:
        return benchmark_class(config.data.bench).needs_data

    def open(self, config: RunConfig, scaffold: Scaffold) -> tuple[Listing[Any], RecordedOverlay | None]:
        data = config.data
        if data.bench in environments() and data.bench not in list_benchmarks():
            raise UsageError(
                f"{data.bench!r} is an environment, with no recorded episodes: add --mode {environments()[data.bench].mode}"
            )
        benchmark = load_benchmark(data.bench, data.folder, **data.bench_options)
        if data.skip_damaged:
            benchmark = benchmark.skipping_damaged()
        if data.overlay is None:
            return benchmark, None
        overlay = read_overlay(Path(data.overlay))
        recorded = RecordedOverlay(file=str(overlay.file), sha256=overlay.sha256, steps=overlay.steps)
        return Overlaid(benchmark, overlay), recorded

    def at_once(self, config: RunConfig, answering: Answering, scaffold: Scaffold) -> Answering:
        """The engine with as many requests at once as the run makes."""
        if of_tasks := [name for name in OF_TASKS if name in scaffold.acts]:
            note = f"scaffold {scaffold.name!r} sets {' and '.join(of_tasks)} of tasks, which does not apply to recorded steps"
            return answering._replace(notes=(*answering.notes, note))
        return answering

    def acts_by(self, config: RunConfig) -> Any:
        """What of the model decides what the run is over: its frame, in which a perturbation prints a place."""
        return config.model if config.data.perturb is not None else None

    def content(self, benchmark: Listing[Any], selection: Selection) -> Content:
        """A digest of what was selected."""
        return read_content(selection.refs, selection.plan, lambda ref: load_episode(benchmark, ref))

    def earlier_contents(self, run: ResolvedRun) -> set[str | None]:
        """The digest as earlier versions computed it."""
        found = read_content(run.selection.refs, run.plan, lambda ref: load_episode(run.benchmark, ref), earlier_json)
        return {found.sha256}

    def about(self, benchmark: Listing[Any]) -> dict[str, Any]:
        """What the manifest records of the benchmark besides."""
        return {"perturbation": dict(benchmark.perturbation)} if benchmark.perturbation else {}

    def part(self, loaded: Any, index: int) -> Any:
        """A record's step or task in what was loaded."""
        return loaded.steps[index]

    def belongs(self, step: StepKey, unit: StepKey) -> bool:
        """Whether a step that the model is asked for is (a part of) one of the run's units."""
        return step == unit

    def requests(self, run: ResolvedRun) -> tuple[int, bool]:
        """The number of answers that a whole run takes, and whether it may take fewer."""
        stages = _stages(run)
        tries = 1 if run.mode.tries is None else 2 * run.mode.tries  # as many waits are forgiven
        requests = stages * tries * len(run.sampling) * sum(map(len, run.plan.values()))
        return requests, run.mode.stop != "never" or stages > 1

    def examples(self, run: ResolvedRun, most: int) -> list[ModelInput] | None:
        """Prompts of steps spread evenly over the run; ``None`` if its screens are not known before."""
        places = [(ref, index) for ref in run.selection.refs for index in run.plan[ref.key]]
        stride = max(1, len(places) // most)
        found: list[ModelInput] = []
        for ref, chosen in groupby(places[stride // 2 :: stride][:most], itemgetter(0)):
            steps = run.benchmark.load(ref).steps
            with named_faults(run.model):
                found += (run.model.prepare_input(steps[at], tuple(map(reference_entry, steps[:at]))) for _, at in chosen)
        return found

    def screens(self, benchmark: Listing[Any], directory: Path) -> Path:
        """The folder of the screenshots that the model is shown."""
        return benchmark.root

    def asking(self, run: ResolvedRun, directory: Path, asker: Asker, seen: Callable[[StepRecord], None]) -> Asking[Any, Any]:
        """Answers the run's steps or tasks; ``seen`` is called with every record of a step."""
        return EpisodeAsking(run, asker, seen)

    def count(self, tokens: Tokens, record: Any) -> None:
        """Count the tokens of an earlier record, as far as they are nowhere else."""
        tokens.add(record)


class Tasks(RunKind):
    """Online runs: over the tasks of an environment, in which the model acts."""

    name, unit, recorded, measure, seeded, judged_again = "tasks", "task", "an outcome", "success", True, False
    settings = ("environment_timeout", "max_steps", "allow_network")

    def check(self, config: RunConfig) -> None:
        given = config.flat()
        if given["protocol"] not in (None, PROTOCOL):
            taken = f"so it takes no protocol {given['protocol']!r}"
            raise UsageError(f"mode {config.history.mode} is judged by the environment, {taken}")
        for name in ("sample_set", "overlay", "fixed_thoughts", "replay", "local_images", "perturb"):
            if given[name]:
                raise UsageError(f"{name} does not fit mode {config.history.mode}: there is no recorded episode")
        if config.cluster.kind != "none":
            raise UsageError(f"mode {config.history.mode} runs on this machine: leave out --cluster")

    def check_rounds(self) -> None:
        raise UsageError("a rollout samples recorded steps; online, `guieval run --mode online --samples N` repeats every task")

    def needs_data(self, config: RunConfig) -> bool:
        return False

    def open(self, config: RunConfig, scaffold: Scaffold) -> tuple[Listing[Any], RecordedOverlay | None]:
        data, online = config.data, config.online
        options = {**_set_by(scaffold, data.bench), **data.bench_options}
        environment = _acted_in(config, options)
        budget = {} if "max_steps" in data.bench_options else scaffold.budget.model_dump()
        folder, most = default_data_folder(data.bench), online.max_steps
        return EnvironmentTasks(folder, environment, most, **budget, **dict(scaffold.tasks)), None

    def acts_by(self, config: RunConfig) -> Any:
        return config.model.name, config.model.adapter, config.model.scaffold  # the scaffold sets budgets and waits

    def at_once(self, config: RunConfig, answering: Answering, scaffold: Scaffold) -> Answering:
        return answering._replace(
            concurrency=config.online.environments
        )  # a task has a device from its first request to its last

    def content(self, benchmark: Listing[Any], selection: Selection) -> Content:
        return Content({}, _tasks_of(benchmark).digest(selection.refs), None)

    def earlier_contents(self, run: ResolvedRun) -> set[str | None]:
        tasks = _tasks_of(run.benchmark)
        return {*digests(map(tasks.load, run.selection.refs), tasks.environment.version)}

    def about(self, benchmark: Listing[Any]) -> dict[str, Any]:
        environment = _tasks_of(benchmark).environment
        return {"environment": environment.version, "identity": dict(environment.identity())}

    def part(self, loaded: OnlineTask, index: int) -> OnlineTask:
        return loaded

    def belongs(self, step: StepKey, unit: StepKey) -> bool:
        return step[:3] == unit[:3]

    def requests(self, run: ResolvedRun) -> tuple[int, bool]:
        return _stages(run) * len(run.sampling) * sum(run.benchmark.load(ref).max_steps for ref in run.selection.refs), True

    def examples(self, run: ResolvedRun, most: int) -> list[ModelInput] | None:
        return None

    def screens(self, benchmark: Listing[Any], directory: Path) -> Path:
        return directory

    def asking(self, run: ResolvedRun, directory: Path, asker: Asker, seen: Callable[[StepRecord], None]) -> Asking[Any, Any]:
        tasks = _tasks_of(run.benchmark)
        online, most = run.config.online, tasks.most_at_once
        devices, seed = min(online.environments, most or online.environments), run.config.data.seed
        return Actor(tasks, asker, directory, seen, devices=devices, timeout=online.environment_timeout, seed=seed)

    def count(self, tokens: Tokens, record: TaskRecord) -> None:
        for number, sample in enumerate(record.samples):
            for usage in sample.other_usage if number not in record.earlier else ():
                tokens.count_other(usage)  # those of the answers are next to the journal


def _acted_in(config: RunConfig, options: dict[str, Any]) -> ABCEnvironment:
    """The environment, or the benchmark's graph, in a mode that acts on recorded screens."""
    data, mode, allow = config.data, config.history.mode, config.online.allow_network
    if get_mode(mode).recorded:
        if allow:
            raise UsageError(f"--allow-network is for web pages, and mode {mode} has recorded screens")
        made: ABCEnvironment = offered("modes", mode)(data.bench, data.folder, **options)
        return made
    kind = environments().get(data.bench)
    if kind is not None and kind.mode != mode:
        raise UsageError(f"{data.bench!r} has recorded screens: --mode {kind.mode} acts on them")
    return load_environment(data.bench, allow_network=allow, **options)


def _stages(run: ResolvedRun) -> int:
    return len(run.model.stage_names) if isinstance(run.model, Composition) else 1


def _tasks_of(listing: Listing[Any]) -> EnvironmentTasks:
    assert isinstance(listing, EnvironmentTasks)
    return listing


KINDS: Mapping[Kind, RunKind] = {kind.name: kind for kind in (RunKind(), Tasks())}


def kind_of(config: RunConfig) -> RunKind:
    """The kind of a run; :class:`UsageError` for an unknown mode."""
    return kind_of_mode(config.history.mode)


def kind_of_mode(name: str) -> RunKind:
    """The kind of runs in a mode; :class:`UsageError` for an unknown one."""
    return get_mode(name).of_kind(KINDS)


def _set_by(scaffold: Scaffold, bench: str) -> dict[str, Any]:
    """The options of an environment that a scaffold sets: waits, and a budget that is the same for all tasks."""
    kind = environments().get(bench)
    if kind is None:
        return {}
    options: dict[str, Any] = {}
    if scaffold.budget.flat is not None and "max_steps" in option_names(kind):
        options["max_steps"] = scaffold.budget.flat
    for name, seconds in scaffold.wait.given.items() if not kind.deterministic else ():
        if name not in kind.waits:
            known = ", ".join(kind.waits) or "none"
            raise UsageError(
                f"scaffold {scaffold.name!r} waits {seconds:g} s {name.replace('_', ' ')}, which environment {bench!r} cannot "
                f"(its waits: {known})"
            )
        options[kind.waits[name]] = seconds
    return options
