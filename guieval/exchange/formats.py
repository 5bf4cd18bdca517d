"""The formats by name, and what each is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from guieval.errors import known_name
from guieval.exchange import atif, every_eval_ever, inspect_log, model_cards

Relationship: TypeAlias = Literal["first_party", "third_party", "collaborative", "other"]


class ExportFormat(NamedTuple):
    """A format: the function that writes a run (its first argument) below a folder, and the options that it takes."""

    write: Callable[..., list[Path]]
    options: frozenset[str] = frozenset()


FORMATS: Mapping[str, ExportFormat] = {
    "every-eval-ever": ExportFormat(every_eval_ever.write, frozenset({"organization", "relationship"})),
    "hf-eval-results": ExportFormat(model_cards.write_eval_results, frozenset({"metric", "task"})),
    "model-index": ExportFormat(model_cards.write_model_index),
    "hf-eval-yaml": ExportFormat(model_cards.write_eval_yaml, frozenset({"task"})),
    "model-card": ExportFormat(model_cards.write_card_section),
    "atif": ExportFormat(atif.write, frozenset({"images"})),
    "inspect": ExportFormat(inspect_log.write, frozenset({"images"})),
}


def format_named(name: str) -> ExportFormat:
    """The format; :class:`UsageError` with the nearest name when there is none."""
    return FORMATS[known_name("format", name, FORMATS)]
