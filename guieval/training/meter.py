"""Measures the phases of a training for a preflight: seconds, and the most memory in use, in each process.

The memory is that of the whole GPU, so with CUDA's context and a vLLM next to the trainer; without a GPU that of the process.
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

EVERY = 0.02
"""Seconds between two looks at the memory."""


class Meter:
    """Writes ``{"seconds", "bytes", "device", "prompt"}`` to ``OUT/{name}-{rank}.json`` when a training ends.

    The phases are start, generation, training (an optimiser step without its generation), evaluation and checkpoint.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.bytes: defaultdict[str, float] = defaultdict(float)
        self._device: int | None = None
        self._phase, self._began, self._ended = "start", time.monotonic(), threading.Event()
        threading.Thread(target=self._look, daemon=True).start()

    def callbacks(self, trainer: Any, out: Path, prompt: float | None) -> tuple[Any, Any]:
        """Two callbacks, of which one is added before that of evaluations and the other after it."""
        import torch
        from transformers import TrainerCallback

        meter = self
        self._device = torch.cuda.current_device() if torch.cuda.is_available() else None
        trainer._save_checkpoint = self._measured(trainer._save_checkpoint, "checkpoint")
        if hasattr(trainer, "_generate_batch"):
            trainer._generate_batch = self._measured(trainer._generate_batch, "generation")

        class BeforeEvaluation(TrainerCallback):
            def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
                meter.enter("training")

            def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
                meter.enter("evaluation")

        class AfterEvaluation(TrainerCallback):
            def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
                meter.enter("rest")

            def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
                meter.write(out / f"{meter.name}-{trainer.accelerator.process_index}.json", prompt)
                trainer.accelerator.wait_for_everyone()  # the first process reads all of them

        return BeforeEvaluation(), AfterEvaluation()

    def enter(self, phase: str) -> None:
        """End a phase and begin another; what the allocator keeps of the one before is given back."""
        import torch

        if self._device is not None:
            torch.cuda.synchronize()
        self._note()
        if self._device is not None:
            torch.cuda.empty_cache()
        now = time.monotonic()
        self.seconds[self._phase] += now - self._began
        self._phase, self._began = phase, now
        self._note()

    def write(self, file: Path, prompt: float | None) -> None:
        """End the last phase, and write what was measured."""
        import torch

        self._ended.set()
        self.enter("end")
        device = "CPU" if self._device is None else torch.cuda.get_device_name()
        row = {"seconds": self.seconds, "bytes": self.bytes, "device": device, "prompt": prompt}
        file.write_text(json.dumps(row), encoding="utf-8")

    def _measured(self, function: Callable[..., Any], phase: str) -> Callable[..., Any]:
        def measured(*arguments: Any, **named: Any) -> Any:
            before = self._phase
            self.enter(phase)
            result = function(*arguments, **named)
            self.enter(before)
            return result

        return measured

    def _look(self) -> None:
        while not self._ended.wait(EVERY):
            self._note()

    def _note(self) -> None:
        phase = self._phase
        self.bytes[phase] = max(self.bytes[phase], in_use(self._device))


def in_use(device: int | None) -> float:
    """Bytes in use on a GPU, or by this process if there is none."""
    if device is None:
        return float(psutil.Process().memory_info().rss)
    import torch

    free, whole = torch.cuda.mem_get_info(device)
    return float(whole - free)
