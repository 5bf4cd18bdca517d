"""``guieval data download``: get a benchmark's files from the Hugging Face hub or its list of tasks, or say where they are."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from guieval.cli.data.doctor import doctor
from guieval.cli.settings import path_option
from guieval.cli.tables import echo, say
from guieval.data.doctor.counts import counted
from guieval.data.hub import Download, Offer, get, in_units, look_up, read_downloads
from guieval.errors import UsageError, refuse
from guieval.online.find import check_bench, environments
from guieval.registry import BENCHMARKS_GROUP, DATA, benchmark_class


def download(
    bench: Annotated[str, typer.Argument(help="Benchmark or environment, see `guieval benchmarks`.")],
    out: Annotated[Path | None, path_option("Folder to create, or to continue (default: data/BENCH).")] = None,
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit of the data set (default: the table's).")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Download without asking.")] = False,
) -> None:
    """Get a benchmark from the Hugging Face hub or an environment's list of tasks, or say where it is published.

    Licence and size are shown first. The same command continues an interrupted download. `guieval doctor` checks the folder
    at the end.
    """
    check_bench(bench)
    listed = environments().get(bench)
    if listed is not None and listed.task_list is not None:
        refuse({"revision": revision}, f"is of the hub, and the list of {bench!r} is that of one commit")
        say(f"{bench}: {listed.source}")
        say(f"licence: {listed.licence or 'none stated'}")
        file = listed.task_list.download(out or DATA / bench)
        say(f"file:    {file} (SHA-256 {listed.task_list.sha256[:12]}, as published)")
        return
    kind = environments().get(bench) or benchmark_class(bench)
    wanted = downloads().get(bench)
    if wanted is None:
        if not getattr(kind, "needs_data", False):
            say(f"{bench} needs no download: it makes its own data.")
            return
        say(f"{bench} is not downloaded by guieval; get it from {kind.source}")
        say(f"licence: {kind.licence or 'none stated'}")
        say(f"then: guieval doctor {bench} --data DIR")
        raise typer.Exit(1)
    folder = out or DATA / bench
    above = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not above.is_dir():
        raise UsageError(f"{str(above)!r} is a file, not a folder")
    offer = look_up(wanted if revision is None else wanted.model_copy(update={"revision": revision}))
    _show(bench, offer, kind.licence, folder)
    if not yes and not _agreed(bench):
        raise typer.Exit(1)
    try:
        get(offer, folder)
    except KeyboardInterrupt:
        say("guieval: stopped; the same command continues from there", err=True)
        raise typer.Exit(130) from None
    if wanted.then:
        say(f"downloaded; what is left: {wanted.then}")
        say(f"then: guieval doctor {bench} --data {folder}")
        return
    doctor(bench, data=folder)


def downloads() -> dict[str, Download]:
    """The data sets that can be downloaded, by benchmark."""
    with as_file(files(BENCHMARKS_GROUP) / "downloads.yaml") as table:
        return dict(read_downloads(table))


def _show(bench: str, offer: Offer, licence: str, folder: Path) -> None:
    wanted = offer.download
    missing = offer.missing(folder)
    rest = f", of which {in_units(missing)} are still missing" if missing else ", all of it already there"
    rest = "" if missing == offer.size else rest
    say(f"{bench}: {offer.place} at {wanted.revision} ({offer.commit[:12]})")
    say(f"licence: {licence or 'none stated'}; the data set's card: {offer.licence or 'none stated'}")
    say(f"size:    {in_units(offer.size)} in {counted(len(offer.files), 'file')}{rest}")
    echo(f"folder:  {folder}")


def _agreed(bench: str) -> bool:
    try:
        return typer.confirm("Download?")
    except typer.Abort:
        say()
        raise UsageError(f"{bench} is not downloaded without an answer: type y, or add --yes") from None
