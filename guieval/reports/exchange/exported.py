"""The content of a run for the formats of other tools: who answered what, under which rules, and the figures with intervals."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from guieval.errors import UsageError
from guieval.evaluation import Protocol, get_protocol
from guieval.evaluation.protocol import EXACT_MATCH, PROGRESS, SUCCESS_RATE, TYPE_MATCH, FailurePolicy, Figure
from guieval.journal import read_planned
from guieval.journal.run_files import Manifest
from guieval.metrics.columns import RunColumns
from guieval.metrics.figures import compute_with_interval
from guieval.metrics.intervals import Interval
from guieval.online.figures import Share
from guieval.reports.opened import OpenedOnlineRun, OpenedRun, open_run
from guieval.reports.private_places import last_part
from guieval.scoring.matrix import judge_answers
from guieval.scoring.recorded_run import recorded_answers
from guieval.steps import StepKey, Usage

MOST_OF_A_NAME = 50
"""Characters of a text in a file name, which has up to four such parts in 255."""


@dataclass(frozen=True)
class ExportedFigure:
    """A figure as a fraction in [0, 1], with its interval and its denominator ``n`` (``of``: steps, episodes, tasks ...).

    ``missing`` counts the steps of its denominator that were not measured.
    """

    name: str
    description: str
    kind: str
    value: float
    interval: Interval | None
    n: int
    of: str
    missing: int = 0

    @property
    def id(self) -> str:
        """The name as an identifier."""
        return re.sub(r"[^\w.]+", "_", self.name, flags=re.ASCII).strip("_.").lower() or "unnamed"


@dataclass(frozen=True)
class Exported:
    """A run under one protocol. ``dataset`` is the benchmark's data set on the Hugging Face hub, if it has one.

    ``original`` is the directory that a public copy was made from.
    """

    run: OpenedRun | OpenedOnlineRun
    protocol: Protocol
    dataset: str | None = None
    original: Path | None = None

    @property
    def manifest(self) -> Manifest:
        """The run's manifest."""
        return self.run.manifest

    @property
    def source(self) -> Path:
        """The directory of the run on this machine, which also holds its screenshots."""
        return self.original or self.run.directory

    @property
    def online(self) -> bool:
        """Whether the run acted in an environment."""
        return isinstance(self.run, OpenedOnlineRun)

    @property
    def model(self) -> str:
        """The checkpoint's id on the hub, else its name."""
        return self.manifest.model.hf_id or self.manifest.model_name

    @property
    def name(self) -> str:
        """Model, benchmark, mode and protocol, as a file name."""
        model = last_part(self.manifest.model_name) or self.manifest.model_name
        parts = (model, self.manifest.benchmark.name, self.manifest.mode.name, self.protocol.name)
        return "-".join(map(slug, parts if not self.online else parts[:3]))

    @property
    def sampling(self) -> dict[str, Any]:
        """The sampling parameters: the checkpoint's, changed by the run's."""
        return {**(self.manifest.model.sampling or {}), **(self.manifest.config.sampling or {})}

    @cached_property
    def figures(self) -> tuple[ExportedFigure, ...]:
        """The figures of the protocol's source, then the headline figures that are not among them."""
        found = _online_figures(self.run) if isinstance(self.run, OpenedOnlineRun) else _step_figures(self.run, self.protocol)
        figures = tuple(found)
        if not figures:
            raise UsageError(f"the run {str(self.source)!r} has no figures: no step of it was answered")
        return figures

    @property
    def headline(self) -> ExportedFigure:
        """The figure that stands for the run: exact match, online the success rate."""
        name = (SUCCESS_RATE if self.online else EXACT_MATCH).name
        return next((figure for figure in self.figures if figure.name == name), self.figures[0])

    @cached_property
    def details(self) -> dict[str, str]:
        """The facts that make figures comparable: mode, protocol, steps and their digests; all as text."""
        manifest, selection = self.manifest, self.manifest.selection
        edition = manifest.benchmark.edition
        values: dict[str, object] = {
            "mode": manifest.mode.label,
            "protocol": self.protocol.name,
            "protocol_version": self.protocol.version,
            "protocol_sha256": sha256(self.protocol.describe().encode()).hexdigest(),
            "steps": selection and (selection.text or selection.title),
            "sample_set": selection.title if selection and selection.sample_set_sha256 else None,
            "sample_set_sha256": selection and selection.sample_set_sha256,
            "planned_steps_sha256": self.planned_digest,
            "data_sha256": manifest.benchmark.content,
            "edition": edition and (" or ".join(edition.names) or "unknown"),
            "labels_sha256": edition and edition.digest,
            "overlay_sha256": manifest.overlay and manifest.overlay.sha256,
            "prompt_fingerprint": manifest.prompts.fingerprint,
            "model_options": json.dumps(manifest.options, sort_keys=True) if manifest.options else None,
            "reply_rules": json.dumps(manifest.rules, sort_keys=True) if manifest.rules else None,
            "notes": " ".join(self.run.notes) or None,
        }
        return {name: str(value) for name, value in values.items() if value is not None}

    @cached_property
    def planned_digest(self) -> str:
        """SHA-256 over the keys of all planned steps, one a line, in the order of the alphabet."""
        plan = read_planned(self.run.directory).plan
        keys = sorted(str(StepKey(*key, index)) for key, steps in plan.items() for index in steps)
        return sha256("\n".join(keys).encode("utf-8", "surrogatepass")).hexdigest()

    @cached_property
    def uuid(self) -> str:
        """The same identifier for every export of this run under this protocol, in the form of a UUID of version 4."""
        what = f"{self.manifest.created}\n{self.name}\n{self.planned_digest}\n{self.manifest.benchmark.fingerprint}"
        return str(uuid.UUID(bytes=sha256(what.encode()).digest()[:16], version=4))


