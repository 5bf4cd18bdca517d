"""Chooses what answers a run's steps: a server, perhaps started for it, a model or agent in this process, or an earlier run."""

from __future__ import annotations

import os
import resource
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from guieval.errors import UsageError
from guieval.journal import RunFolder, journal_file
from guieval.models import ABCModel, Engine, ModelConfig
from guieval.registry import config_folder, default_data_folder, model_config
from guieval.running.config import RunConfig, refuse_the_key

if TYPE_CHECKING:
    from guieval.engines.apis.native import NativeAPI
    from guieval.engines.concurrency import AdaptiveConcurrency
    from guieval.engines.http.chat_completions import OpenAIEngine, OpenAISettings
    from guieval.engines.vllm.server import VLLMServer

GIVE_UP_AFTER = 100
"""Requests that may fail in a row, all tries of each, before a run stops: the server is gone, and a resume is cheaper."""
LOADING = ("vllm", "vllm-inprocess", "transformers")
"""Engines that load a model on this machine."""
_OTHER_FILES = 128
"""Files that a process holds open beside its connections."""


class Answering(NamedTuple):
    """An engine and how it is used.

    ``prepare`` is awaited before the first step, e.g. to find the name of the served model; if it fails, the run ends.
    """

    engine: Engine
    concurrency: int | AdaptiveConcurrency
    prepare: Callable[[], Awaitable[object]] | None = None
    give_up_after: int | None = GIVE_UP_AFTER
    notes: tuple[str, ...] = ()


def engine_kind(config: RunConfig, model: ModelConfig) -> str:
    """The engine's name, where the setting is ``auto`` the checkpoint's own."""
    return model.engine if config.engine == "auto" else config.engine


def asks_a_model(config: RunConfig, model: ModelConfig) -> bool:
    """Whether a model generates the answers; an earlier run or a Python agent does not."""
    return engine_kind(config, model) not in ("local", "replay")


def never_asked(config: RunConfig) -> RunConfig:
    """The configuration with an address, for a run that sends nothing and so needs no server, no engine and no key."""
    kind = engine_kind(config, model_config(config.model, config.adapter))
    address = {"base_urls": config.base_urls or ("http://127.0.0.1/v1",)}
    if kind in LOADING:
        return config.model_copy(update={**address, "engine": "openai", "reuse_server": False})
    return config.model_copy(update=address) if kind in ("openai", *HOSTED) else config


def open_server(config: RunConfig, log: Path) -> VLLMServer | None:
    """The server that must be started for a configuration (engine ``vllm``), not started yet; ``None`` where it needs none.

    Raises :class:`UsageError` if it could not be started: vLLM is missing, an argument is wrong, the weights are unknown.
    """
    if config.engine != "vllm":
        if config.reuse_server and not config.base_urls:
            raise UsageError(f"--reuse-server is for --engine vllm, which starts the server; the engine is {config.engine!r}")
        return None
    from guieval.engines.vllm.command import VLLMSettings
    from guieval.engines.vllm.server import VLLMServer

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


def choose_engine(config: RunConfig, model: ABCModel, screenshots: Path, server: VLLMServer | None) -> Answering:
    """The engine that a configuration asks for.

    ``screenshots`` is the benchmark's folder. Raises :class:`UsageError` if the settings do not fit the engine, or if the model
    needs a server and none is named.
    """
    kind = engine_kind(config, model.config)
    if config.concurrency == "auto" and kind not in ("openai", "vllm"):
        raise UsageError(f"--concurrency auto is for servers; engine {kind!r} needs a number")
    if config.stream and kind not in ("openai", "vllm"):
        raise UsageError(f"stream=true is for chat-completions servers; engine {kind!r} has no streams")
    slots = config.concurrency if isinstance(config.concurrency, int) else None
    if kind in ("local", "replay") and config.patch == "on-policy":
        raise UsageError(f"on-policy patches need a model that can generate a thought; engine {kind!r} cannot")
    if kind == "local":
        from guieval.engines.in_process.agent import LocalEngine

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
    from guieval.engines.http.chat_completions import OpenAIEngine, OpenAISettings

    return OpenAIEngine(
        OpenAISettings(
            base_urls=config.patch_base_urls,
            model=config.patch_model,
            api_key_env=config.patch_api_key_env,
            hidden_key_envs=(config.api_key_env,),
            timeout=config.timeout,
            max_attempts=config.max_attempts,
            patience=config.patience,
            verify_tls=config.insecure_tls is None,
            proxy=config.proxy,
            trust_env=config.trust_env,
        )
    )


