"""The files of a selection: sample sets for runs and training, and a manifest with the reason for each step.

A sample set is of one benchmark, so a selection over several is one file for each. It names episodes by their ids alone; if
data has one id in several subsets, a list of steps (``.txt``) is unambiguous, and ``guieval run --episodes`` reads it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from guieval.actions import ACTION_TYPES
from guieval.data.benchmark import EpisodeRef
from guieval.data.sample_sets import SampleSet, step_digest
from guieval.errors import UsageError
from guieval.journal import write_atomically
from guieval.steps import EpisodeKey, Plan
from guieval.studies.data_selection.candidates import draw_place
from guieval.studies.data_selection.stages import Chosen, Curated

SCHEMA = 1
HYPERTRACK_SIZES = tuple(2**power for power in range(4, 14))
"""16, 32, ..., 8,192 episodes: HyperTrack's nested training subsets (arXiv 2605.27134, section 2.2)."""


@dataclass(frozen=True)
class WrittenSet:
    """A file that was written, the benchmark it is of, and how much it has."""

    path: Path
    benchmark: str
    episodes: int
    steps: int


def write_curated(curated: Curated, file: Path, *, runs: Sequence[str], version: str) -> tuple[list[WrittenSet], Path]:
    """Write a selection: ``file`` when it is of one benchmark, else one file for each, and the manifest next to them.

    ``file`` ends in ``.json`` (sample set) or ``.txt`` (list of steps); with several benchmarks ``hard.json`` becomes
    ``hard-screenspot.json`` and so on. The manifest, ``hard.manifest.jsonl``, has a first line with the recipe and the
    number of steps left after each stage, then one line per step with every stage's reason. Returns the files and the
    manifest. Raises :class:`UsageError` for another ending, and for ids that a sample set cannot tell apart.
    """
    _check_ending(file)
    by_benchmark: dict[str, list[Chosen]] = {}
    for each in curated.chosen:
        by_benchmark.setdefault(each.step.key.benchmark, []).append(each)
    source = f"`guieval study select` of the runs {', '.join(runs)}: stages {', '.join(curated.recipe.stages)}"
    source += f", order {curated.recipe.order}, seed {curated.recipe.seed}"
    made = []
    for benchmark, chosen in by_benchmark.items():
        steps: dict[EpisodeKey, list[int]] = {}
        for each in chosen:
            steps.setdefault(each.step.episode_key, []).append(each.step.key.step_index)
        counts = Counter(choice.step.type for choice in chosen)
        made.append(
            _contents(
                file if len(by_benchmark) == 1 else _named(file, benchmark),
                {key: tuple(sorted(indices)) for key, indices in steps.items()},
                {each.step.key.episode_id: each.step.episode_length for each in chosen},
                title="steps to train on",
                datasets=tuple(dict.fromkeys(each.step.dataset for each in chosen)),
                types={name: counts[name] for name in ACTION_TYPES if counts[name]},
                source=source,
            )
        )
    head = {
        "schema": SCHEMA,
        "guieval": version,
        "runs": list(runs),
        "files": [written.path.name for written, _ in made],
        "recipe": asdict(curated.recipe),
        "left": dict(curated.left),
        "cells": [asdict(cell) for cell in curated.cells],
        "composition": dict(curated.composition),
    }
    manifest = file.with_name(f"{file.stem}.manifest.jsonl")
    for written, text in made:
        write_atomically(written.path, text)
    write_atomically(manifest, "".join(f"{json.dumps(line)}\n" for line in [head, *map(_line, curated.chosen)]))
    return [written for written, _ in made], manifest


