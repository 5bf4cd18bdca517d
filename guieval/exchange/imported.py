"""The run folder of an import: what its source came to, and the manifest that says where it is from."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from guieval.actions import ActionSpace
from guieval.data.benchmark import ABCBenchmark
from guieval.data.content_digest import Content
from guieval.data.files import becoming, read_bytes
from guieval.data.selection import Choice, Selection
from guieval.data.shipped import __version__
from guieval.errors import JournalError
from guieval.evaluation import get_protocol
from guieval.exchange.atif_reading import ReadTrajectories
from guieval.exchange.predictions import Predictions
from guieval.history.modes import MODES
from guieval.journal import SCHEMA, Journal, plan_rows
from guieval.journal.run_files import RecordedImport
from guieval.journal.setup import Setup
from guieval.models import ABCModel
from guieval.running.kinds import RunKind, kind_of_mode
from guieval.running.resume.identity import digest
from guieval.scoring.score import evaluate_run, store_summary
from guieval.steps import Record


@dataclass(frozen=True)
class Imported:
    """The run that an import made: its ``directory``, and what the source held.

    ``units`` are the planned steps, or tasks, of which ``answered`` have an answer or outcome. ``read`` is what a file held,
    ``trajectories`` what ATIF's folder did.
    """

    directory: Path
    format: str
    benchmark: str
    units: int
    answered: int
    kind: RunKind
    notes: tuple[str, ...] = ()
    read: Predictions | None = None
    trajectories: ReadTrajectories | None = None


class Given(NamedTuple):
    """A source, what tables call the ``model`` that it is of, and for a file of answers how they count and to which steps.

    ``words``: the arguments of the import, as a command has them, and ``note`` what the user says of it.
    """

    source: Path
    model: str
    mode: str = "online"
    protocol: str | None = None
    reader: ABCModel | None = None
    choice: Choice = Choice()
    answered_only: bool = False
    bench: str | None = None
    opened: ABCBenchmark | None = None
    data: Path | None = None
    options: Mapping[str, Any] = {}
    words: Sequence[str] = ()
    note: str | None = None


class Found(NamedTuple):
    """What a source came to: records over the steps or tasks that count; ``left_out`` are its rows without a record."""

    benchmark: str
    protocol: str
    chosen: Selection
    records: Iterator[Record]
    notes: Sequence[str] = ()
    content: Content = Content({}, None, None)
    space: ActionSpace = ActionSpace()
    left_out: int = 0


def words_of(arguments: Mapping[str, Any]) -> list[str]:
    """The words after ``guieval data import`` that give a function's arguments, without ``--out``."""
    words = [str(arguments["source"])]
    for name, value in arguments.items():
        if name in ("source", "out") or value in (None, False, (), {}) or (name, value) == ("mode", "offline"):
            continue
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif name == "map":
            words += [option, ",".join(f"{own}={field}" for own, field in value.items())]
        elif isinstance(value, Mapping):
            prefix = "model." * (name == "options")
            words += [word for each, of in value.items() for word in ("--set", f"{prefix}{each}={json.dumps(of)}")]
        else:
            words += [word for each in ([value] if isinstance(value, str | Path) else value) for word in (option, str(each))]
    return words


def _manifest(given: Given, format: str, run: Found) -> dict[str, Any]:
    protocol, reader, source = get_protocol(run.protocol), given.reader, given.source
    model: dict[str, Any] = {} if reader is None else reader.config.model_dump(mode="json", exclude={"scaffold"})
    space = ActionSpace() if reader is None else reader.action_space
    edition = run.content.edition
    imported = RecordedImport(
        format=format,
        source=source.name,
        sha256=None if source.is_dir() else sha256(read_bytes(source)).hexdigest(),
        answered_only=given.answered_only,
        left_out=run.left_out,
        notes=list(run.notes),
        words=list(given.words),
    )
    return {
        "schema": SCHEMA,
        "guieval": __version__,
        "created": datetime.fromtimestamp(source.stat().st_mtime, UTC).isoformat(timespec="seconds"),
        "config": {
            "model": {"name": given.model},
            "data": {
                "bench": run.benchmark,
                "folder": None if given.data is None else str(given.data),
                "bench_options": dict(given.options),
            },
            "history": {"mode": given.mode},
            "tracking": {"note": given.note},
        },
        "model": {**model, "name": given.model},
        "benchmark": {
            "name": run.benchmark,
            "episodes": len(run.chosen.plan),
            "steps": sum(map(len, run.chosen.plan.values())),
            "fingerprint": digest(plan_rows(run.chosen.plan)),
            "content": run.content.sha256,
            "edition": None if edition is None else edition.model_dump(mode="json"),
        },
        "selection": run.chosen.to_json(),
        "imported": imported.to_json(),
        "options": {} if reader is None else dict(reader.resolved_options),
        "protocol": {"name": protocol.name, "fingerprint": protocol.fingerprint},
        "mode": MODES[given.mode].to_json(),
        "action_spaces": {"model": space.to_json(), "benchmark": run.space.to_json()},
        "setups": [Setup().model_dump(mode="json")],
    }


def write_imported(
    out: Path, given: Given, format: str, run: Found, also: Callable[[Path], object] = lambda directory: None
) -> Imported:
    """Write the run directory, with ``also`` what this writes into it; it is there when it is whole, and not before."""
    answered: Counter[bool] = Counter()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with becoming(out) as partial:
            with Journal(partial, MODES[given.mode]) as journal:
                journal.start(_manifest(given, format, run), run.chosen.plan, run.chosen.refs, run.content.types)
                for record in run.records:
                    journal.append(record)
                    answered[record.samples[0].answered] += 1
            also(partial)
            store_summary(partial, evaluate_run(partial).summary)
    except OSError as error:
        raise JournalError(f"cannot write to {str(error.filename or out)!r}: {error.strerror}") from None
    planned = sum(map(len, run.chosen.plan.values()))
    return Imported(out, format, run.benchmark, planned, answered[True], kind_of_mode(given.mode), tuple(run.notes))
