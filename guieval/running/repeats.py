"""Plans repeats: the same run several times, each with seeds of its own, below one folder.

Repeat k of a run has the sampling seed ``--sampling-seed`` (else ``--seed``) + k times the number of samples a step, because
the further samples of a step take the seeds after the first one's, and the history seed ``mix.seed`` + k. The settings in its
manifest have both, and k. Which episodes are drawn, and how an environment begins a task, is the same in all.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from guieval.errors import UsageError
from guieval.journal import RunFolder
from guieval.journal.repeats import FOLDER, repeats_in
from guieval.registry import model_config
from guieval.running.config import parse
from guieval.running.engine_choice import asks_a_model
from guieval.settings import RunConfig, Sampling
from guieval.settings.sampling import greedy_because, is_greedy, request_parameters

LARGEST_SEED = 2**63 - 1
"""Servers take no larger ones."""
_LOG = logging.getLogger(__name__)


def repeats_of(config: RunConfig, directory: Path, seeds: Sequence[int] = ()) -> list[tuple[RunConfig, Path]]:
    """The runs of a configuration with their directories: its repeats below ``directory``, or itself in it.

    ``seeds`` are those of sampling, one for each repeat, in place of those that follow from the settings. Raises
    :class:`UsageError` if repeats would not be draws of their own.
    """
    if config.sampling.repeat is not None:
        raise UsageError("setting 'repeat' is the number that a repeat gets; --repeats N says how many there are")
    if seeds and config.sampling.repeats > 1:
        raise UsageError(f"repeats is {config.sampling.repeats}, and there are {len(seeds)} seeds: give one of the two")
    count = len(seeds) or config.sampling.repeats
    if count == 1 and not seeds:
        return [(config, directory)]
    if config.server.replay is not None:
        raise UsageError("--replay gives the answers of an earlier run, which are the same in every repeat: leave out repeats")
    if not seeds:
        base = config.sampling.request.get("seed")
        base = config.data.seed if base is None else base
        seeds = [base + number * config.sampling.samples for number in range(count)]
    check_seeds(seeds, config.sampling.samples, "repeat")
    return [(_repeat(config, number, seed, count), directory / f"repeat-{number}") for number, seed in enumerate(seeds)]


def check_seeds(seeds: Sequence[int], samples: int, what: str) -> None:
    """Raise :class:`UsageError` for seeds that servers do not take, or between which ``samples`` a step do not fit."""
    if (most := max(seeds)) + samples - 1 > LARGEST_SEED:
        raise UsageError(f"the seed {most} is too large: servers take seeds up to {LARGEST_SEED}, and sample i adds i to it")
    for one, other in zip(ordered := sorted(seeds), ordered[1:], strict=False):
        if other - one < samples:
            raise UsageError(
                f"the seeds {one} and {other} are closer together than the {samples} samples of a {what}, which take the "
                "seeds from there on: some samples would be drawn twice"
                if samples > 1
                else f"the seed {one} is given twice, so two of the {what}s would be the same draw"
            )


def further_repeats(runs: Sequence[tuple[RunConfig, Path]]) -> list[tuple[RunConfig, Path]]:
    """The repeats that are planned next to those of ``runs`` and have no directory: of a larger ``--repeats``, or lost ones."""
    found: list[tuple[RunConfig, Path]] = []
    folders: set[Path] = set()
    for config, directory in runs:
        number = config.sampling.repeat
        if number is not None and config.sampling.repeats < (before := _sampling(directory).repeats):
            raise UsageError(
                f"repeats is {config.sampling.repeats}, and {str(directory.parent)!r} has {before}, which are kept: leave out "
                f"--repeats, or give more than {before} to add some"
            )
        if number is None or directory.parent in folders:
            continue
        folders.add(directory.parent)
        there = {int(name[1]) for each in repeats_in(directory.parent) if (name := FOLDER.fullmatch(each.name))}
        absent = [each for each in range(config.sampling.repeats) if each not in there]
        seed = config.sampling.request["seed"]
        others = [_sampling(each) for each in repeats_in(directory.parent)]
        step = config.sampling.samples
        if absent and any(each.request["seed"] - seed != ((each.repeat or 0) - number) * step for each in others):
            raise UsageError(
                f"the repeats in {str(directory.parent)!r} have seeds of a campaign file: add seeds there, and run "
                "`guieval campaign` again"
            )
        found += [
            (_repeat(config, each, seed + (each - number) * step, config.sampling.repeats), directory.parent / f"repeat-{each}")
            for each in absent
        ]
    return found


def announce_greedy(configs: Iterable[RunConfig]) -> None:
    """Say it if repeats of greedy decoding would differ by what servers do not repeat exactly, and by nothing else."""
    greedy: dict[str, str] = {}
    for config in configs:
        if config.sampling.repeat is None or config.history.mix or config.model.name in greedy:
            continue
        model = model_config(config.model.name, config.model.adapter, config.model.scaffold)
        sampling = request_parameters(model.scaffold.sampling, config.sampling.request)
        if asks_a_model(config, model) and is_greedy(sampling):
            greedy[config.model.name] = greedy_because(sampling)
    if greedy:
        _LOG.warning(
            "repeats of %s: decoding is greedy, so they differ only as far as the server does not repeat itself; "
            "--temperature 1 draws",
            ", ".join(f"{name} ({why})" for name, why in greedy.items()),
        )


def _repeat(config: RunConfig, number: int, seed: int, count: int) -> RunConfig:
    """Repeat ``number`` of ``count``; ``config`` is that of the whole, or of another repeat."""
    settings = {"sampling": {**config.sampling.request, "seed": seed}, "repeats": count, "repeat": number}
    if mix := config.history.mix:
        settings["mix"] = {**mix, "seed": mix.get("seed", 0) + number - (config.sampling.repeat or 0)}
    return config.having(**settings)


def _sampling(directory: Path) -> Sampling:
    recorded = RunFolder(directory).manifest.config.to_json()
    return parse(recorded, kept=recorded).sampling
