"""The one way from a configuration to a run: :func:`resolve` finds and checks everything that a run needs, and freezes it.

A :class:`ResolvedRun` is what the runner takes, beside a directory and callbacks. Nothing is set on it afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guieval.data.benchmark import ABCBenchmark, EpisodeRef
from guieval.data.content_digest import Content, read_content
from guieval.data.overlays import Overlaid, read_overlay
from guieval.data.plugin_options import option_names
from guieval.data.preflight import SECONDS, inspect
from guieval.data.selection import Choice, Selection, select
from guieval.engines import EndpointStats, ReportsServers
from guieval.engines.vllm.command import named_arguments
from guieval.errors import DataError, GuievalError, UsageError
from guieval.evaluation import ActionEvaluator, Protocol, get_protocol
from guieval.history.modes import ONLINE, Mode, PatchPolicy, get_mode
from guieval.journal.run_files import RecordedOverlay
from guieval.models import ABCModel, Engine, ModelConfig, Scaffold
from guieval.online.find import environments, load_environment
from guieval.online.tasks import PROTOCOL, EnvironmentTasks
from guieval.registry import build_model, default_data_folder, list_benchmarks, load_benchmark, model_config
from guieval.running.engine_choice import (
    Answering,
    asks_a_model,
    auxiliary_engine,
    choose_engine,
    engine_kind,
    with_key_variable,
)
from guieval.running.fixed_thoughts import FixedThoughts, read_thoughts
from guieval.settings import SETTINGS, RunConfig
from guieval.settings.sampling import drawing_options, greedy_because, is_greedy, request_parameters
from guieval.steps import Episode, EpisodeKey, Plan

if TYPE_CHECKING:
    from guieval.engines.vllm.server import VLLMServer
    from guieval.history.mixing import Mixture


@dataclass(frozen=True)
class ResolvedRun:
    """Everything that a configuration, its plug-ins and their data come to."""

    config: RunConfig
    benchmark: ABCBenchmark
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
        if not _shows_screenshots(benchmark, run.model, run.engine, run.selection):
            return None
        found = inspect(benchmark, run.selection.refs, run.plan, seconds=SECONDS)
        if found.reasons and (not resume or found.unusable == found.steps):
            raise found.refusal(benchmark)
        return str(found) if found.reasons else None


@dataclass(frozen=True)
class Parts:
    """Parts of a run that the caller has at hand, e.g. weights in training; they stand in for what a configuration names."""

    benchmark: ABCBenchmark
    model: ABCModel
    answering: Answering
    overlay: RecordedOverlay | None = None
    thoughts: Engine | None = None
    fixed: FixedThoughts | None = None
    mixture: Mixture | None = None


def resolve(
    config: RunConfig,
    server: VLLMServer | None = None,
    *,
    parts: Parts | None = None,
    like: ResolvedRun | None = None,
    accept_changes: bool = False,
) -> ResolvedRun:
    """Find and check everything that a configuration names.

    Engine ``vllm`` needs ``server`` (:func:`guieval.running.engine_choice.open_server`), which must run while the run is
    executed. ``parts`` are used in place of what ``config`` names. What ``like`` has read of the benchmark, and of the answers
    to mix in, is not read again where it is the same. Raises :class:`UsageError` for an unknown name, a missing data folder, a
    model without a server, a selection that the benchmark cannot give, patches that the mode or the engine does not allow, or
    thoughts that the model does not take.
    """
    if parts is None:
        config = with_key_variable(config)
    mode = run_mode(config)
    _check_online(config)
    named_arguments(config.server.vllm)  # whatever the engine: a secret among them would be written into the run's files
    shared = like if like is not None and _over(config) == _over(like.config) else None
    given = _parts(config, server, shared) if parts is None else parts
    benchmark, model, engine = given.benchmark, given.model, given.answering.engine
    evaluator = ActionEvaluator(get_protocol(config.data.protocol or benchmark.protocol))
    sampling = sample_parameters(config, model.config)
    if shared is not None:
        fixed, selection, content, screenshots = shared.fixed, shared.selection, shared.content, shared.screenshots
    else:
        fixed = given.fixed or _fixed_thoughts(config, model, benchmark)
        selection = _select(config, benchmark, model, engine)
        if fixed is not None:
            selection = fixed.among(selection)
            _try_thought(benchmark, model, selection, fixed)
    mixture = given.mixture or _mixture(config, model, benchmark, evaluator, like)
    if shared is None:
        content = read_content(selection.refs, selection.plan, lambda ref: load_episode(benchmark, ref))
        screenshots = ScreenshotCheck()
    return ResolvedRun(
        config,
        benchmark,
        model,
        given.answering,
        mode,
        evaluator,
        sampling,
        selection,
        content,
        screenshots,
        overlay=given.overlay,
        thoughts=(given.thoughts or auxiliary_engine(config)) if mode.patch.method == "off-policy" else None,
        fixed=fixed,
        mixture=mixture,
        accept_changes=accept_changes,
        server=server,
    )


def run_mode(config: RunConfig) -> Mode:
    """The mode with its patches, its mixed history and its given thoughts; :class:`UsageError` if they do not fit."""
    mode = get_mode(config.history.mode).patched(patch_policy(config))
    if config.history.mix:
        mode = mode.mixed()
    return mode.with_fixed_thoughts() if config.history.fixed_thoughts is not None else mode


def sample_parameters(config: RunConfig, model: ModelConfig) -> list[dict[str, Any]]:
    """The request parameters of each sample of a step.

    A single sample has the parameters of the first. Of several, each that is not greedy gets the seed ``seed`` + its number,
    where ``seed`` is that of ``sampling``, else the run's. The further ones have ``resampling`` over the parameters of the
    first. Raises :class:`UsageError` when a server would get the same greedy request more than once.
    """
    count = config.sampling.samples
    first = request_parameters(model.scaffold.sampling, config.sampling.request)
    if count == 1:
        if config.sampling.resampling:
            raise UsageError("setting 'resampling' is for further samples, and there are none: add --samples N")
        return [first]
    further = request_parameters(first, config.sampling.resampling)
    if asks_a_model(config, model) and is_greedy(further):
        raise UsageError(
            f"{count} samples of greedy decoding ({greedy_because(further)}) would be {count} times the same "
            f"answer: add {drawing_options(further, 'resampling')}, which leaves the first one greedy; 'sampling' in place of "
            "'resampling' changes the first one too"
        )
    seed = further["seed"] if further.get("seed") is not None else config.data.seed
    samples = [first, *(dict(further) for _ in range(count - 1))]
    return [given if is_greedy(given) else {**given, "seed": seed + number} for number, given in enumerate(samples)]


def patch_policy(config: RunConfig) -> PatchPolicy:
    """How a run patches mismatches. Raises :class:`UsageError` for settings of patches that do not go together."""
    given = config.history.model_dump(include={"patch_budget", "patch_model", "patch_base_urls"})
    flags = {"patch_budget": "--patch-budget", "patch_model": "--patch-model", "patch_base_urls": "--patch-base-url"}
    if config.history.patch == "none":
        for name, value in given.items():
            if value:  # a budget of 0 means no patch
                raise UsageError(f"{flags[name]} is for patches, and there are none: add --patch thought-free, say")
        return PatchPolicy()
    budget = None if config.history.patch_budget == "unlimited" else config.history.patch_budget
    policy = PatchPolicy(config.history.patch, 1 if config.history.patch_budget is None else budget)  # type: ignore[arg-type]  # it checks
    for name in ("patch_model", "patch_base_urls"):
        if policy.method == "off-policy" and not given[name]:
            raise UsageError(
                "off-policy patches are written by an auxiliary model: add --patch-base-url URL of an OpenAI-compatible "
                "endpoint and --patch-model NAME, as it is called there"
            )
        if policy.method != "off-policy" and given[name]:
            raise UsageError(f"{flags[name]} is for --patch off-policy; {policy.method} patches ask no auxiliary model")
    return policy


def load_episode(benchmark: ABCBenchmark, ref: EpisodeRef) -> Episode:
    """An episode; :class:`DataError` for whatever its loader raises."""
    with _blaming(f"episode {ref.key} cannot be loaded"):
        return benchmark.load(ref)


@contextmanager
def _blaming(what: str) -> Iterator[None]:
    """Turn whatever a loader raises against its contract into the :class:`DataError` that it should have raised."""
    try:
        yield
    except GuievalError:
        raise
    except Exception as error:  # a loader may be anyone's code
        raise DataError(f"{what}: {type(error).__name__}: {error}") from error


def _over(config: RunConfig) -> tuple[Any, ...]:
    answering = (config.server.engine, config.server.replay)
    online = config.history.mode == ONLINE
    scaffold = (config.model.name, config.model.adapter, config.model.scaffold) if online else None  # it sets budgets and waits
    return config.data, config.history.fixed_thoughts, *answering, config.online.max_steps, online, scaffold


def _parts(config: RunConfig, server: VLLMServer | None, shared: ResolvedRun | None) -> Parts:
    checkpoint = model_config(config.model.name, config.model.adapter, config.model.scaffold)
    scaffold = checkpoint.scaffold
    benchmark, overlay = _benchmark(config, scaffold) if shared is None else (shared.benchmark, shared.overlay)
    options = {"options": {**checkpoint.options, **config.model.options}}
    model = build_model(checkpoint.model_copy(update=options), thinking=config.model.thinking)
    if scaffold.sampling and engine_kind(config, checkpoint) == "local":
        name = config.model.name
        raise UsageError(f"scaffold {scaffold.name!r} sets sampling, and model {name!r} answers by itself and has none")
    if scaffold.retries.request is not None and config.server.max_attempts == SETTINGS["max_attempts"].default:
        config = config.having(max_attempts=scaffold.retries.request)
    answering = choose_engine(config, model, benchmark.root, server)
    if config.history.mode == ONLINE:  # a task holds a device from its first request to its last
        answering = answering._replace(concurrency=config.online.environments)
    elif of_tasks := [name for name in ("budget", "ending", "wait") if name in scaffold.acts]:
        note = f"scaffold {scaffold.name!r} sets {' and '.join(of_tasks)} of tasks, which does not apply to recorded steps"
        answering = answering._replace(notes=(*answering.notes, note))
    return Parts(benchmark, model, answering, overlay)


def _check_online(config: RunConfig) -> None:
    """Raise :class:`UsageError` for a setting that does not fit the mode: those of environments are for online runs only."""
    if config.history.mode != ONLINE:
        if config.online.max_steps is not None:
            raise UsageError(f"max_steps is for mode online, and the mode is {config.history.mode!r}")
        if config.online.allow_network:
            raise UsageError(f"allow_network is for mode online, and the mode is {config.history.mode!r}")
        return
    if config.data.protocol not in (None, PROTOCOL):
        raise UsageError(f"mode online is judged by the environment, so it takes no protocol {config.data.protocol!r}")
    given = config.flat()
    for name in ("sample_set", "overlay", "fixed_thoughts", "replay", "local_images"):
        if given[name]:
            raise UsageError(f"{name} does not fit mode online: there is no recorded episode")
    if config.cluster.kind != "none":
        raise UsageError("mode online runs on this machine: leave out --cluster")


def _benchmark(config: RunConfig, scaffold: Scaffold) -> tuple[ABCBenchmark, RecordedOverlay | None]:
    data, online = config.data, config.online
    if config.history.mode == ONLINE:
        options = {**_set_by(scaffold, data.bench), **data.bench_options}
        environment = load_environment(data.bench, allow_network=online.allow_network, **options)
        budget = {} if "max_steps" in data.bench_options else scaffold.budget.model_dump()
        return EnvironmentTasks(default_data_folder(data.bench), environment, online.max_steps, **budget), None
    if data.bench in environments() and data.bench not in list_benchmarks():
        raise UsageError(f"{data.bench!r} is an environment, with no recorded episodes: add --mode online")
    benchmark = load_benchmark(data.bench, data.folder, **data.bench_options)
    if data.skip_damaged:
        benchmark = benchmark.skipping_damaged()
    if data.overlay is None:
        return benchmark, None
    overlay = read_overlay(Path(data.overlay))
    recorded = RecordedOverlay(file=str(overlay.file), sha256=overlay.sha256, steps=overlay.steps)
    return Overlaid(benchmark, overlay), recorded


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


def _select(config: RunConfig, benchmark: ABCBenchmark, model: ABCModel, engine: Engine) -> Selection:
    choice = Choice.of(config.data)
    with _blaming(f"benchmark {benchmark.name!r} cannot be listed"):
        unusable: Mapping[EpisodeKey, str] = {}
        if benchmark.skip_damaged and benchmark.needs_data:
            whole = select(benchmark, replace(choice, limit=None))  # a sample is drawn from what can be shown
            if _shows_screenshots(benchmark, model, engine, whole):
                unusable = inspect(benchmark, whole.refs, whole.plan).reasons
        return select(benchmark, choice, unusable)


def _shows_screenshots(benchmark: ABCBenchmark, model: ABCModel, engine: Engine, selection: Selection) -> bool:
    """Whether the model is shown any, judged by the first step; yes where that cannot be prepared."""
    if engine.images == "none":
        return False
    ref = selection.refs[0]
    try:
        task = benchmark.load(ref).steps[selection.plan[ref.key][0]]
        return bool(model.prepare_input(task, ()).images)
    except Exception:  # a plug-in may be anyone's code; the step will fail, and its record names the failure
        return True


def _fixed_thoughts(config: RunConfig, model: ABCModel, benchmark: ABCBenchmark) -> FixedThoughts | None:
    if config.history.fixed_thoughts is None:
        return None
    if not model.fixes_thought:
        raise UsageError(f"model {config.model.name!r} cannot be given a thought; `guieval models` shows which models can")
    source = Path(config.history.fixed_thoughts)
    fixed = read_thoughts(source)
    if fixed.benchmark != benchmark.name:
        raise UsageError(f"the thoughts of {str(source)!r} are about benchmark {fixed.benchmark!r}, not {benchmark.name!r}")
    return fixed


def _try_thought(benchmark: ABCBenchmark, model: ABCModel, selection: Selection, fixed: FixedThoughts) -> None:
    """Let the adapter raise now what it would raise at every step: that it takes no thought with these settings."""
    ref = selection.refs[0]
    task = benchmark.load(ref).steps[selection.plan[ref.key][0]]
    try:
        model.prepare_fixed_thought(task, (), fixed.texts[task.key])
    except UsageError:
        raise
    except Exception:  # an adapter may be anyone's code; any other failure is recorded with its step
        return


def _mixture(
    config: RunConfig, model: ABCModel, benchmark: ABCBenchmark, evaluator: ActionEvaluator, like: ResolvedRun | None
) -> Mixture | None:
    from guieval.history.mixing import Mixture, read_mix
    from guieval.running.history_artifacts import read_artifacts

    if not config.history.mix:
        if config.history.mix_artifacts is not None:
            raise UsageError("mix_artifacts is for mixed histories, and there are none: add --set mix.start=P, say")
        return None
    mix = read_mix(config.history.mix)
    if config.history.mix_artifacts is None:
        raise UsageError("a mixed history needs the answers to mix in: add --set mix_artifacts=RUN")
    known = like.mixture if like is not None and _unmixed(like.config) == _unmixed(config) else None
    if known is not None and (known.mix.pick, known.mix.seed) == (mix.pick, mix.seed):
        return Mixture(mix, known.artifacts)
    artifacts = read_artifacts(Path(config.history.mix_artifacts), evaluator, pick=mix.pick, seed=mix.seed)
    for what, theirs, ours in (
        ("model", artifacts.model, model.config.name),
        ("benchmark", artifacts.benchmark, benchmark.name),
    ):
        if theirs != ours:
            raise UsageError(f"the answers of {config.history.mix_artifacts!r} are of {what} {theirs!r}, not of {ours!r}")
    return Mixture(mix, artifacts)


def _unmixed(config: RunConfig) -> RunConfig:
    return config.having(mix={})
