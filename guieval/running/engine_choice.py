"""Chooses what answers a run's steps: a server, perhaps started for it, a model or agent in this process, or an earlier run."""

from __future__ import annotations

import os
import resource
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from guieval.data.shipped import config_folder
from guieval.errors import UsageError
from guieval.journal import RunFolder
from guieval.models import ABCModel, Engine, ModelConfig
from guieval.models.composition import Composition
from guieval.registry import default_data_folder, model_config
from guieval.running.config import refuse_the_key
from guieval.settings import RunConfig, Server, key_variables

if TYPE_CHECKING:
    from guieval.engines.apis.native import NativeAPI
    from guieval.engines.concurrency import AdaptiveConcurrency
    from guieval.engines.http.chat_completions import OpenAIEngine
    from guieval.engines.vllm.server import VLLMServer

GIVE_UP_AFTER = 100
"""Requests that may fail in a row, all tries of each, before a run stops: the server is gone, and a resume is cheaper."""
LOADING = ("vllm", "vllm-inprocess", "transformers")
"""Engines that load a model on this machine."""
_OTHER_FILES = 128
"""Files that a process has open besides its connections."""


class Answering(NamedTuple):
    """An engine and how it is used.

    ``prepare`` is awaited before the first step, e.g. to find the name of the served model; if it fails, the run ends.
    ``grounder`` answers for the grounder of a composition.
    """

    engine: Engine
    concurrency: int | AdaptiveConcurrency
    prepare: Callable[[], Awaitable[object]] | None = None
    give_up_after: int | None = GIVE_UP_AFTER
    notes: tuple[str, ...] = ()
    grounder: Engine | None = None


def engine_kind(config: RunConfig, model: ModelConfig) -> str:
    """The engine's name, if the setting is ``auto``, the checkpoint's own."""
    return model.engine if config.server.engine == "auto" else config.server.engine


def asks_a_model(config: RunConfig, model: ModelConfig) -> bool:
    """Whether a model generates the answers; an earlier run or a Python agent does not."""
    return engine_kind(config, model) not in ("local", "replay")


def never_asked(config: RunConfig) -> RunConfig:
    """The configuration with an address, for a run that sends nothing and so needs no server, no engine and no key."""
    kind = engine_kind(config, model_config(config.model.name, config.model.adapter))
    if kind not in (*LOADING, "openai", *HOSTED):
        return config
    config = config.having(base_urls=config.server.base_urls or ("http://127.0.0.1/v1",))
    return config.having(engine="openai", reuse_server=False) if kind in LOADING else config


def open_server(config: RunConfig, log: Path) -> VLLMServer | None:
    """The server that must be started for a configuration (engine ``vllm``), not started yet; ``None`` if it needs none.

    Raises :class:`UsageError` if it could not be started: vLLM is missing, an argument is wrong, the weights are unknown.
    """
    if config.server.engine != "vllm":
        if config.server.reuse_server and not config.server.base_urls:
            raise UsageError(
                f"--reuse-server is for --engine vllm, which starts the server; the engine is {config.server.engine!r}"
            )
        return None
    from guieval.engines.vllm.command import VLLMSettings
    from guieval.engines.vllm.server import VLLMServer

    if config.server.base_urls:
        raise UsageError("--engine vllm starts its own server: leave out --base-url, or say --engine openai")
    model = model_config(config.model.name, config.model.adapter)
    if model.engine == "local":
        raise UsageError(f"model {config.model.name!r} answers by itself and needs no server: leave out --engine vllm")
    settings = VLLMSettings.of(
        {**config.server.vllm, "model": weights} if (weights := _weights(config, model.folder)) else config.server.vllm,
        served_name=config.server.served_model,
        media=Path(config.data.folder) if config.data.folder is not None else default_data_folder(config.data.bench),
        chat_templates=config_folder() / "chat_templates",
        reuse=config.server.reuse_server,
        state=default_data_folder("servers"),
    )
    server = VLLMServer(model, settings, log)
    server.check()
    return server


def choose_engine(config: RunConfig, model: ABCModel, screenshots: Path, server: VLLMServer | None) -> Answering:
    """The engine that a configuration asks for, and that of the grounder if the model is a composition with one.

    ``screenshots`` is the benchmark's folder. Raises :class:`UsageError` if the settings do not fit the engine, or if the model
    needs a server and none is named.
    """
    answering = _engine(config, model, screenshots, server)
    if not isinstance(model, Composition) or model.grounder is None or engine_kind(config, model.config) == "replay":
        return answering
    grounder = _engine(_of_grounder(config, model.config, model.grounder), model.grounder, screenshots, None)

    async def prepare() -> None:
        for each in filter(None, (answering.prepare, grounder.prepare)):
            await each()

    notes = tuple(dict.fromkeys((*answering.notes, *grounder.notes)))
    return answering._replace(prepare=prepare, notes=notes, grounder=grounder.engine)


