"""How a loader's options are given to the commands that know no other settings: ``--set option=value``, with YAML values.

``guieval run`` calls the same options ``bench_options.option``, and that is understood here too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from guieval.data.benchmark import ABCBenchmark
from guieval.data.yaml_text import AliasError, read_yaml
from guieval.errors import UsageError
from guieval.registry import load_benchmark
from guieval.steps import whole_text


def open_benchmark(name: str, data: Path | None, override: Sequence[str] | None) -> ABCBenchmark:
    """The benchmark on its data folder, with the options that ``--set`` gives to its loader."""
    return load_benchmark(name, data, **loader_options(override or ()))


def loader_options(pairs: Sequence[str]) -> dict[str, Any]:
    """The options by name; :class:`guieval.errors.UsageError` for what is not ``option=value``."""
    options: dict[str, Any] = {}
    for pair in pairs:
        name, separator, text = pair.removeprefix("bench_options.").partition("=")
        if not separator or not name.isidentifier():
            raise UsageError(f"--set needs option=value, got {pair!r}")
        if whole_text(pair) != pair:
            raise UsageError(f"--set {pair!r} is not valid text")
        if name in options:
            raise UsageError(f"--set gives the option {name!r} twice")
        try:
            value = read_yaml(text)
        except AliasError as error:
            raise UsageError(f"--set {pair!r:.80}: {error}") from None
        except ValueError:
            value = text
        options[name] = value if isinstance(value, str | int | float | list | dict | None) else text  # no dates
    return options
