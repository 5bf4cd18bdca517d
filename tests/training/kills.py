"""Kills a training at chosen moments and goes on with it: ``python -m tests.training.kills OUT MOMENTS guieval's words``.

The same command is given again, with ``--resume`` if there is a complete checkpoint, else after the folder was removed. Prints
the number of kills, and how many were of a resumed training; without MOMENTS, how many moments the whole training has.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import sys
from pathlib import Path

import torch

from guieval.training.session import SETTINGS
from guieval.training.trainings import checkpoints
from tests.killed import forked

torch.set_num_threads(1)


def again(out: Path, words: list[str]) -> list[str]:
    """The words that go on with what is there."""
    if checkpoints(out):
        return [*words, "--resume"]
    if (out / SETTINGS).exists():
        refused = _refusal(words)
        assert "without a complete checkpoint to resume from: give another --out, or remove it" in refused, refused
        shutil.rmtree(out)
    return words


def _refusal(words: list[str]) -> str:
    from guieval.cli import main

    sys.argv = ["guieval", *words]
    with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.suppress(SystemExit):
        main()
    return " ".join(said.getvalue().split())


def _main(folder: str, moments: str, *words: str) -> int:
    import guieval.training.commands.train
    import guieval.training.trainers.groups  # noqa: F401  # TRL, once for all

    out, killed, resumed = Path(folder), 0, 0
    for moment in map(int, filter(None, moments.split(","))):
        given = again(out, [*words])
        ended = forked(folder, moment, given)
        if ended != signal.SIGKILL:
            break
        killed += 1
        resumed += "--resume" in given
    else:
        ended = forked(folder, None, again(out, [*words]))
    if moments:
        print(killed, resumed, flush=True)
    return os.waitstatus_to_exitcode(ended)


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
