"""``guieval study retries``: the metrics of mode sop-retry from samples at hand."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli.settings import path_argument
from guieval.cli.tables import JSON, print_json, say, show
from guieval.data.doctor.counts import counted
from guieval.history.modes import TRIES
from guieval.reports.tables.table import Number, Table, columns
from guieval.studies.retries import retried


def retries(
    directory: Annotated[Path, path_argument("ROLLOUT", "A rollout, or a run with several samples of each step.")],
    tries: Annotated[
        list[int] | None, typer.Option(min=1, max=100, help=f"Tries at each screen; may be repeated (default: 1 and {TRIES}).")
    ] = None,
    protocol: Annotated[str | None, typer.Option(help="Judge under this protocol. Default: the run's own.")] = None,
    json: JSON = False,
) -> None:
    """Compute PG, TSR and score of mode sop-retry from samples that were drawn before; no request is sent."""
    found = retried(directory, list(dict.fromkeys(tries or (1, TRIES))), protocol=protocol)
    if json:
        print_json({"directory": directory, "retries": [asdict(each) for each in found]})
        return
    rows = tuple((each.tries, Number(each.progress), Number(each.success), Number(each.score)) for each in found)
    show(Table("Mode sop-retry, expected from these samples (95 % intervals)", columns("tries", "PG", "TSR", "score"), rows))
    say("A wait is no try, up to as many waits as tries; a stop ends them.")
    say("Steps count as independent, and a try does not see those before it.")
    for each in found:
        if each.left_out:
            say(f"note: {counted(each.left_out, 'episode')} left out, with fewer than {each.tries} samples of a step")
