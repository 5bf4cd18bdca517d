"""Configurations of new runs, with defaults from ``GUIEVAL_...`` variables and from ``guieval.yaml`` in the working folder.

The command line, and the settings file that it names, count for more than a variable, and that for more than ``guieval.yaml``.
What is taken from either is announced. A resumed run takes nothing from them, since its folder has every setting.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from guieval.errors import UsageError, nearest
from guieval.registry import downloaded
from guieval.running.config import layered, parse, read_value
from guieval.running.kinds import kind_of
from guieval.settings import BY_OPTION, RunConfig, own_path
from guieval.settings.sampling import OPTIONS

FILE = Path("guieval.yaml")
PREFIX = "GUIEVAL_"
_NOT_SETTINGS = frozenset({"chromium", "conformance_dir", "shared_data", "vllm_python"})
"""Variables with another meaning."""
_OPTION_OF = {name: option for option, name in BY_OPTION.items()}
_ALIKE = 80.0
_LOG = logging.getLogger(__name__)


class Defaults:
    """The defaults that hold here and now. Raises :class:`UsageError` for a ``guieval.yaml`` that cannot be used."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._sources: dict[str, str] = {}
        self._used: dict[str, None] = {}
        if FILE.is_file():
            try:
                self._take(layered({}, FILE), str(FILE))
            except UsageError as error:
                raise UsageError(f"{str(FILE)!r} in this folder: {error}") from None
        known = [*BY_OPTION, *OPTIONS]
        for variable, text in sorted(os.environ.items()):
            option = variable.removeprefix(PREFIX).lower()
            if not variable.startswith(PREFIX) or option in _NOT_SETTINGS or not text.strip():
                continue
            if option in known:
                self._take(layered({}, None, (), {option: read_value(variable, text)}), variable)
            elif near := nearest(option, known, least=_ALIKE):
                _LOG.warning("%s is not used: no setting is called %r%s", variable, option, near)

    def _take(self, values: Mapping[str, Any], source: str) -> None:
        self._values = _joined(self._values, values)
        self._sources |= dict.fromkeys(_names(values), source)

    def below(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The settings that are ``given``, and the defaults of those that are not."""
        values, named = _joined(self._values, given), set(_names(given))
        self._used |= dict.fromkeys(name for name in _names(values) if name not in named)
        return values

    def parsed(self, values: Mapping[str, Any], *, kept: Mapping[str, Any] | None = None) -> RunConfig:
        """The configuration of settings; an error about a default says where that was taken from."""
        try:
            return parse(values, kept=kept)
        except UsageError as error:
            taken = self._taken(name for name in self._used if f"'{name}" in str(error))
            raise UsageError(f"{error} ({taken})" if taken else str(error)) from None

    def announce(self) -> None:
        """Say which settings were taken from where."""
        if self._used:
            _LOG.warning("settings: %s", self._taken(self._used))

    def _taken(self, names: Iterator[str] | Mapping[str, None]) -> str:
        return ", ".join(f"{_OPTION_OF.get(name, name)} from {self._sources[name]}" for name in names)


def new_config(
    file: Path | None,
    overrides: Sequence[str],
    flags: Mapping[str, Any],
    *,
    base: Mapping[str, Any] | None = None,
    fallback: Mapping[str, Any] | None = None,
) -> RunConfig:
    """The configuration of a new run: what :func:`guieval.running.config.merge` makes, over the defaults that hold here.

    These count for less than ``base``, and ``fallback`` for less than these. Without ``data`` it is the folder that
    :func:`guieval.registry.downloaded` finds. Raises :class:`UsageError` as ``merge`` does, and for a ``--seed`` that decides
    nothing.
    """
    defaults = Defaults()
    given = layered(base or {}, file, overrides, flags)
    config = defaults.parsed(_joined(layered(fallback or {}, None), defaults.below(given)), kept=base)
    defaults.announce()
    if config.data.folder is None and (folder := downloaded(config.data.bench)) is not None:
        config = config.having(data=str(folder))
    if "seed" in layered({}, None, overrides, flags).get("data", {}):
        refuse_idle_seed(config)
    return config


def refuse_idle_seed(config: RunConfig) -> None:
    """Raise :class:`UsageError` if the seed of a configuration decides nothing."""
    several = config.sampling.samples > 1 or config.sampling.repeats > 1
    if config.data.limit is None and not several and not kind_of(config).seeded:
        raise UsageError(
            f"--seed {config.data.seed} draws the episodes of --limit N, and there is no --limit; "
            f"the seed of the model's draws is --sampling-seed {config.data.seed}"
        )


def _joined(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Later layers over earlier ones, group by group."""
    values: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            below = values.get(name)
            values[name] = _joined(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return values


def _names(values: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[str]:
    """The own names of placed settings, with the names below those that are groups themselves."""
    for name, value in values.items():
        path = (*above, str(name))
        if isinstance(value, dict) and value:
            yield from _names(value, path)
        else:
            yield ".".join(own_path(path))
