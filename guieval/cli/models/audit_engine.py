"""``guieval dev audit-engine``: whether a server shows a model the pictures that it is sent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from guieval.cli import options
from guieval.cli.settings import RUN, Given, path_option
from guieval.cli.tables import JSON, echo, print_json, say, show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from guieval.models.engine_audit import EngineAudit
    from guieval.models.engine_audit.screen import SentScreen
    from guieval.reports.tables.table import Table

SCREENS = "demo-screens"
MOST_TOKENS = 1024
"""Tokens of a response, if the checkpoint's settings have no limit."""


_FLAGS = "base_urls engine served_model adapter scaffold thinking api_key_env concurrency timeout max_attempts"


@RUN.options(*_FLAGS.split())
def audit_engine(
    settings: Given,
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Checkpoint that the server serves (`guieval models`).")],
    save: Annotated[
        Path | None, path_option("Write the answers to this file, as the checkpoint's fingerprint.", "--save")
    ] = None,
    against: Annotated[Path | None, path_option("Compare with the fingerprint in this file.", "--against")] = None,
    override: options.Override = None,
    json: JSON = False,
) -> None:
    """Send 50 drawn screens to a server, and say whether its model sees them as they are.

    Prompt tokens are checked against the processor's own formula, clicks against the known targets, and with --against all
    answers and log-probabilities against those of an engine known to be right. The exit code is 1 when a fault is found.
    """
    import asyncio

    from guieval.errors import UsageError
    from guieval.journal import write_atomically
    from guieval.journal.setup import describe
    from guieval.models.engine_audit import EngineAudit, fingerprint, read_fingerprint
    from guieval.registry import build_model, load_benchmark, model_config
    from guieval.running.config import merge
    from guieval.running.engine_choice import choose_engine, with_key_variable
    from guieval.running.sent_screens import send_screens
    from guieval.settings.sampling import GREEDY, request_parameters

    known = None if against is None else read_fingerprint(against)
    config = with_key_variable(merge(None, override or [], {**settings, "model": model, "bench": SCREENS}))
    checkpoint = model_config(config.model.name, config.model.adapter, config.model.scaffold)
    options = {**checkpoint.options, **config.model.own_options}
    loaded = build_model(checkpoint.model_copy(update={"options": options}), thinking=config.model.thinking)
    benchmark = load_benchmark(SCREENS, config.data.folder, **config.data.bench_options)
    if config.server.engine == "vllm":
        raise UsageError("audit-engine asks a server that runs: start it, and give its --base-url")
    answering = choose_engine(config, loaded, benchmark.root, None)
    greedy = {**GREEDY, "logprobs": True}
    sampling = request_parameters(checkpoint.scaffold.sampling, greedy, config.sampling.request)
    if not sampling.keys() & {"max_tokens", "max_completion_tokens"}:
        sampling["max_tokens"] = MOST_TOKENS
    screens, answered = asyncio.run(send_screens(loaded, answering, benchmark, sampling, twice=known is not None))
    audit, setup = EngineAudit(loaded, screens, known), describe([] if answered is None else [answered])
    if json:
        print_json({**_plain(audit), "setup": setup})
    else:
        show(_table(audit))
        say(f"set-up:   {setup}")
        if known is not None:
            say(f"against:  {known.setup}")
        for finding in audit.findings:
            say(f"{finding.verdict + ':':<9} {finding.sentence}.")
    if save is not None:
        write_atomically(save, fingerprint(loaded.config.name, screens, setup).model_dump_json(indent=1) + "\n")
        echo(f"saved:    {save}")
    if audit.differs:
        raise typer.Exit(1)


def _table(audit: EngineAudit) -> Table:
    from guieval.reports.tables.table import Cell, Table, columns

    groups: dict[str, list[SentScreen]] = {}
    for screen in audit.screens:
        groups.setdefault(screen.task.groups["screen"], []).append(screen)
    heads = ["screens", "answers", "sent as", "image tokens", "by formula", "hits"]
    compared = audit.fingerprint.compared if audit.fingerprint is not None else None
    if compared is not None:
        heads += ["changed answers", "when asked twice", "log-probability differs by", "twice by"]
    rows: list[tuple[Cell, ...]] = []
    for name, screens in groups.items():
        answered = [screen for screen in screens if screen.sample.answered]
        row: list[Cell] = [name, f"{len(answered)} of {len(screens)}", "{}x{}".format(*screens[0].size)]
        row += [_range(map(audit.tokens.seen, answered)), audit.tokens.expected(screens[0]), sum(each.hit for each in answered)]
        if compared is not None:
            found = [compared[screen.task.episode_id] for screen in answered if screen.task.episode_id in compared]
            row += [sum(each.changed for each in found), sum(each.changed_again for each in found)]
            row += [_most(each.logprob for each in found), _most(each.logprob_again for each in found)]
        rows.append(tuple(row))
    return Table("", columns(*heads, spare=("twice by", "when asked twice", "sent as") if compared else ()), tuple(rows))


def _range(counts: Iterable[int | None]) -> str | None:
    known = {count for count in counts if count is not None}
    return " to ".join(f"{count:,}" for count in sorted({min(known), max(known)})) if known else None


def _most(differences: Iterable[float | None]) -> str | None:
    known = [abs(each) for each in differences if each is not None]
    return f"{max(known):.4f}" if known else None


def _plain(audit: EngineAudit) -> dict[str, Any]:
    compared = audit.fingerprint.compared if audit.fingerprint is not None else {}
    return {
        "model": audit.model.config.name,
        "differs": audit.differs,
        "findings": [finding._asdict() for finding in audit.findings],
        "resize": audit.tokens.limits,
        "frames": audit.clicks.report,
        "screens": [
            {
                "screen": screen.task.episode_id,
                "shown": screen.task.groups["screen"],
                "sent": screen.size,
                "image_tokens": audit.tokens.seen(screen),
                "expected_image_tokens": audit.tokens.expected(screen),
                "hit": screen.hit,
                "sample": screen.sample,
                "compared": found._asdict() if (found := compared.get(screen.task.episode_id)) is not None else None,
            }
            for screen in audit.screens
        ],
    }
