"""Why two runs should not be compared, or what to know if they are: how their plans, labels, modes and settings differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from guieval.data.doctor.counts import counted
from guieval.data.editions import PARTS
from guieval.data.sample_sets import some
from guieval.journal import RunFolder
from guieval.journal.repeats import Repeats
from guieval.journal.run_files import Manifest
from guieval.journal.setup import differences
from guieval.metrics.columns import RunColumns
from guieval.models.scaffold import DESCRIBING, Scaffold, differing, flat, in_effect, named_as_in_scaffolds
from guieval.steps import StepKey

_OF_FAMILY = ("prompt", "history", "options")
"""Settings whose values mean something else in another family."""


def refusal(first: Path, second: Path, unlike: Sequence[str]) -> str:
    """A sentence with all reasons."""
    reasons = "; ".join(unlike)
    return f"{str(first)!r} and {str(second)!r} cannot be compared: {reasons}; --anyway compares the steps they share"


def unlike_runs(first: Path, second: Path, *, protocol_given: bool) -> list[str]:
    """Why two runs should not be compared, by their manifests and plans."""
    manifests = [RunFolder(each).manifest for each in (first, second)]
    return [*_unlike_manifests(*manifests, protocol_given=protocol_given), *_unlike_plans(first, second)]


def _unlike_manifests(first: Manifest, second: Manifest, *, protocol_given: bool) -> Iterator[str]:
    pairs: dict[str, list[str | None]] = {
        "the benchmark": [each.benchmark.name for each in (first, second)],
        "the environment's version": [each.benchmark.environment for each in (first, second)],
        "the overlay of accepted actions": [
            "none" if each.overlay is None else each.overlay.sha256[:12] for each in (first, second)
        ],
    }
    if not protocol_given:
        pairs["the protocol"] = [each.protocol.name for each in (first, second)]
    for what, (one, other) in pairs.items():
        if one != other:
            hint = ", --protocol names one for both" if what == "the protocol" else ""
            yield f"{what} differs ({one!r} and {other!r}{hint})"
    modes = [each.mode for each in (first, second)]
    named = " and ".join(repr(mode.label) for mode in modes)
    if modes[0].stop != modes[1].stop:
        yield f"the modes {named} do not reach the same steps, for one of them ends an episode at its first mismatch"
    elif modes[0].tries != modes[1].tries:
        yield f"the modes {named} do not reach the same steps, for their numbers of tries at a screen differ"
    elif modes[0].mismatches != modes[1].mismatches:
        yield f"the modes {named} do not reach the same steps, for they patch another number of mismatches"


def _unlike_plans(first: Path, second: Path) -> Iterator[str]:
    plans = [RunFolder(directory).plan for directory in (first, second)]
    one, other = ({(key, index) for key, counted in plan.items() for index in counted} for plan in plans)
    parts = []
    for which, missing in (("first", one - other), ("second", other - one)):
        if missing:
            key, index = min(missing)
            parts.append(f"{counted(len(missing), 'step')} only in the {which}, e.g. {StepKey(*key, index)}")
    if parts:
        yield f"the steps differ ({' and '.join(parts)}, {len(one & other):,} in both)"


def unlike_labels(first: RunColumns, second: RunColumns) -> list[str]:
    """How the labels of two runs over the same steps differ, part by part, with the steps; empty if they do not."""
    unlike = []
    if first.dataset != second.dataset:
        unlike.append(f"the data set differs ({first.dataset!r} and {second.dataset!r})")
    if first.label_digests is None or second.label_digests is None:
        return unlike
    known = np.logical_and(first.label_digests.any(axis=1), second.label_digests.any(axis=1))
    for part, ours, theirs in zip(PARTS, first.label_digests.T, second.label_digests.T, strict=True):
        keys = [first.key_of(row) for row in np.flatnonzero(known & (ours != theirs)).tolist()]
        if keys:
            unlike.append(f"{counted(len(keys), 'shared step')} with other {part} ({some(keys)})")
    types = (
        ~known & (first.reference_type != second.reference_type) & (first.reference_type >= 0) & (second.reference_type >= 0)
    )
    if types.any():
        unlike.append(f"{counted(int(types.sum()), 'shared step')} with references of another type")
    if len(unlike) > (first.dataset != second.dataset) and first.edition_line:
        unlike[-1] += f": the first run is on {first.edition_line}, the second on {second.edition_line or 'an unknown one'}"
    return unlike


def remarks(
    manifests: Sequence[Manifest], whole: Sequence[RunColumns], shared: RunColumns, repeats: Sequence[Repeats]
) -> list[str]:
    """What a reader must know of two runs that are compared on ``shared`` steps, of ``whole`` ones."""
    notes = []
    modes = [manifest.mode.label for manifest in manifests]
    if modes[0] != modes[1]:
        notes.append(f"the modes differ ({modes[0]} and {modes[1]}): the runs saw different histories")
    models = [each.model_name for each in manifests]
    if changed := [*_changed(*manifests)]:
        kind = "the runs are of one model and" if models[0] == models[1] else "besides the model, the runs"
        notes.append(f"{kind} differ in {', '.join(changed)}")
    if setups := differences(*(each.setups for each in manifests), same_model=models[0] == models[1]):
        notes.append(f"the set-ups differ in {'; '.join(change.said(' and ') for change in setups)}")
    if setups := differences(*(each.patch_setups for each in manifests)):
        notes.append(f"the set-ups of patches differ in {'; '.join(change.said(' and ') for change in setups)}")
    drawn = [each.benchmark.perturbation_line or "nothing" for each in manifests]
    if len(set(drawn)) == 2:
        notes.append(f"the screenshots differ by what is drawn into them ({drawn[0]} and {drawn[1]})")
    if parts := manifests[0].benchmark.unlike(manifests[1].benchmark):
        named = ", ".join(f"{name} ({one} and {other})" for name, (one, other) in parts.items())
        notes.append(f"the environments differ in {named}: screens may differ")
    if any(len(each) != len(shared) for each in whole):
        sizes = [dict(zip(run.episodes, np.bincount(run.episode).tolist(), strict=True)) for run in (shared, *whole)]
        cut = sum(any(each[key] != size for each in sizes[1:]) for key, size in sizes[0].items())
        notes.append(
            f"compared on the {len(shared):,} steps of {len(shared.episodes):,} episodes that both planned"
            + (f"; {cut:,} episodes are cut short by that, also in metrics of episodes" if cut else "")
        )
    return [*notes, *_of_repeats(repeats)]


def _changed(first: Manifest, second: Manifest) -> Iterator[str]:
    """The settings in which two runs differ, as they applied; the names of their scaffolds are in a line above."""
    same = first.model.adapter == second.model.adapter
    if not same or (first.rules or {}) != (second.rules or {}):
        yield "rules" if same else "adapter"
    for name, *values in differing(*map(_applied, (first, second))):
        if same or name.partition(".")[0] not in _OF_FAMILY:
            yield f"{name} ({' and '.join('not set' if each is None else json.dumps(each) for each in values)})"


def _applied(manifest: Manifest) -> dict[str, Any]:
    """Settings of a run's scaffold, changed by the run's own, by dotted names."""
    scaffold, config = {} if manifest.scaffold is None else manifest.scaffold.to_json(), manifest.config
    acts = {name: value for name, value in scaffold.items() if name in Scaffold.model_fields and name not in DESCRIBING}
    options = named_as_in_scaffolds(manifest.options or {**acts.pop("options", {}), **(config.model.options or {})})
    acts |= {"thinking": manifest.thinking, "sampling": manifest.sampling}
    if (attempts := config.server.max_attempts) is not None:
        acts["retries"] = {**acts.get("retries", {}), "request": attempts}
    own = {"max_steps": config.online.max_steps, "bench_options.max_steps": (config.data.bench_options or {}).get("max_steps")}
    return {**in_effect(acts), **flat(options), **own}


def _of_repeats(groups: Sequence[Repeats]) -> Iterator[str]:
    for letter, group in zip("AB", groups, strict=True):
        if group.line:
            yield f"{letter}: {group.line}"
    counts = [len(group.directories) for group in groups]
    if min(counts) == 1 < max(counts):
        yield "one of the two is a single run: what it would vary by between repeats is not in the intervals and p values"