def _of_grounder(config: RunConfig, planner: ModelConfig, grounder: ABCModel) -> RunConfig:
    """The configuration as if the grounder were the model: with servers of its own, else with the planner's."""
    given = config.server
    own: dict[str, Any] = {}
    if given.grounder_base_urls:
        own = {"base_urls": given.grounder_base_urls, "api_key_env": given.grounder_api_key_env}
    if grounder.config.engine != "local" and not (own or (given.base_urls and engine_kind(config, planner) == "openai")):
        raise UsageError(
            f"the grounder {grounder.config.name!r} is answered by a server: add --grounder-base-url URL of an "
            "OpenAI-compatible endpoint, or --base-url URL of one that has both models"
        )
    engine = "local" if grounder.config.engine == "local" else "openai"
    concurrency = given.concurrency if isinstance(given.concurrency, int) else None
    more = {"engine": engine, "concurrency": concurrency, "stream": given.stream and engine == "openai"}
    return config.having(**own, **more, served_model=given.grounder_served_model)


def _engine(config: RunConfig, model: ABCModel, screenshots: Path, server: VLLMServer | None) -> Answering:
    kind = engine_kind(config, model.config)
    if config.server.concurrency == "auto" and kind not in ("openai", "vllm"):
        raise UsageError(f"--concurrency auto is for servers; engine {kind!r} needs a number")
    if config.server.stream and kind not in ("openai", "vllm"):
        raise UsageError(f"stream=true is for chat-completions servers; engine {kind!r} has no streams")
    slots = config.server.concurrency if isinstance(config.server.concurrency, int) else None
    if kind in ("local", "replay") and config.history.patch == "on-policy":
        raise UsageError(f"on-policy patches need a model that can generate a thought; engine {kind!r} cannot")
    if kind == "local":
        from guieval.engines.in_process.agent import LocalEngine

        model.check_installed()
        workers = slots or os.cpu_count() or 1
        return Answering(LocalEngine(model, workers=workers), workers)
    if kind == "replay":
        return _replay(config, slots)
    if kind in ("vllm-inprocess", "transformers"):
        return _in_process(config, slots)
    if kind in HOSTED:
        return _hosted(config, model, kind, slots)
    return _by_server(config, model, screenshots, server, slots)


def auxiliary_engine(config: RunConfig) -> OpenAIEngine:
    """The engine of the model that writes the thoughts of off-policy patches."""
    from guieval.engines.http.chat_completions import OpenAIEngine

    patches = config.history
    address = {"base_urls": patches.patch_base_urls, "api_key_env": patches.patch_api_key_env}
    other = {**address, "served_model": patches.patch_model, "stream": False, "image_uuids": None}
    return OpenAIEngine(config.server.model_copy(update=other), other_keys=key_variables(config))


def _replay(config: RunConfig, slots: int | None) -> Answering:
    from guieval.engines.replay import ReplayEngine

    if config.server.replay is None:
        raise UsageError("engine 'replay' needs --replay RUN, the directory of the run that answers")
    # a step without an answer does not mean that all others have none, so the run never gives up
    return Answering(ReplayEngine(RunFolder(Path(config.server.replay)).steps), slots or 64, give_up_after=None)


def _in_process(config: RunConfig, slots: int | None) -> Answering:
    """An engine that loads the model into this process; all such runs of one command share the model."""
    from guieval.engines.in_process.checkpoint import Checkpoint

    if config.server.base_urls:
        raise UsageError(
            f"engine {config.server.engine!r} loads the model itself: leave out --base-url, or say --engine openai"
        )
    model = model_config(config.model.name, config.model.adapter)
    if model.engine == "local":
        raise UsageError(f"model {config.model.name!r} answers by itself: leave out --engine {config.server.engine}")
    folder = config_folder() / "chat_templates"
    checkpoint = Checkpoint(
        model,
        path=_weights(config, model.folder),
        arguments=config.server.vllm,
        chat_templates=folder,
        attention=config.server.attention,
        batch_size=config.server.batch_size,
        cache=config.server.cache,
    )
    if config.server.engine == "transformers":
        from guieval.engines.in_process.transformers import transformers_engine

        engine = transformers_engine(checkpoint)
        # while a batch is computed, the next screenshots are read, and the next batch is chosen by length among these requests
        return Answering(engine, slots or 4 * (config.server.batch_size or 8), engine.load)
    from guieval.engines.in_process.vllm import vllm_engine

    served = vllm_engine(checkpoint)
    return Answering(served, slots or 64, served.load)


