"""The published parts of a run: a page with its metrics, the exported results, and a public copy of the run.

Screenshots stay here unless they are asked for. A file that contains a key is refused.
"""

from __future__ import annotations

from pathlib import Path

from guieval.data.files import open_file
from guieval.errors import UsageError
from guieval.exchange import atif, every_eval_ever
from guieval.exchange.exported import Exported
from guieval.exchange.model_cards import card_table
from guieval.exchange.public_run import public_copy
from guieval.reports.opened import OpenedOnlineRun
from guieval.reports.tables.writers import markdown
from guieval.secrets import secret_variables, secrets_in


def pack(run: Exported, folder: Path, *, images: bool = False) -> Exported:
    """Write what is published of a run into a folder: the exports, and the run below ``runs/``, which is returned opened.

    ``images`` adds the screenshots of an online run.
    """
    public = public_copy(run, folder / "runs")
    every_eval_ever.write(public, folder)
    if isinstance(public.run, OpenedOnlineRun):
        atif.write(public, folder / "trajectories" / public.name, images=images)
    return public


def write_card(runs: list[Exported], folder: Path) -> None:
    """Write ``README.md``: the metrics of all runs, and how to score them again."""
    head = "---\ntags:\n- gui-agents\n- guieval\n---\n\n# Results of GUI agents\n\n"
    score = f"\nScore a run under another protocol: `guieval score runs/{runs[0].name} --protocol NAME`.\n"
    (folder / "README.md").write_text(head + markdown([card_table(run) for run in runs]) + score, encoding="utf-8")


def check_secrets(folder: Path) -> None:
    """Refuse a folder in which a text file contains the value of a secret variable of this process, or what looks like a
    key."""
    variables = secret_variables()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with open_file(path) as stream:
            for number, line in enumerate(stream, 1):
                for found in secrets_in(line, variables):
                    where = f"{path.relative_to(folder).as_posix()!r}, line {number}"
                    raise UsageError(f"{where}, holds {found}: nothing was uploaded")
