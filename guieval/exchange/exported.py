"""The content of a run for the formats of other tools: who answered what, under which rules, and the metrics with intervals."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from guieval.errors import UsageError
from guieval.evaluation import Protocol, get_protocol
from guieval.evaluation.protocol import SHARED
from guieval.journal import RunFolder
from guieval.journal.run_files import Manifest
from guieval.journal.setup import UNKNOWN, facts_of
from guieval.metrics.kinds import of_steps, of_tasks
from guieval.metrics.measured import SHARE, Measured
from guieval.reports.opened import OpenedOnlineRun, OpenedRun, open_run
from guieval.reports.private_places import last_part
from guieval.steps import Sample, Usage

MOST_OF_A_NAME = 50
"""Characters of a text in a file name, which has up to four such parts in 255."""


@dataclass(frozen=True)
class ExportedMetric:
    """A metric with its name, its description and its kind."""

    name: str
    description: str
    kind: str
    measured: Measured

    @property
    def id(self) -> str:
        return re.sub(r"[^\w.]+", "_", self.name, flags=re.ASCII).strip("_.").lower() or "unnamed"

    @property
    def value(self) -> float:
        return self.measured.value or 0.0


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
        return self.run.manifest

    @property
    def source(self) -> Path:
        """The directory of the run on this machine, which also has its screenshots."""
        return self.original or self.run.directory

    @property
    def model(self) -> str:
        """The checkpoint's id on the hub, else its name."""
        return self.manifest.model.hf_id or self.manifest.model_name

    @property
    def name(self) -> str:
        """Model, benchmark, mode and protocol, as a file name."""
        model = last_part(self.manifest.model_name) or self.manifest.model_name
        parts = (model, self.manifest.benchmark.name, self.manifest.mode.name, self.protocol.name)
        return "-".join(map(slug, parts[:3] if self.protocol.judges_outcomes else parts))

    @cached_property
    def metrics(self) -> tuple[ExportedMetric, ...]:
        """The leading metrics, exact match over all steps first, then those of the protocol's source."""
        found = tuple(_online(self.run) if isinstance(self.run, OpenedOnlineRun) else _of_steps(self.run, self.protocol))
        if not found:
            raise UsageError(f"the run {str(self.source)!r} has no metrics: no step of it was answered")
        return found

    @property
    def headline(self) -> ExportedMetric:
        """The metric that represents the run: exact match, online the success rate."""
        return self.metrics[0]

    @cached_property
    def details(self) -> dict[str, str]:
        """The facts that make metrics comparable: mode, protocol, steps and their digests; all as text."""
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
            "scaffold": manifest.scaffold_line,
            "scaffold_sha256": manifest.scaffold and manifest.scaffold.sha256,
            "prompt_fingerprint": manifest.prompts.fingerprint,
            "model_options": json.dumps(manifest.options, sort_keys=True) if manifest.options else None,
            "reply_rules": json.dumps(manifest.rules, sort_keys=True) if manifest.rules else None,
            "notes": " ".join(self.run.notes) or None,
        }
        return {name: str(value) for name, value in values.items() if value is not None}

    @cached_property
    def setup(self) -> dict[str, str]:
        """Who answered, and how, by the names of the facts; what nobody said is "unknown". Empty if nothing was recorded."""
        setups = self.manifest.setups
        known = facts_of(setups)
        facts = {**known, "sha256": tuple(setup.digest for setup in setups)} if any(known.values()) else {}
        return {name.replace(" ", "_"): " and ".join(values) or UNKNOWN for name, values in facts.items()}

    @cached_property
    def planned_digest(self) -> str:
        """That of the run's planned steps."""
        return RunFolder(self.run.directory).planned_digest

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
    if get_protocol(own).judges_outcomes and protocol not in (None, own):
        raise UsageError(f"the environment judges an online run: leave out the protocol {protocol!r}")
    return Exported(run, get_protocol(protocol or own), dataset)


def slug(text: str) -> str:
    """A text as part of a file name: letters, digits, dots and hyphens; texts that differ may have the same."""
    return re.sub(r"[^\w.]+", "-", text, flags=re.ASCII).strip("-.")[:MOST_OF_A_NAME] or "unnamed"


def failure(sample: Sample) -> str:
    """Why there is no answer."""
    return "no answer" if sample.error is None else f"{sample.error.stage}: {sample.error.message}"


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


def _of_steps(run: OpenedRun, protocol: Protocol) -> Iterator[ExportedMetric]:
    metrics = run.metrics(protocol.name)
    if metrics.state == "never answered":
        return
    summary = of_steps(metrics.summary)
    several = summary.verdicts.planned > summary.episodes
    shown = dict.fromkeys((*(SHARED[:4] if several else SHARED[:2]), *protocol.metrics))
    for metric in shown:
        if (measured := metrics[metric.name]).value is not None:
            yield ExportedMetric(metric.name, metric.describe(), _KINDS.get(metric.measure, "accuracy"), measured)
    for name, measured in summary.further.items():
        if measured.value is not None and measured.unit == SHARE:
            yield ExportedMetric(name, f"{name}: of {measured.of}", "accuracy", measured)


def _online(run: OpenedOnlineRun) -> Iterator[ExportedMetric]:
    found = of_tasks(run.metrics().summary)
    n, missing = found.repetitions, found.success.missing
    named = {
        "success rate": ("success_rate", "share of the judged repetitions that the environment judges as successful"),
        "progress": ("progress", "mean progress that the environment reports"),
        f"pass@{n}": ("pass_rate", f"share of tasks with a success in {n} repetitions"),
        f"pass^{n}": ("pass_rate", f"share of tasks with {n} successes in {n} repetitions"),
    }
    for name, (kind, description) in named.items():
        measured = found.metrics.get(name)
        if measured is not None and measured.value is not None:
            yield ExportedMetric(name, description, kind, replace(measured, missing=missing))
