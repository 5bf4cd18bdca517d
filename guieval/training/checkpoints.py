"""Checkpoints of a training that were written to their end, and what a resumed training keeps of the files next to them.

A checkpoint is complete once every process has written its part; only then is the file ``complete`` added, and only then are
older checkpoints removed (``save_total_limit``). A process that is killed, or a disk that is full, so leaves the last complete
one as it is.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from guieval.data.files import read_text
from guieval.errors import UsageError
from guieval.journal import write_atomically
from guieval.training.trainings import CHECKPOINT, COMPLETE, checkpoints


def last_checkpoint(out: Path) -> tuple[int, Path]:
    """The checkpoint to resume from, and its optimiser step; a note on standard error names later ones that are incomplete.

    Raises :class:`UsageError` if there is none.
    """
    complete, broken = checkpoints(out), checkpoints(out, complete=False)
    if not complete:
        begun = f"; {', '.join(each.name for each in broken.values())} was not written to its end" if broken else ""
        raise UsageError(f"there is nothing to resume: {str(out)!r} has no complete checkpoint of a training{begun}")
    step, folder = max(complete.items())
    later = [each.name for number, each in broken.items() if number > step]
    if later and is_first():
        print(
            f"note: {', '.join(later)} was not written to its end, so the training resumes from {folder.name}", file=sys.stderr
        )
    return step, folder


def is_first() -> bool:
    """Whether this is the first process of those that torchrun or accelerate started, or the only one."""
    return os.environ.get("RANK", "0") == "0"


def discard_after(out: Path, step: int) -> None:
    """Remove the incomplete checkpoints after an optimiser step, which a resumed training writes again."""
    for number, folder in checkpoints(out, complete=False).items():
        if number > step:
            shutil.rmtree(folder)


def keep_until(file: Path, step: int) -> None:
    """Drop the lines of a log that come after an optimiser step, and those that a kill has torn."""
    if file.exists():
        text = read_text(file, errors="replace")
        kept = "".join(f"{line}\n" for line in text.splitlines() if _step(line) <= step)
        if kept != text:
            write_atomically(file, kept)


def _step(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, TypeError, KeyError):
        return float("inf")


def completion_callback(trainer: Any) -> Any:
    """A callback that marks checkpoints as complete and then removes those beyond ``save_total_limit``.

    It is the last one of its trainer, because others may write into a checkpoint too. A checkpoint is written when a line is
    logged, so that means over several steps never begin before it. TRL's count of tokens continues from there.
    """
    from transformers import TrainerCallback

    most, trainer.args.save_total_limit = trainer.args.save_total_limit, None

    class CheckpointCallback(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            counted = [row["num_tokens"] for row in state.log_history if "num_tokens" in row]
            if counted:  # SFTTrainer would count from zero again
                trainer._total_train_tokens = int(counted[-1])

        def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            control.should_log = control.should_log or control.should_save

        on_epoch_end = on_step_end

        def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            trainer.accelerator.wait_for_everyone()
            if args.should_save:
                folder = Path(args.output_dir)
                mark(folder / f"{CHECKPOINT}{state.global_step}")
                for old in list(checkpoints(folder.parent).values())[:-most] if most else ():
                    (old / COMPLETE).unlink()  # first, because a kill may come while the others are removed
                    shutil.rmtree(old)

    return CheckpointCallback()


def mark(folder: Path) -> None:
    """Mark a folder as written to its end."""
    write_atomically(folder / COMPLETE, "")
