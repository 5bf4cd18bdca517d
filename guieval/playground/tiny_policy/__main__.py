"""Makes a tiny policy: ``python -m guieval.playground.tiny_policy --out DIR --seed S --minutes M``. Needs ``guieval[train]``.

The checkpoint loads with ``AutoProcessor`` and ``Qwen3VLForConditionalGeneration``, and runs under the name ``tiny-policy``
(``guieval run --model tiny-policy --bench demo-icons --engine transformers --set model_path=DIR``).
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from guieval.playground.tiny_policy.building import build_policy
from guieval.playground.tiny_policy.language import look_at, train_language
from guieval.playground.tiny_policy.warm_up import warm_up_vision
from guieval.registry import load_model
from guieval.training.speed import fast_on_cpu

VISION_STEPS, LANGUAGE_STEPS, SCREENS = 51, 72, 205
"""Steps of each stage per minute, measured on one core of a server CPU with AMX. Minutes are converted into steps, so that the
checkpoint does not depend on the speed of the machine."""


def main() -> None:
    """Build, train and write the policy, and print the progress."""
    parser = argparse.ArgumentParser(
        prog="python -m guieval.playground.tiny_policy", description="Train the tiny policy from scratch."
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the checkpoint")
    parser.add_argument("--seed", type=int, default=0, help="of the weights and of what they are trained on")
    parser.add_argument("--minutes", type=float, default=6.0, help="length in CPU minutes of one core, about")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16", help="of the weights that are written")
    arguments = parser.parse_args()
    if arguments.minutes <= 0:
        parser.error(f"--minutes is {arguments.minutes}; expected more than 0")

    import torch

    torch.set_num_threads(1)
    began = time.process_time()

    def say(message: str) -> None:
        print(f"{time.process_time() - began:6.0f} s  {message}", file=sys.stderr, flush=True)

    vision, language, screens = (max(1, round(arguments.minutes * each)) for each in (VISION_STEPS, LANGUAGE_STEPS, SCREENS))
    policy = build_policy(arguments.seed)
    say(f"{sum(each.numel() for each in policy.model.parameters()):,} weights, drawn from seed {arguments.seed}")
    with fast_on_cpu(policy.model) as watched:
        warm_up_vision(policy, steps=vision, seed=arguments.seed, say=say)
        seen = look_at(policy, screens=screens, seed=arguments.seed)
        say(f"{len(seen)} screens looked at")
        train_language(policy, load_model("tiny-policy"), seen, watched, steps=language, seed=arguments.seed, say=say)
    policy.save(arguments.out, getattr(torch, arguments.dtype))
    say(f"written to {arguments.out}")


if __name__ == "__main__":
    main()
