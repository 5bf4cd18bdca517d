"""Rollouts: many samples of every step, drawn in rounds of one seed each (GUIEvalKit paper, section 5.1 and appendix C.2).

Each round is a run of its own below the rollout directory, with a compact journal: it has its own lock and manifest, is resumed
by the rules of any run, and can be scored and shown by itself. What makes the rounds one is ``rollout.json``, and that they
differ in nothing but the seed of sampling: the same episodes, prompts and parameters.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guieval.errors import UsageError
from guieval.journal import ROLLOUT, write_atomically
from guieval.journal.run_files import RolloutFile, read_file
from guieval.registry import model_config
from guieval.running.config import parse
from guieval.running.engine_choice import asks_a_model
from guieval.running.repeats import check_seeds
from guieval.settings import RunConfig
from guieval.settings.sampling import drawing_options, greedy_because, is_greedy, request_parameters

PAPER_SEEDS = (7278727, 7779397, 7771087, 7867747, 7977857, 5113051, 9581717, 20000303)
"""The seeds that appendix C.2.1 lists, one a round."""
PAPER_SAMPLES = 64
SCHEMA = 1


@dataclass(frozen=True)
class Round:
    """One round: its folder below the rollout directory, its seed, and the run that it is."""

    folder: str
    seed: int
    config: RunConfig


def plan_rounds(config: RunConfig, rounds: int | None = None, seeds: Sequence[int] = ()) -> list[Round]:
    """The rounds of a rollout of ``samples`` samples a step and round, by default with the paper's seeds.

    Sample i of a step has the round's seed + i. Raises :class:`UsageError` if samples would not be independent draws of one
    distribution: seeds that lie closer together than a round has samples, further samples with parameters of their own, greedy
    decoding, or a seed among the parameters; for a seed that servers do not take; and for no round, or more than seeds.
    """
    samples, given = config.sampling.samples, tuple(seeds) or PAPER_SEEDS
    count = rounds if rounds is not None else len(given)
    if count < 1:
        raise UsageError(f"{count} rounds draw no samples; a rollout has at least 1")
    check_seeds([max(given)], samples, "round")
    if count > len(given) or (seeds and count != len(given)):
        whose = "" if seeds else " (those of the paper)"
        raise UsageError(f"{count} rounds need {count} seeds, and there are {len(given)}{whose}: add --seeds A,B,...")
    chosen = given[:count]
    check_seeds(chosen, samples, "round")
    if config.sampling.repeats > 1:
        raise UsageError("a rollout has --rounds N, each with a seed of its own: leave out repeats")
    if config.sampling.resampling:
        raise UsageError("setting 'resampling' is for runs whose first sample is special; in a rollout use sampling")
    if "seed" in config.sampling.request:
        raise UsageError("setting 'sampling.seed' is each round's own in a rollout: give them with --seeds A,B,...")
    _refuse_greedy(config, count)
    return [
        Round(f"seed-{seed}", seed, config.having(sampling={**config.sampling.request, "seed": seed}, compact=True))
        for seed in chosen
    ]


def _refuse_greedy(config: RunConfig, rounds: int) -> None:
    model = model_config(config.model.name, config.model.adapter, config.model.scaffold)
    answers = rounds * config.sampling.samples
    sampling = request_parameters(model.scaffold.sampling, config.sampling.request)
    if answers > 1 and asks_a_model(config, model) and is_greedy(sampling):
        raise UsageError(
            f"{answers} samples of greedy decoding ({greedy_because(sampling)}) would be {answers} times the same answer: "
            f"add {drawing_options(sampling, 'sampling')}"
        )


def write_rollout(directory: Path, config: RunConfig, rounds: Sequence[Round]) -> None:
    """Say what the rounds below ``directory`` belong to; :class:`UsageError` when the folder has something already."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        there = next((each.name for each in directory.iterdir()), None)
    except OSError as error:
        raise UsageError(f"the rollout directory {str(directory)!r} cannot be made: {error.strerror}") from None
    if there is not None:
        raise UsageError(
            f"{str(directory)!r} already has {there!r}; `guieval study rollout --resume {directory}` goes on with a rollout, "
            "or give another --out"
        )
    values = {
        "schema": SCHEMA,
        "config": config.model_dump(mode="json"),
        "rounds": [{"directory": each.folder, "seed": each.seed} for each in rounds],
    }
    write_atomically(directory / ROLLOUT, json.dumps(values, indent=2) + "\n")


def read_rollout(directory: Path) -> tuple[dict[str, Any], list[int]]:
    """The settings and the seeds of a rollout; :class:`UsageError` when there is none that this version reads."""
    try:
        file = read_file(directory / ROLLOUT, RolloutFile)
    except FileNotFoundError:
        raise UsageError(f"there is nothing to resume: {str(directory)!r} has no rollout") from None
    return parse(file.config, kept=file.config).model_dump(mode="json"), [each.seed for each in file.rounds]