def exported(directory: Path, protocol: str | None = None, dataset: str | None = None) -> Exported:
    """Open a run for an export under ``protocol`` (default: its own).

    Raises :class:`UsageError` without a run, for an unknown protocol, and for another protocol of an online run.
    """
    run = open_run(directory)
    own = run.manifest.protocol.name
    if isinstance(run, OpenedOnlineRun) and protocol not in (None, own):
        raise UsageError(f"the environment judges an online run: leave out the protocol {protocol!r}")
    return Exported(run, get_protocol(protocol or own), dataset)


def slug(text: str) -> str:
    """A text as part of a file name: letters, digits, dots and hyphens; texts that differ may have the same."""
    return re.sub(r"[^\w.]+", "-", text, flags=re.ASCII).strip("-.")[:MOST_OF_A_NAME] or "unnamed"


def token_counts(responses: Iterable[Usage | None]) -> dict[str, int] | None:
    """The tokens of responses as Every Eval Ever and Inspect name them; ``None`` without any, or if those of one are unknown.

    These formats cannot say that a part of a sum is missing.
    """
    given, made = [], []
    for usage in responses:
        if usage is None or usage.prompt_tokens is None or usage.completion_tokens is None:
            return None
        given.append(usage.prompt_tokens)
        made.append(usage.completion_tokens)
    if not given:
        return None
    return {"input_tokens": sum(given), "output_tokens": sum(made), "total_tokens": sum(given) + sum(made)}


_KINDS = {"progress": "progress", "success": "success_rate", "score": "score"}


def _step_figures(run: OpenedRun, protocol: Protocol) -> Iterator[ExportedFigure]:
    answers = judge_answers(recorded_answers(run.directory), [protocol.name])
    columns = answers.columns()
    if not columns.answered:
        return
    headlines = [TYPE_MATCH, EXACT_MATCH]
    if len(columns) > len(columns.episodes):
        headlines += [PROGRESS, SUCCESS_RATE]
    named = dict.fromkeys(protocol.figures, protocol.failure)
    for figure, policy in {**named, **{each: FailurePolicy() for each in headlines if each not in named}}.items():
        made = _step_figure(figure, policy, columns, protocol.name)
        if made is not None:
            yield made


def _step_figure(figure: Figure, policy: FailurePolicy, columns: RunColumns, protocol: str) -> ExportedFigure | None:
    value, interval = compute_with_interval(figure, policy, columns, columns.judged[protocol])
    if value.value is None:
        return None
    kind = _KINDS.get(figure.measure, "accuracy")
    of = "cells" if figure.average.startswith("cells") else "steps" if kind == "accuracy" else "episodes"
    if (figure.measure, figure.average) == ("progress", "all"):
        of = "steps"
    return ExportedFigure(figure.name, figure.describe(), kind, value.value, interval, value.n, of, value.missing)


def _online_figures(run: OpenedOnlineRun) -> Iterator[ExportedFigure]:
    figures = run.figures()
    n = figures.repetitions
    named: tuple[tuple[str, str, str, Share | None], ...] = (
        (
            "success rate",
            "success_rate",
            "share of the judged repetitions that the environment judges as successful",
            figures.success,
        ),
        ("progress", "progress", "mean progress that the environment reports", figures.progress),
        (f"pass@{n}", "pass_rate", f"share of tasks with a success in {n} repetitions", figures.pass_any),
        (f"pass^{n}", "pass_rate", f"share of tasks with {n} successes in {n} repetitions", figures.pass_all),
    )
    missing = figures.tasks * figures.repetitions - figures.judged
    for name, kind, description, share in named:
        if share is not None and share.value is not None:
            yield ExportedFigure(name, description, kind, share.value, share.interval, share.n, "tasks", missing)
