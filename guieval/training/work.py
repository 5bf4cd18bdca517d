"""The arithmetic of a training: the floating-point operations of its optimiser steps, and the hours that GPUs need for them."""

from __future__ import annotations

from dataclasses import dataclass

from guieval.training.memory import Method, ModelSize, Rows, Sharding, once

TERA = 1e12
REACHED = 350.0
"""TFLOP/s of one GPU that a plan assumes: 35 % of the 989 that an H100 states for dense bfloat16."""


@dataclass(frozen=True)
class Work:
    """Floating-point operations of one optimiser step over all processes, and the number of steps and of processes.

    What decoding takes is not in them: it waits for memory, and vLLM decodes many responses at once.
    """

    operations: float
    steps: int
    processes: int

    def gpu_hours(self, reached: float = REACHED) -> float:
        """GPU hours at ``reached`` TFLOP/s of each GPU."""
        return self.operations * self.steps / (reached * TERA) / 3600

    def hours(self, reached: float = REACHED) -> float:
        """Hours on the clock, if all GPUs reach that rate at the same time."""
        return self.gpu_hours(reached) / self.processes


def forward(size: ModelSize, tokens: float, image: float) -> tuple[float, float]:
    """Operations of one row's forward pass: of the language model, and of the vision tower.

    Two for each weight and token, and the causal attention's; the tower's attention is left out.
    """
    block = 4 * size.vision.hidden**2 + 3 * size.vision.hidden * size.vision.intermediate
    tower = size.blocks * block
    attention = 2 * size.layers * size.text.queries * tokens**2
    return 2 * (size.parameters - tower) * tokens + attention, 2 * tower * image * size.patches


def of_a_row(size: ModelSize, method: Method, rows: Rows, tokens: float, sharding: Sharding, *, answered: bool) -> float:
    """Operations of one row in training, of ``tokens`` tokens in the mean; ``answered`` rows are generated before.

    A backward pass is two forward ones, and one where the weights are frozen. A frozen tower runs once, for all passes.
    """
    share = tokens / rows.tokens
    text, tower = forward(size, tokens, rows.image * share)
    trained = text * (1 + method.checkpointing + (1 if size.adapters else 2))
    passes = 1 + method.reference + 2 * answered  # the prompt is read, and the old log-probabilities are computed
    towers = (1 + method.checkpointing + 2) if size.vision_trained else 1
    others = 0 if once(size, sharding) else passes - 1
    return trained + (passes - 1) * text + (towers + others) * tower
