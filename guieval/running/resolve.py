"""The one way from a configuration to a run: :func:`resolve` finds and checks everything that a run needs, and freezes it.

A :class:`ResolvedRun` is what the runner takes, besides a directory and callbacks. Nothing is set on it afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guieval.data.benchmark import Listing
from guieval.data.preflight import inspect
from guieval.data.selection import Choice, Selection, select
from guieval.engines.vllm.command import named_arguments
from guieval.errors import UsageError, known_name
from guieval.evaluation import ActionEvaluator, get_protocol
from guieval.history.modes import PATCH_METHODS, Mode, PatchPolicy, get_mode
from guieval.models import ABCModel, Engine, ModelConfig
from guieval.registry import build_model, model_config
from guieval.running.engine_choice import asks_a_model, auxiliary_engine, choose_engine, engine_kind, with_key_variable
from guieval.running.fixed_thoughts import FixedThoughts, read_thoughts
from guieval.running.kinds import RunKind, kind_of
from guieval.running.resolved import GivenParts, ResolvedRun, ScreenshotCheck, blaming, shows_screenshots
from guieval.settings import Data, History, RunConfig
from guieval.settings.sampling import drawing_options, greedy_because, is_greedy, request_parameters
from guieval.steps import EpisodeKey
from guieval.wings import offered

if TYPE_CHECKING:
    from guieval.engines.vllm.server import VLLMServer
    from guieval.history.mixing import Diversities, Mix, Mixture


def resolve(
    config: RunConfig,
    server: VLLMServer | None = None,
    *,
    parts: GivenParts | None = None,
    like: ResolvedRun | None = None,
    accept_changes: bool = False,
) -> ResolvedRun:
    """Find and check everything that a configuration names.

    Engine ``vllm`` needs ``server`` (:func:`guieval.running.engine_choice.open_server`), which must run while the run is
    executed. ``parts`` are used in place of what ``config`` names. What ``like`` has read of the benchmark, and of the answers
    to mix in, is not read again if it is the same. Raises :class:`UsageError` for an unknown name, a missing data folder, a
    model without a server, a selection that the benchmark cannot give, patches that the mode or the engine does not allow, or
    thoughts that the model does not take.
    """
    if parts is None:
        config = with_key_variable(config)
        most = model_config(config.model.name, config.model.adapter, config.model.scaffold).scaffold.retries.request
        if most is not None and "max_attempts" not in config.server.model_fields_set:
            config = config.having(max_attempts=most)
    mode = run_mode(config)
    kind = kind_of(config)
    kind.check(config)
    named_arguments(config.server.vllm)  # whatever the engine: a secret among them would be written into the run's files
    shared = like if like is not None and _over(config) == _over(like.config) else None
    given = _parts(config, kind, server, shared) if parts is None else parts
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
        content = kind.content(benchmark, selection)
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
    mode = get_mode(config.history.mode).with_tries(config.history.tries).patched(patch_policy(config))
    if config.history.mix:
        mode = mode.mixed()
    return mode.with_fixed_thoughts() if config.history.fixed_thoughts is not None else mode


def sample_parameters(config: RunConfig, model: ModelConfig) -> list[dict[str, Any]]:
    """The request parameters of each sample of a step.

    A single sample has the parameters of the first. Of several, each that is not greedy gets the seed ``seed`` + its number;
    ``seed`` is that of ``sampling``, else the run's. The further ones have ``resampling`` over the parameters of the
    first. Raises :class:`UsageError` when a server would get the same greedy request more than once.
    """
    count = config.sampling.samples
    if count > 1 and get_mode(config.history.mode).tries is not None:
        raise UsageError(
            f"mode {config.history.mode!r} has tries one after another, and one sample of each: leave out --samples"
        )
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
    budget = config.history.patch_budget
    method = known_name("patch method", config.history.patch, PATCH_METHODS)
    policy = PatchPolicy(method, 1 if budget is None else None if budget == "unlimited" else budget)
    for name in ("patch_model", "patch_base_urls"):
        if policy.method == "off-policy" and not given[name]:
            raise UsageError(
                "off-policy patches are written by an auxiliary model: add --patch-base-url URL of an OpenAI-compatible "
                "endpoint and --patch-model NAME, as it is called there"
            )
        if policy.method != "off-policy" and given[name]:
            raise UsageError(f"{flags[name]} is for --patch off-policy; {policy.method} patches ask no auxiliary model")
    return policy


def choice_of(data: Data) -> Choice:
    """What the settings choose of a benchmark."""
    episodes = None if data.episodes is None else Path(data.episodes)
    return Choice(data.split, data.subset, data.sample_set, episodes, data.limit, data.seed)


def _over(config: RunConfig) -> tuple[Any, ...]:
    answering = (config.server.engine, config.server.replay)
    kind = kind_of(config)
    return config.data, config.history.fixed_thoughts, *answering, config.online.max_steps, kind, kind.acts_by(config)


def _parts(config: RunConfig, kind: RunKind, server: VLLMServer | None, shared: ResolvedRun | None) -> GivenParts:
    checkpoint = model_config(config.model.name, config.model.adapter, config.model.scaffold)
    scaffold = checkpoint.scaffold
    benchmark, overlay = kind.open(config, scaffold) if shared is None else (shared.benchmark, shared.overlay)
    options = {"options": {**checkpoint.options, **config.model.own_options}}
    model = build_model(checkpoint.model_copy(update=options), thinking=config.model.thinking)
    if shared is None and config.data.perturb is not None:
        benchmark = offered("perturbed", "benchmark").of(benchmark, config.data, model.frame)
    if scaffold.sampling and engine_kind(config, checkpoint) == "local":
        name = config.model.name
        raise UsageError(f"scaffold {scaffold.name!r} sets sampling, and model {name!r} answers by itself and has none")
    answering = kind.at_once(config, choose_engine(config, model, benchmark.root, server), scaffold)
    return GivenParts(benchmark, model, answering, overlay)


def _select(config: RunConfig, benchmark: Listing[Any], model: ABCModel, engine: Engine) -> Selection:
    choice = choice_of(config.data)
    with blaming(f"benchmark {benchmark.name!r} cannot be listed"):
        unusable: Mapping[EpisodeKey, str] = {}
        if benchmark.skip_damaged and benchmark.needs_data:
            whole = select(benchmark, replace(choice, limit=None))  # a sample is drawn from what can be shown
            if shows_screenshots(benchmark, model, engine, whole):
                unusable = inspect(benchmark, whole.refs, whole.plan).reasons
        return select(benchmark, choice, unusable)


def _fixed_thoughts(config: RunConfig, model: ABCModel, benchmark: Listing[Any]) -> FixedThoughts | None:
    if config.history.fixed_thoughts is None:
        return None
    if not model.fixes_thought:
        raise UsageError(f"model {config.model.name!r} cannot be given a thought; `guieval models` shows which models can")
    source = Path(config.history.fixed_thoughts)
    fixed = read_thoughts(source)
    if fixed.benchmark != benchmark.name:
        raise UsageError(f"the thoughts of {str(source)!r} are about benchmark {fixed.benchmark!r}, not {benchmark.name!r}")
    return fixed


def _try_thought(benchmark: Listing[Any], model: ABCModel, selection: Selection, fixed: FixedThoughts) -> None:
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
    config: RunConfig, model: ABCModel, benchmark: Listing[Any], evaluator: ActionEvaluator, like: ResolvedRun | None
) -> Mixture | None:
    from guieval.history.mixing import Mixture, read_mix
    from guieval.running.history_artifacts import read_artifacts

    if not config.history.mix:
        for name in ("mix_artifacts", "mix_decisions"):
            if getattr(config.history, name) is not None:
                raise UsageError(f"{name} is for mixed histories, and there are none: add --set mix.start=P, say")
        return None
    mix = read_mix(config.history.mix)
    if config.history.mix_artifacts is None:
        raise UsageError("a mixed history needs the answers to mix in: add --set mix_artifacts=RUN")
    known = like.mixture if like is not None and like.config.having(mix={}) == config.having(mix={}) else None
    if like is not None and known is not None and like.config.history.mix_decisions == config.history.mix_decisions:
        diversities = known.diversities
    else:
        diversities = _diversities(config.history, mix, model, benchmark)
    if known is not None and (known.mix.pick, known.mix.seed) == (mix.pick, mix.seed):
        return Mixture(mix, known.artifacts, diversities)
    artifacts = read_artifacts(Path(config.history.mix_artifacts), evaluator, pick=mix.pick, seed=mix.seed)
    for what, theirs, ours in (
        ("model", artifacts.model, model.config.name),
        ("benchmark", artifacts.benchmark, benchmark.name),
    ):
        if theirs != ours:
            raise UsageError(f"the answers of {config.history.mix_artifacts!r} are of {what} {theirs!r}, not of {ours!r}")
    return Mixture(mix, artifacts, diversities)


def _diversities(history: History, mix: Mix, model: ABCModel, benchmark: Listing[Any]) -> Diversities | None:
    """Those of an adaptive mix, some of which are above its threshold; other mixes take none."""
    from guieval.running.history_artifacts import read_diversities

    if mix.near is None:
        if history.mix_decisions is not None:
            raise UsageError("mix_decisions says where decisions are diverse: add the probability near them, --set mix.near=P")
        return None
    if history.mix_decisions is None:
        raise UsageError(
            "mix.near needs to know where decisions are diverse: add --set mix_decisions=FILE, "
            "which `guieval study decisions RUN --steps FILE.jsonl` writes"
        )
    found = read_diversities(Path(history.mix_decisions), model.config.name, benchmark.name)
    if not found.diverse(mix.threshold):
        most = max(found.steps.values(), default=0.0)
        raise UsageError(
            f"no step of {history.mix_decisions!r} has a diversity above {mix.threshold:g} nats, the highest is {most:.3g}: "
            "mix.near would change nothing; give a lower mix.above"
        )
    return found
