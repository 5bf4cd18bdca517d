"""Settings that a run folder may decide on resume, and those that only its user may.

A run folder is data that people send each other. Its settings may not make guieval run code, send a key or screenshots to a
server, or report anywhere, unless the user names that again, confirms it with ``--trust-run``, or has begun a run with the same
setting on this machine before. What a user began is kept as lines of text in ``$XDG_STATE_HOME/guieval/trusted.txt``
(default ``~/.local/state``); it has no secret. Code (an adapter file, the program that serves the model) has to be named
again in any case.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from guieval.data.files import read_bytes, read_text
from guieval.errors import UsageError
from guieval.journal import MANIFEST, RunFolder, has_records, is_run
from guieval.journal.run_folders import runs_below
from guieval.online.find import environments
from guieval.registry import model_configs
from guieval.running.config import merge, parse
from guieval.running.engine_choice import HOSTED, native_api
from guieval.settings import GROUPS, RunConfig, Server, placed
from guieval.settings.fields import OUTWARD, marks_of

_CODE_ARGUMENTS = frozenset(
    {"python", "command", "middleware", "plugins", "tool-parser-plugin", "reasoning-parser-plugin", "worker-cls"}
    | {"worker-extension-cls", "scheduler-cls", "logits-processors", "distributed-executor-backend", "trust-remote-code"}
)
"""Settings of a launched vLLM server that name a program, a module or a file that is executed."""


class Reach(NamedTuple):
    """One thing outside the run folder that a configuration reaches for: in words, and how the user would name it again."""

    text: str
    option: tuple[str, ...]
    code: bool = False

    @property
    def words(self) -> str:
        return shlex.join(self.option)


def reaches(config: RunConfig) -> Iterator[Reach]:
    """Everything that a configuration sends to, starts or imports: endpoints with the variable of their key, weights, code."""
    if config.model.adapter is not None and config.model.adapter.endswith(".py"):
        yield Reach(f"import the adapter file {config.model.adapter!r}", ("--adapter", config.model.adapter), code=True)
    unproven = " without verifying its certificate" if config.server.insecure_tls else ""
    through = f" through the proxy {config.server.proxy!r}" if config.server.proxy else ""
    again = ("--set", f"proxy={config.server.proxy}") if config.server.proxy else ()
    service, key_variable = _service(config)
    history, server = config.history, config.server
    for option, urls, named in (
        ("--base-url", service, ("--api-key-env", key_variable)),
        ("--patch-base-url", history.patch_base_urls, ("--set", f"patch_api_key_env={history.patch_api_key_env}")),
        ("--grounder-base-url", server.grounder_base_urls, ("--set", f"grounder_api_key_env={server.grounder_api_key_env}")),
    ):
        variable = named[-1].rpartition("=")[2]
        for url in urls:  # the key and the screenshots go there
            text = f"ask the server {url!r}{through}{unproven} with the key in {variable}"
            yield Reach(text, (option, url, *named, *again))
    if config.server.engine in ("vllm", "vllm-inprocess", "transformers"):
        if config.model.model_path is not None:
            yield Reach(f"load the weights {config.model.model_path!r}", ("--set", f"model_path={config.model.model_path}"))
        for name, value in sorted(config.server.vllm.items()):
            plain = name.removeprefix("--").replace("_", "-")
            yield Reach(
                f"start vLLM with {plain}={json.dumps(value, sort_keys=True)}",
                ("--set", f"vllm.{name}={value if isinstance(value, str) else json.dumps(value)}"),
                code=plain in _CODE_ARGUMENTS,
            )
    environment = environments().get(config.data.bench)
    for name in sorted(config.data.bench_options.keys() & (environment.outward if environment else set())):
        value = config.data.bench_options[name]
        yield Reach(f"act in {config.data.bench} with {name}={value!r}", ("--set", f"bench_options.{name}={value}"))
    if config.online.allow_network:
        yield Reach(f"let pages of {config.data.bench} reach any host", ("--allow-network",))
    if config.cluster.kind != "none":
        yield Reach(
            f"join the Ray cluster {config.cluster.cluster_address!r}", ("--cluster-address", config.cluster.cluster_address)
        )
    for name in config.tracking.track:
        there = config.tracking.model_dump(include={"project", "name", "uri"}, exclude_none=True)
        yield Reach(f"report to {name} with {json.dumps(there, sort_keys=True)}", ("--track", name))


def remember(configs: Sequence[RunConfig]) -> None:
    """Keep what the user's own runs reach for, so that resuming them asks for no confirmation on this machine."""
    known = _known()
    new = dict.fromkeys(each.text for config in configs for each in reaches(config) if not each.code and each.text not in known)
    if not new:
        return
    with suppress(OSError):  # without a home folder a resume asks to confirm, which is safe
        _file().parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _file().open("a", encoding="utf-8") as stream:
            stream.writelines(f"{json.dumps(text)}\n" for text in new)


