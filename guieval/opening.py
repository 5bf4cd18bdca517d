"""From a configuration to a run that can be executed: the benchmark, the model and whoever answers, found and checked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from guieval.config import MOST_CONCURRENCY, RunConfig
from guieval.engines.vllm_arguments import named_arguments
from guieval.errors import UsageError
from guieval.journal import journal_file, read_manifest
from guieval.modes import get_mode
from guieval.overlays import Overlaid, read_overlay
from guieval.registry import build_model, config_folder, default_data_folder, load_benchmark, model_config
from guieval.run_settings import patch_policy
from guieval.runner import Run
from guieval.thoughts import FixedThoughts, read_thoughts

if TYPE_CHECKING:
    from guieval.decisions.mixing import Mixture
    from guieval.engines.in_process import InProcessEngine
    from guieval.engines.openai import OpenAIEngine
    from guieval.engines.vllm_server import VLLMServer


_OTHER_FILES = 128  # that a process holds open beside its connections


def open_server(config: RunConfig, log: Path) -> VLLMServer | None:
    """The server that a configuration wants started for it (engine ``vllm``), not yet started; ``None`` when it wants none.

    Raises :class:`UsageError` when it could not be started: vLLM is missing, an argument cannot be, the weights are unknown.
    """
    if config.engine != "vllm":
        if config.reuse_server and not config.base_urls:
            raise UsageError(f"--reuse-server is for --engine vllm, which starts the server; the engine is {config.engine!r}")
        return None
    from guieval.engines.vllm_command import VLLMSettings
    from guieval.engines.vllm_server import VLLMServer

    if config.base_urls:
        raise UsageError("--engine vllm starts its own server: leave out --base-url, or say --engine openai")
    model = model_config(config.model, config.adapter)
    if model.engine == "local":
        raise UsageError(f"model {config.model!r} answers by itself and needs no server: leave out --engine vllm")
    settings = VLLMSettings.of(
        {**config.vllm, "model": weights} if (weights := _weights(config, model.folder)) else config.vllm,
        served_name=config.served_model,
        media=Path(config.data) if config.data is not None else default_data_folder(config.bench),
        chat_templates=config_folder() / "chat_templates",
        reuse=config.reuse_server,
        state=default_data_folder("servers"),
    )
    server = VLLMServer(model, settings, log)
    server.check()
    return server


def open_run(config: RunConfig, directory: Path, server: VLLMServer | None = None, *, like: Run | None = None) -> Run:
    """Everything a configuration names, found and checked, ready to :meth:`guieval.runner.Run.execute`.

    Engine ``vllm`` needs ``server`` (:func:`open_server`), which must run while the run is executed. ``like`` is an opened run
    that differs in its mix and its directory alone: what was chosen of the benchmark, and its artifacts, need no second
    reading. Raises
    :class:`UsageError` for an unknown name, a missing data folder, a model that nobody was said to serve, patches that the
    mode or the engine cannot have, or thoughts that cannot be given to the model.
    """
    patches = patch_policy(config)
    get_mode(config.mode).patched(patches)
    run = _answered(config, directory, server)
    if config.fixed_thoughts is not None:
        run.fixed = _fixed_thoughts(config, Path(config.fixed_thoughts), run)
        _try_thought(run, run.fixed)
    if patches.method == "off-policy" and patches.allowed:
        run.thoughts = _auxiliary(config)
    if config.mix or config.mix_artifacts is not None:
        run.mixture = _mixture(config, run, like)
    return run


def _answered(config: RunConfig, directory: Path, server: VLLMServer | None) -> Run:
    """The run with whoever answers its steps."""
    named_arguments(config.vllm)  # whoever answers: a secret among them would be written down
    benchmark = load_benchmark(config.bench, config.data, **config.bench_options)
    checkpoint = model_config(config.model, config.adapter)
    given = checkpoint.model_copy(update={"options": {**checkpoint.options, **config.options}})
    model = build_model(given, thinking=config.thinking)
    benchmark.skip_damaged = config.skip_damaged
    worn = None
    if config.overlay is not None:
        overlay = read_overlay(Path(config.overlay))
        benchmark, worn = Overlaid(benchmark, overlay), overlay.to_json()
    kind = model.config.engine if config.engine == "auto" else config.engine
    if config.concurrency == "auto" and kind not in ("openai", "vllm"):
        raise UsageError(f"--concurrency auto is for servers; engine {kind!r} needs a number")
    fixed = config.concurrency if isinstance(config.concurrency, int) else None
    if kind in ("local", "replay") and config.patch == "on-policy":
        raise UsageError(f"on-policy patches need a model that can be asked for a thought; engine {kind!r} cannot")
    if kind == "local":
        from guieval.engines.local import LocalEngine

        workers = fixed or os.cpu_count() or 1
        return Run(config, directory, benchmark, model, LocalEngine(model, workers=workers), workers, overlay=worn)
    if kind == "replay":
        from guieval.engines.replay import ReplayEngine

        if config.replay is None:
            raise UsageError("engine 'replay' needs --replay RUN, the directory of the run that answers")
        read_manifest(Path(config.replay))
        engine = ReplayEngine(journal_file(Path(config.replay)))
        # a gap in the journal is no sign that the rest of it is missing
        slots = fixed or 64
        return Run(config, directory, benchmark, model, engine, slots, give_up_after=None, overlay=worn)
    if kind in ("vllm-inprocess", "transformers"):
        loading, slots = _in_process(config, fixed)
        return Run(config, directory, benchmark, model, loading, slots, before=loading.load, overlay=worn)
    from guieval.engines.concurrency import MOST, AdaptiveConcurrency
    from guieval.engines.launched import LaunchedEngine
    from guieval.engines.openai import OpenAIEngine, OpenAISettings

    if server is None and config.engine == "vllm":
        raise UsageError("engine 'vllm' needs the server that open_server makes")
    if server is None and not config.base_urls:
        raise UsageError(
            f"model {config.model!r} is answered by a server: add --base-url URL, e.g. http://127.0.0.1:8000/v1, "
            "or --engine vllm to have one started"
        )
    finds_out = config.concurrency == "auto" or (config.concurrency is None and server is not None)
    pace = AdaptiveConcurrency(most=min(MOST, _room())) if finds_out else None
    most = pace.most if pace is not None else fixed or 64
    ours = server is not None
    shared = server.settings.media if server is not None else benchmark.root
    settings = OpenAISettings(
        base_urls=config.base_urls or ("http://127.0.0.1/v1",),  # LaunchedEngine puts in where its server is
        model=config.served_model,
        api_key_env=config.api_key_env,
        max_concurrency=most,
        timeout=config.timeout,
        max_attempts=config.max_attempts,
        verify_tls=config.insecure_tls is None,
        local_images=shared if (ours if config.local_images is None else config.local_images) else None,
        image_uuids=ours if config.image_uuids is None else config.image_uuids,
    )
    _make_room(most)
    client = OpenAIEngine(settings, pace=pace) if server is None else LaunchedEngine(server, settings, pace=pace)
    names = [name for name in (model.config.hf_id, model.config.name) if name]
    limit = pace or most
    return Run(config, directory, benchmark, model, client, limit, before=lambda: client.discover(names), overlay=worn)


def _fixed_thoughts(config: RunConfig, source: Path, run: Run) -> FixedThoughts:
    """The thoughts of an earlier run, for a model that takes them, over a benchmark that they are about."""
    if not run.model.fixes_thought:
        raise UsageError(
            f"model {config.model!r} has no form in which a thought can be given; `guieval models` tells which have one"
        )
    fixed = read_thoughts(source)
    if fixed.benchmark != run.benchmark.name:
        raise UsageError(f"the thoughts of {str(source)!r} are about benchmark {fixed.benchmark!r}, not {run.benchmark.name!r}")
    return fixed


def _try_thought(run: Run, fixed: FixedThoughts) -> None:
    """Let the adapter say now what it would say of every step: that it takes no thought in this setting."""
    ref = run.selection.refs[0]
    task = run.benchmark.load(ref).steps[run.selection.plan[ref.key][0]]
    try:
        run.model.prepare_fixed_thought(task, (), fixed.texts[task.key])
    except UsageError:
        raise
    except Exception:  # an adapter may be anyone's code; any other failure is told with its step
        return


def _mixture(config: RunConfig, run: Run, like: Run | None) -> Mixture:
    """The histories that a configuration wants mixed, of the answers of an earlier run of the same model."""
    from guieval.decisions.artifacts import read_artifacts
    from guieval.decisions.mixing import Mixture, read_mix
    from guieval.evaluation import ActionEvaluator

    if not config.mix:
        raise UsageError("mix_artifacts is for mixed histories, and there are none: add --set mix.start=P, say")
    mix = read_mix(config.mix)
    if config.mix_artifacts is None:
        raise UsageError("a mixed history needs the answers to mix in: add --set mix_artifacts=RUN")
    if like is not None:
        if not isinstance(like.mixture, Mixture):
            raise ValueError("the run to be like has no mixed history")
        run.benchmark, run.selection = like.benchmark, like.selection
        return Mixture(mix, like.mixture.artifacts)
    artifacts = read_artifacts(Path(config.mix_artifacts), ActionEvaluator(run.protocol), pick=mix.pick, seed=mix.seed)
    for what, theirs, ours in (
        ("model", artifacts.model, run.model.config.name),
        ("benchmark", artifacts.benchmark, run.benchmark.name),
    ):
        if theirs != ours:
            raise UsageError(f"the answers of {config.mix_artifacts!r} are of {what} {theirs!r}, not of {ours!r}")
    return Mixture(mix, artifacts)


def _auxiliary(config: RunConfig) -> OpenAIEngine:
    """The model that writes the thoughts of off-policy patches."""
    from guieval.engines.openai import OpenAIEngine, OpenAISettings

    return OpenAIEngine(
        OpenAISettings(
            base_urls=config.patch_base_urls,
            model=config.patch_model,
            api_key_env=config.patch_api_key_env,
            timeout=config.timeout,
            max_attempts=config.max_attempts,
            verify_tls=config.insecure_tls is None,
        )
    )


def _in_process(config: RunConfig, slots: int | None) -> tuple[InProcessEngine, int]:
    """An engine that loads the model here, and how many requests it is given; all such runs of one command share the model."""
    from guieval.engines.in_process import Checkpoint

    if config.base_urls:
        raise UsageError(f"engine {config.engine!r} loads the model itself: leave out --base-url, or say --engine openai")
    model = model_config(config.model, config.adapter)
    if model.engine == "local":
        raise UsageError(f"model {config.model!r} answers by itself: leave out --engine {config.engine}")
    folder = config_folder() / "chat_templates"
    checkpoint = Checkpoint(model, path=_weights(config, model.folder), arguments=config.vllm, chat_templates=folder)
    if config.engine == "transformers":
        from guieval.engines.transformers_local import transformers_engine

        # one is answered at a time; with a second slot the next step's screenshots are read meanwhile
        return transformers_engine(checkpoint), slots or 2
    from guieval.engines.vllm_inprocess import vllm_engine

    return vllm_engine(checkpoint), slots or 64


def _weights(config: RunConfig, shipped: str | None) -> str | None:
    """Where the user says the weights are, else where they are shipped; ``None`` when they are found by the model's id."""
    if config.model_path or config.vllm.get("model") or shipped is None:
        return config.model_path
    return str(config_folder() / "checkpoints" / shipped)


def _room() -> int:
    """How many connections this process may ever hold."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONCURRENCY if hard == resource.RLIM_INFINITY else max(1, hard - _OTHER_FILES)


def _make_room(connections: int) -> None:
    """Let this process hold so many connections; many systems allow 1024 open files until a process asks for more."""
    import resource

    needed = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard != resource.RLIM_INFINITY and hard < needed:
            raise UsageError(
                f"a concurrency of {connections} needs {needed} open files, but this system allows {hard} (ulimit -n)"
            )
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