HOSTED = {
    "openai-responses": ("guieval.engines.apis.openai_responses", "OpenAIResponses"),
    "anthropic": ("guieval.engines.apis.anthropic_messages", "AnthropicMessages"),
    "gemini": ("guieval.engines.apis.gemini", "Gemini"),
}
"""Module and class of each native API."""
_HOSTED_SLOTS = 16


def native_api(kind: str) -> type[NativeAPI]:
    """The API of an engine's name; its module is imported here, since others do not need its SDK."""
    module, name = HOSTED[kind]
    api: type[NativeAPI] = getattr(import_module(module), name)
    return api


def with_key_variable(config: RunConfig) -> RunConfig:
    """The configuration with the variable from which a hosted API's key is read, if the setting is at its default.

    Raises :class:`UsageError` if another setting holds that key.
    """
    kind = engine_kind(config, model_config(config.model.name, config.model.adapter))
    if kind not in HOSTED or config.server.api_key_env != Server.model_fields["api_key_env"].default:
        return config
    named = config.having(api_key_env=native_api(kind).key_env)
    refuse_the_key(named)
    return named


def _hosted(config: RunConfig, model: ABCModel, kind: str, slots: int | None) -> Answering:
    """A hosted model's native API, at its maker's address if no base URL is given."""
    from guieval.engines.apis.hosted import HostedEngine

    api = native_api(kind)
    most, notes = _room(slots or _HOSTED_SLOTS)
    settings = config.server.model_copy(
        update={
            "base_urls": config.server.base_urls or (api.own_url,),
            "served_model": config.server.served_model or model.config.served_as or model.config.name,
        }
    )
    engine = HostedEngine(api, settings, other_keys=key_variables(config))
    return Answering(engine, most, engine.discover, notes=notes)


def _by_server(
    config: RunConfig, model: ABCModel, screenshots: Path, server: VLLMServer | None, slots: int | None
) -> Answering:
    from guieval.engines.concurrency import MOST, AdaptiveConcurrency
    from guieval.engines.http.chat_completions import OpenAIEngine
    from guieval.engines.vllm.launched import LaunchedEngine

    if server is None and config.server.engine == "vllm":
        raise UsageError("engine 'vllm' needs the server that open_server makes")
    if server is None and not config.server.base_urls:
        raise UsageError(
            f"model {config.model.name!r} is answered by a server: add --base-url URL, e.g. http://127.0.0.1:8000/v1, "
            "or --engine vllm to have one started"
        )
    finds_out = config.server.concurrency == "auto" or (config.server.concurrency is None and server is not None)
    most, notes = _room(MOST if finds_out else slots or 64)
    pace = AdaptiveConcurrency(most=most) if finds_out else None
    given = config.server
    how: dict[str, Any] = {"pace": pace, "other_keys": key_variables(config)}
    if server is None:
        client = OpenAIEngine(given, folder=screenshots if given.local_images else None, **how)
    else:  # ours: on this machine, with a cache of its own
        uuids = given.image_uuids is not False
        ours = {"base_urls": ("http://127.0.0.1/v1",), "proxy": None, "trust_env": False, "image_uuids": uuids}
        folder = None if given.local_images is False else server.settings.media
        client = LaunchedEngine(server, given.model_copy(update=ours), folder=folder, **how)
    names = [name for name in (model.config.hf_id, model.config.served_as, model.config.name) if name]
    return Answering(client, pace or most, lambda: client.discover(names), notes=notes)


def _weights(config: RunConfig, shipped: str | None) -> str | None:
    """Where the user says that the weights are, else the place of the shipped ones; ``None`` if the model's id finds them."""
    if config.model.model_path or config.server.vllm.get("model") or shipped is None:
        return config.model.model_path
    return str(config_folder() / "checkpoints" / shipped)


def _room(connections: int) -> tuple[int, tuple[str, ...]]:
    """Allow this process so many connections; how many it may have, and a note if these are fewer.

    Many systems allow 1024 open files until a process asks for more.
    """
    needed = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        allowed = max(1, hard - min(_OTHER_FILES, hard // 2))
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        if allowed >= connections:
            return connections, ()
        return allowed, (
            f"at most {allowed:,} requests are in flight instead of {connections:,}, because this system allows a program "
            f"{hard:,} open files (ulimit -n)",
        )
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    return connections, ()