def resumed(
    base: Mapping[str, Any], file: Path | None, overrides: Sequence[str], flags: Mapping[str, Any], *, trust: bool, folder: Path
) -> RunConfig:
    """The configuration of a run that is resumed: its folder's settings ``base`` with the user's over them.

    ``trust`` is ``--trust-run``. Raises :class:`UsageError` when the folder's settings reach for something that the user
    neither names, nor has begun a run with, nor confirms; code has to be named in any case.
    """
    try:
        config = merge(file, overrides, flags, base=base)
    except UsageError as error:
        if str(error) == _problem(base):  # the user has given nothing that it speaks of
            raise UsageError(f"{str(folder / 'manifest.json')!r}, field config: {error}") from None
        raise
    allowed = {  # what its folder can decide alone
        group: {name: value for name, value in given.items() if OUTWARD not in marks_of(GROUPS[group].model_fields[name])}
        for group, given in placed(base).items()
    }
    own = merge(file, overrides, flags, base=allowed)
    named = {each.text for each in reaches(own.having(engine=config.server.engine, cluster=config.cluster.kind))}
    unnamed = [each for each in reaches(config) if each.text not in named]
    if code := [each for each in unnamed if each.code]:
        raise UsageError(
            f"the run folder {str(folder)!r} wants to {code[0].text}; guieval runs no code that only a run folder names: "
            f"look at it, then add {code[0].words}"
        )
    known = _known()
    if not trust and (unknown := [each for each in unnamed if each.text not in known]):
        wishes = "; ".join(each.text for each in unknown[:3]) + ("; ..." if len(unknown) > 3 else "")
        raise UsageError(
            f"the run folder {str(folder)!r} wants to {wishes}; no run was begun so on this machine: "
            f"name it again ({unknown[0].words}), or add --trust-run if you trust the folder"
        )
    return config


def _service(config: RunConfig) -> tuple[tuple[str, ...], str]:
    """The addresses that a model is queried at, a hosted model's own by default, and the variable of the key sent there."""
    known = model_configs().get(config.model.name)
    kind = known.engine if known is not None and config.server.engine == "auto" else config.server.engine
    if kind not in HOSTED:
        return config.server.base_urls, config.server.api_key_env
    api = native_api(kind)
    unset = config.server.api_key_env == Server.model_fields["api_key_env"].default
    return config.server.base_urls or (api.own_url,), api.key_env if unset else config.server.api_key_env


def _problem(base: Mapping[str, Any]) -> str | None:
    try:
        parse(base, kept=base)
    except UsageError as error:
        return str(error)
    return None


def resumed_runs(
    directory: Path,
    modes: Sequence[str] | None,
    file: Path | None,
    overrides: Sequence[str],
    flags: Mapping[str, Any],
    *,
    trust: bool,
) -> list[tuple[RunConfig, Path]]:
    """The run that a directory is, or those one below it, with the user's settings over their own; only those in ``modes``.

    Raises :class:`UsageError` if there is no such run, or if one is damaged or not trusted
    (:func:`resumed`).
    """
    folders = [directory] if is_run(directory) else runs_below(directory)
    for folder in [] if folders == [directory] else [directory, *sorted(directory.glob("*"))]:
        if folder not in folders and has_records(folder):
            raise UsageError(f"{str(folder / MANIFEST)!r} is not there, so that the folder's runs cannot be resumed")
    if not folders:
        raise UsageError(f"nothing to resume: {str(directory)!r} has no run")
    for folder in folders:
        if (imported := RunFolder(folder).manifest.imported) is not None:
            raise UsageError(
                f"{str(folder)!r} was imported from {imported.source!r}, so there is nothing to resume: import it again"
            )
    recorded = [(RunFolder(folder).manifest.config.to_json(), folder) for folder in folders]
    runs = [(resumed(base, file, overrides, flags, trust=trust, folder=folder), folder) for base, folder in recorded]
    here = {config.history.mode for config, _ in runs}
    for mode in modes or ():
        if mode not in here:
            raise UsageError(f"{str(directory)!r} has no run in mode {mode!r}, only in {', '.join(sorted(here))}")
    return [(config, folder) for config, folder in runs if not modes or config.history.mode in modes]


def resume_command(directory: Path, configs: Iterable[RunConfig]) -> str:
    """The shell command that resumes the runs in ``directory``; it names code outside the package again."""
    code = dict.fromkeys(each.words for config in configs for each in reaches(config) if each.code)
    return " ".join(["guieval run --resume", shlex.quote(str(directory)), *code])


def resume_of(directory: Path) -> str:
    """The :func:`resume_command` of a run, by the settings in its manifest; without code if these cannot be read."""
    recorded = RunFolder(directory).manifest.config.to_json()
    with suppress(UsageError):  # of another version: a resume says so
        return resume_command(directory, [parse(recorded, kept=recorded)])
    return resume_command(directory, [])


def code_digests(config: RunConfig) -> dict[str, str]:
    """SHA-256 of the files outside the package that a configuration executes, by what they are; those that exist."""
    named = {name.removeprefix("--").replace("_", "-"): value for name, value in config.server.vllm.items()}
    command = named.get("command")
    words = shlex.split(command) if isinstance(command, str) else command if isinstance(command, list) else []
    files: dict[str, Any] = {
        "adapter file": config.model.adapter if config.model.adapter and config.model.adapter.endswith(".py") else None,
        "vllm.command": words[0] if words and config.server.engine == "vllm" else None,
        "vllm.python": named.get("python") if config.server.engine == "vllm" else None,
    }
    found: dict[str, str] = {}
    for what, name in files.items():
        where = shutil.which(name) or name if isinstance(name, str) else None
        with suppress(OSError):  # a file that cannot be read cannot be run either, and running it reports that
            if where is not None:
                found[what] = sha256(read_bytes(Path(where))).hexdigest()
    return found


def _known() -> set[str]:
    try:
        lines = read_text(_file()).splitlines()
    except (OSError, ValueError):
        return set()
    known = set()
    for line in lines:
        with suppress(ValueError):
            known.add(str(json.loads(line)))
    return known


def _file() -> Path:
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "guieval" / "trusted.txt"
