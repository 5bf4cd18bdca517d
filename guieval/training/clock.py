"""Records what the optimiser steps of a training take, so that its GPU hours are known: a line for each that is logged.

A step is everything from the end of the one before: data, rollouts, the update. Evaluations are not counted. Cards of a server
that generates elsewhere are not known here.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any


def clock_callbacks(file: Path, processes: int) -> tuple[Any, Any]:
    """Two callbacks of transformers' trainers, of which one is added before those that evaluate and the other after them.

    They append to ``file`` {"step", "steps", "seconds", "cards", "card"}: the ``seconds`` of the ``steps`` since the line
    before, and the ``processes``, each with a card of its own.
    """
    import torch
    from transformers import TrainerCallback

    card = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    begun, seconds, steps = 0.0, 0.0, 0

    class StopClock(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            nonlocal seconds, steps
            seconds, steps = seconds + time.monotonic() - begun, steps + 1

    class StartClock(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            nonlocal begun
            begun = time.monotonic()

        on_step_end = on_train_begin

        def on_log(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            nonlocal seconds, steps
            if state.is_world_process_zero and steps:
                row = {
                    "step": state.global_step,
                    "steps": steps,
                    "seconds": round(seconds, 3),
                    "cards": processes,
                    "card": card,
                }
                with file.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(row) + "\n")
            seconds, steps = 0.0, 0

        on_train_end = on_log

    return StopClock(), StartClock()