def nested_episodes(refs: Sequence[EpisodeRef], sizes: Sequence[int], seed: int = 0) -> dict[int, list[EpisodeRef]]:
    """For each size a subset of ``refs`` with so many episodes, in their order; it contains every smaller one.

    HyperTrack's paper gives only the sizes; that each subset contains the smaller ones is our choice: a curve over sizes then
    shows what more data adds, not which episodes another draw happens to contain. Episodes are drawn without replacement, by
    their names and ``seed`` alone. Raises :class:`UsageError` for no size, one below 1,
    one named twice, and one above the number of episodes.
    """
    if not sizes:
        raise UsageError("name at least one size, in episodes")
    for size in sizes:
        if size < 1 or sizes.count(size) > 1:
            problem = "below 1" if size < 1 else "named twice"
            raise UsageError(f"the sizes of nested subsets are different whole numbers from 1 on, and {size} is {problem}")
    if max(sizes) > len(refs):
        raise UsageError(f"a subset of {max(sizes):,} episodes cannot be drawn from the {len(refs):,} that there are")
    order = sorted(refs, key=lambda ref: draw_place(seed, ref.key))
    subsets: dict[int, list[EpisodeRef]] = {}
    for size in sorted(sizes):
        drawn = {ref.key for ref in order[:size]}
        subsets[size] = [ref for ref in refs if ref.key in drawn]
    return subsets


def write_nested(
    subsets: Mapping[int, Sequence[EpisodeRef]], plan: Plan, file: Path, *, dataset: str, seed: int, pool: str
) -> list[WrittenSet]:
    """Write each subset of episodes, ``train.json`` as ``train-16.json`` and so on.

    ``plan`` has the counted steps of the episodes, ``pool`` describes what they were drawn from. Raises
    :class:`UsageError` as :func:`write_curated` does.
    """
    _check_ending(file)
    made = []
    for size, refs in subsets.items():
        made.append(
            _contents(
                _named(file, str(size)),
                {ref.key: tuple(plan[ref.key]) for ref in refs},
                {ref.key.episode_id: ref.length for ref in refs},
                title=f"{size:,} episodes to train on",
                datasets=(dataset,),
                source=f"`guieval study select --nested` of {pool}, seed {seed}; every smaller subset of that seed is inside",
            )
        )
    for written, text in made:
        write_atomically(written.path, text)
    return [written for written, _ in made]


def _check_ending(file: Path) -> None:
    if file.suffix not in (".json", ".txt"):
        raise UsageError(
            f"{str(file)!r} must end in .json, a sample set, or in .txt, a list of steps for `guieval run --episodes`"
        )


def _named(file: Path, part: str) -> Path:
    return file.with_name(f"{file.stem}-{part}{file.suffix}")


def _contents(
    file: Path, plan: Mapping[EpisodeKey, tuple[int, ...]], lengths: Mapping[str, int], **of_set: Any
) -> tuple[WrittenSet, str]:
    """The content of ``file``; ``lengths`` of whole episodes by id, ``of_set`` are the other fields of a sample set."""
    benchmark = next(iter(plan)).benchmark
    written = WrittenSet(file, benchmark, len(plan), sum(map(len, plan.values())))
    if file.suffix == ".txt":
        names = {key: f"{key.subset}/{key.episode_id}" if key.subset else key.episode_id for key in plan}
        return written, "".join(f"{names[key]}#{index}\n" for key, indices in plan.items() for index in indices)
    names_of = Counter(key.episode_id for key in plan)
    if twice := next((name for name, count in names_of.items() if count > 1), None):
        raise UsageError(
            f"{benchmark} has the episode {twice!r} in several subsets, which a sample set cannot tell apart; write a "
            f"list of steps with --out {file.with_suffix('.txt').name}"
        )
    steps = {key.episode_id: indices for key, indices in plan.items()}
    sample_set = SampleSet(
        name=file.stem,
        used_by="training",
        episodes=written.episodes,
        steps=written.steps,
        ids={name: lengths[name] for name in steps},
        only={name: indices for name, indices in steps.items() if len(indices) < lengths[name]},
        sha256=step_digest(steps),
        **of_set,
    )
    return written, sample_set.model_dump_json(indent=2, exclude_defaults=True) + "\n"


def _line(each: Chosen) -> dict[str, Any]:
    step = each.step
    return {
        **step.key._asdict(),
        "type": step.type,
        **({"button": step.button} if step.button else {}),
        "groups": dict(step.groups),
        "run": step.run,
        "verdict": step.verdict,
        "reasoning_length": step.reasoning_length,
        "why": dict(each.why),
    }
