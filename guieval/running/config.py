"""Where the settings of a run meet: YAML file, ``--set`` overrides and command-line flags in one merge, checked once.

:mod:`guieval.settings` declares them. The resolved configuration is saved with the results.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from guieval.data.shipped import config_folder
from guieval.data.user_files import read_values
from guieval.data.yaml_text import AliasError, read_yaml
from guieval.errors import UsageError, first_problem, nearest
from guieval.secrets import looks_secret
from guieval.settings import KEY_VARIABLES, RunConfig, key_variables, own_path, place, placed
from guieval.settings.sampling import OPTIONS, UNKNOWN_SAMPLING


def settings_file(given: Path, kind: str, of_what: str) -> Path:
    """The file itself, or the shipped one of that name in the folder ``kind``.

    Raises :class:`guieval.errors.UsageError` with the nearest name, and what ``of_what`` is shipped.
    """
    if given.is_file() or given.suffix or len(given.parts) > 1:
        return given
    folder = config_folder() / kind
    known = sorted(file.stem for file in folder.glob("*.yaml"))
    if given.name not in known:
        raise UsageError(
            f"there is no file {str(given)!r}, and no shipped {of_what} of that name{nearest(given.name, known)}; "
            f"shipped: {', '.join(known)}"
        )
    return folder / f"{given.name}.yaml"


def run_file(given: Path | None) -> Path | None:
    """The settings of a run: the file itself, or the shipped one of that name; ``None`` for ``None``."""
    return None if given is None else settings_file(given, "runs", "run settings")


def merge(
    file: Path | None, overrides: Sequence[str], flags: Mapping[str, Any], *, base: Mapping[str, Any] | None = None
) -> RunConfig:
    """Build a configuration: ``base`` (or the defaults), the YAML ``file``, ``key.sub=value`` overrides, ``flags`` not None.

    Each may give a setting by its own name or within its group. ``base`` may be the configuration of an earlier run, whose
    sampling settings are accepted as they are. Raises :class:`UsageError` naming the field, its value and what was expected.
    """
    return parse(layered(base or {}, file, overrides, flags), kept=base)


def layered(
    base: Mapping[str, Any], file: Path | None, overrides: Sequence[str] = (), flags: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The :func:`placed` settings that :func:`merge` checks."""
    values = placed(base)
    if file is not None:
        update(values, read_settings(file, "configuration"))
    override_settings(values, overrides)
    update_by_options(values, flags or {})
    return values


def update_by_options(values: dict[str, Any], flags: Mapping[str, Any]) -> None:
    """Put settings given as options over ``values``, but not those that are ``None``; some are parameters of requests."""
    given = {name: value for name, value in flags.items() if value is not None}
    update(values, {name: value for name, value in given.items() if name not in OPTIONS})
    for name in OPTIONS.keys() & given.keys():
        _assign(values, place(("sampling", OPTIONS[name])), given[name], f"{name}={given[name]}")


def update(values: dict[str, Any], later: Mapping[str, Any]) -> None:
    """Put ``later`` settings over those of each group in ``values``."""
    for group, given in placed(later).items():
        values[group] = {**values.get(group, {}), **given}


def read_settings(file: Path, kind: str) -> dict[str, Any]:
    """The settings in a YAML file; :class:`UsageError` that calls it a ``kind`` file if it has none."""
    values = read_values(file, f"the {kind} file")
    if not isinstance(values, dict):
        raise UsageError(f"the {kind} file {str(file)!r} must hold `name: value` lines")
    return values


def override(values: dict[str, Any], overrides: Sequence[str]) -> None:
    """Put ``key.sub=value`` settings into nested ``values``; :class:`UsageError` for what is none."""
    for given in overrides:
        path, value = _read_override(given)
        _assign(values, path, value, given)


def override_settings(values: dict[str, Any], overrides: Sequence[str]) -> None:
    """As :func:`override`, into the :func:`placed` settings of a run, whose keys need not name the group."""
    for given in overrides:
        path, value = _read_override(given)
        if len(path) == 1:
            update(values, {path[0]: value})
        else:
            _assign(values, place(path), value, given)


def _read_override(given: str) -> tuple[list[str], Any]:
    key, separator, text = given.partition("=")
    path = key.split(".")
    if not separator or not all(path):
        raise UsageError(f"--set needs key=value, got {given!r}")
    return path, read_value(given, text)


def read_value(given: str, text: str) -> Any:
    """The YAML value of ``--set given``, or its text if that is not YAML."""
    try:
        return read_yaml(text)
    except AliasError as error:
        raise UsageError(f"--set {given!r:.80}: {error}") from None
    except ValueError:
        return text


def _assign(values: dict[str, Any], path: Sequence[str], value: Any, given: str) -> None:
    group: Any = values
    for number, part in enumerate(path):
        place: Any = part
        if isinstance(group, list):
            if not part.isdecimal() or int(part) >= len(group):
                raise UsageError(f"--set {given!r}: {part!r} is not a place in a list of {len(group)}, counted from 0")
            place = int(part)
        if number == len(path) - 1:
            group[place] = value
            return
        inner = group[place] if isinstance(group, list) else group.setdefault(place, {})
        if not isinstance(inner, dict | list):
            raise UsageError(f"--set {given!r}: {part!r} is not a group of settings")
        group[place] = group = inner.copy()


def parse(values: Mapping[str, Any], *, kept: Mapping[str, Any] | None = None) -> RunConfig:
    """Validate merged values; :class:`UsageError` with the nearest name for an unknown one.

    ``kept`` is an earlier run's configuration: sampling settings equal to its own are accepted as they are.
    """
    try:
        # a validator's context knows no groups: both of these fields are in one
        config = RunConfig.model_validate(dict(values), context=placed(kept or {}).get("sampling"))
    except ValidationError as error:
        problem = first_problem(error)
        path = own_path(problem.path)
        field = ".".join(path)
        if problem.kind == "missing":
            raise UsageError(f"the setting {field!r} is required (--{field.replace('_', '-')})") from None
        if field in KEY_VARIABLES:  # the value may be the key itself, which must not be printed
            raise UsageError(f"setting {field!r} must be the name of an environment variable, not a key") from None
        if path[0] in ("base_urls", "patch_base_urls", "grounder_base_urls"):  # it may hold a password
            raise UsageError(f"setting {path[0]!r} must be a list of URLs like http://localhost:8000/v1") from None
        if problem.kind == UNKNOWN_SAMPLING:
            raise UsageError(f"the setting {field!r} {problem.message}") from None
        if problem.kind == "secret":
            raise UsageError(
                f"{field}.{problem.message} cannot be given as a setting, for it is a secret and a run's files hold its "
                "settings; a key belongs in the environment, in the variable that --api-key-env names"
            ) from None
        raise UsageError(f"setting {field!r} is {problem.value!r}: {problem.message}") from None
    refuse_the_key(config)
    if config.tracking.compact and config.cluster.kind != "none":
        raise UsageError("a compact journal is written on one machine: leave out compact, or --cluster")
    return config


def refuse_the_key(config: RunConfig) -> None:
    """Raise :class:`UsageError` if a setting is the key itself, since a run's files contain its settings."""
    for variable in dict.fromkeys(key_variables(config)):
        key = os.environ.get(variable, "").strip()
        if not looks_secret(key):
            continue
        for name, value in config.flat().items():
            if json.dumps(key)[1:-1] in json.dumps(value):
                raise UsageError(
                    f"setting {name!r} holds the key that the environment variable {variable} holds; leave it out, for a "
                    "run's files hold its settings"
                )