def _replay(config: RunConfig, slots: int | None) -> Answering:
    from guieval.engines.replay import ReplayEngine

    if config.replay is None:
        raise UsageError("engine 'replay' needs --replay RUN, the directory of the run that answers")
    _ = RunFolder(Path(config.replay)).manifest
    # a step without an answer does not mean that all others have none, so the run never gives up
    return Answering(ReplayEngine(journal_file(Path(config.replay))), slots or 64, give_up_after=None)


def _in_process(config: RunConfig, slots: int | None) -> Answering:
    """An engine that loads the model into this process; all such runs of one command share the model."""
    from guieval.engines.in_process.checkpoint import Checkpoint

    if config.base_urls:
        raise UsageError(f"engine {config.engine!r} loads the model itself: leave out --base-url, or say --engine openai")
    model = model_config(config.model, config.adapter)
    if model.engine == "local":
        raise UsageError(f"model {config.model!r} answers by itself: leave out --engine {config.engine}")
    folder = config_folder() / "chat_templates"
    checkpoint = Checkpoint(model, path=_weights(config, model.folder), arguments=config.vllm, chat_templates=folder)
    if config.engine == "transformers":
        from guieval.engines.in_process.transformers import transformers_engine

        engine = transformers_engine(checkpoint)
        # it answers one request at a time; with a second slot, the next step's screenshots are read meanwhile
        return Answering(engine, slots or 2, engine.load)
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
    """The configuration with the variable from which a hosted API's key is read, where the setting is at its default.

    Raises :class:`UsageError` if another setting holds that key.
    """
    kind = engine_kind(config, model_config(config.model, config.adapter))
    if kind not in HOSTED or config.api_key_env != RunConfig.model_fields["api_key_env"].default:
        return config
    named = config.model_copy(update={"api_key_env": native_api(kind).key_env})
    refuse_the_key(named)
    return named


def _hosted(config: RunConfig, model: ABCModel, kind: str, slots: int | None) -> Answering:
    """A hosted model's native API, at its maker's address where no base URL is given."""
    from guieval.engines.apis.hosted import HostedEngine

    api = native_api(kind)
    most, notes = _room(slots or _HOSTED_SLOTS)
    settings = _server_settings(config, Path(), None)
    settings = settings.model_copy(
        update={
            "base_urls": config.base_urls or (api.own_url,),
            "model": config.served_model or model.config.served_as or model.config.name,
            "local_images": None,
        }
    )
    engine = HostedEngine(api, settings)
    return Answering(engine, most, engine.discover, notes=notes)


def _by_server(
    config: RunConfig, model: ABCModel, screenshots: Path, server: VLLMServer | None, slots: int | None
) -> Answering:
    from guieval.engines.concurrency import MOST, AdaptiveConcurrency
    from guieval.engines.http.chat_completions import OpenAIEngine
    from guieval.engines.vllm.launched import LaunchedEngine

    if server is None and config.engine == "vllm":
        raise UsageError("engine 'vllm' needs the server that open_server makes")
    if server is None and not config.base_urls:
        raise UsageError(
            f"model {config.model!r} is answered by a server: add --base-url URL, e.g. http://127.0.0.1:8000/v1, "
            "or --engine vllm to have one started"
        )
    finds_out = config.concurrency == "auto" or (config.concurrency is None and server is not None)
    most, notes = _room(MOST if finds_out else slots or 64)
    pace = AdaptiveConcurrency(most=most) if finds_out else None
    settings = _server_settings(config, screenshots, server)
    client = OpenAIEngine(settings, pace=pace) if server is None else LaunchedEngine(server, settings, pace=pace)
    names = [name for name in (model.config.hf_id, model.config.name) if name]
    return Answering(client, pace or most, lambda: client.discover(names), notes=notes)


def _server_settings(config: RunConfig, screenshots: Path, server: VLLMServer | None) -> OpenAISettings:
    from guieval.engines.http.chat_completions import OpenAISettings

    ours = server is not None
    shared = server.settings.media if server is not None else screenshots
    return OpenAISettings(
        base_urls=config.base_urls or ("http://127.0.0.1/v1",),  # LaunchedEngine replaces it by its server's address
        model=config.served_model,
        api_key_env=config.api_key_env,
        stream=config.stream,
        hidden_key_envs=(config.patch_api_key_env,),
        timeout=config.timeout,
        max_attempts=config.max_attempts,
        patience=config.patience,
        verify_tls=config.insecure_tls is None,
        proxy=None if ours else config.proxy,
        trust_env=config.trust_env and not ours,
        local_images=shared if (ours if config.local_images is None else config.local_images) else None,
        image_uuids=ours if config.image_uuids is None else config.image_uuids,
    )


def _weights(config: RunConfig, shipped: str | None) -> str | None:
    """Where the user says that the weights are, else where they are shipped; ``None`` if the model's id finds them."""
    if config.model_path or config.vllm.get("model") or shipped is None:
        return config.model_path
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
