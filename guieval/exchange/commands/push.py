"""``guieval data push``: publish runs as a data set on the Hugging Face hub, after showing what would be uploaded."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from guieval.cli.settings import path_argument
from guieval.cli.tables import say
from guieval.data.doctor.counts import counted
from guieval.data.hub import in_units, upload
from guieval.errors import UsageError
from guieval.exchange.commands.export_results import for_export
from guieval.exchange.parcel import check_secrets, pack, write_card
from guieval.journal.run_folders import several_runs


def push(
    run: Annotated[list[Path], path_argument("RUN...", "Runs, or folders that hold several.")],
    repo: Annotated[str, typer.Option(metavar="ORG/NAME", help="Data set on the hub; created if it does not exist.")],
    yes: Annotated[bool, typer.Option("--yes", help="Upload; without it the files are only listed.")] = False,
    public: Annotated[bool, typer.Option("--public", help="Create the data set as public (default: private).")] = False,
    images: Annotated[bool, typer.Option("--images", help="Also upload the screenshots of online runs.")] = False,
) -> None:
    """Publish runs as a data set on the Hugging Face hub: metrics, responses and journals, without screenshots.

    Settings that name folders, servers or proxies are left out, and error messages are published without them. Nothing is
    uploaded without --yes, or when a file contains a key.
    """
    runs = [for_export(each, None, None) for each in several_runs(run)]
    names = [each.name for each in runs]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"two of the runs are {twice!r}: push one of them")
    with TemporaryDirectory(prefix="guieval-push-") as made:
        folder = Path(made)
        write_card([pack(each, folder, images=images) for each in runs], folder)
        check_secrets(folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        for path in files:
            say(f"{in_units(path.stat().st_size):>9}  {path.relative_to(folder).as_posix()}")
        total = f"{counted(len(files), 'file')}, {in_units(sum(path.stat().st_size for path in files))}"
        if not yes:
            say(f"{total} for the {'public' if public else 'private'} data set {repo}. Nothing was sent; add --yes to upload.")
            return
        say(f"uploaded: {total} to {upload(folder, repo, public=public, message='Results of ' + ', '.join(names))}")
