"""A digest of the chosen steps of a benchmark, which detects changed data on resume, and the references' action types.

One pass over the chosen episodes at the start of a run and of a resume; only the types are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

from pydantic import BaseModel

from guieval.data.benchmark import EpisodeRef
from guieval.data.editions import Edition, LabelDigest, labels_of
from guieval.errors import DataError
from guieval.steps import Episode, EpisodeKey, Plan, ReferenceTypes, StepKey, StepTaskModel


@dataclass(frozen=True)
class Content:
    """``sha256`` is over the chosen steps as JSON: instructions, labels, targets and elements, names and sizes of screenshots.

    ``edition`` is of their labels. Both are ``None`` if an episode cannot be loaded; the run raises the error when it reaches
    that episode. Screenshots themselves are not part of it: the journal has their digests.
    """

    types: ReferenceTypes
    sha256: str | None
    edition: Edition | None


def as_json(step: StepTaskModel) -> bytes:
    """A step as its digest takes it."""
    return step.model_dump_json().encode("utf-8", "replace")


def read_content(
    refs: Sequence[EpisodeRef],
    plan: Plan,
    load: Callable[[EpisodeRef], Episode],
    written: Callable[[StepTaskModel], bytes] = as_json,
) -> Content:
    """Read the planned steps of every episode. ``load`` raises :class:`DataError` for an episode that cannot be loaded."""
    types: dict[EpisodeKey, Mapping[int, str]] = {}
    labels: dict[StepKey, LabelDigest] = {}
    dataset = ""
    whole = sha256()
    complete = True
    by_key = {ref.key: ref for ref in refs}
    for key, counted in plan.items():
        ref = by_key[key]
        try:
            episode = load(ref)
            if (episode.key, len(episode)) != (key, ref.length):
                raise DataError(f"episode {key} is not what the index lists")
            types[key] = {index: episode.steps[index].action.type for index in counted}
            dataset = episode.steps[0].dataset
            labels |= labels_of(episode.steps[index] for index in counted)
            for index in counted:
                whole.update(written(episode.steps[index]) + b"\n")
        except (DataError, ValueError, RecursionError):  # ValueError, RecursionError: extras that are not JSON
            complete = False
    return Content(types, whole.hexdigest(), Edition.of(dataset, labels)) if complete else Content(types, None, None)


def changed_fields(recorded: BaseModel, now: BaseModel) -> list[str]:
    """The fields in which a recorded step or task differs from today's, each as ``name was X, is Y``; of a group of values
    those that differ."""
    before, after = (step.model_dump(mode="json") for step in (recorded, now))
    for named in (before, after):
        for name in ("extras", "groups"):
            named |= {f"{name}.{inner}": value for inner, value in named.pop(name).items()}
    names = dict.fromkeys((*before, *after))
    return [
        f"{name} was {before.get(name)!r:.60}, is {after.get(name)!r:.60}"
        for name in names
        if before.get(name) != after.get(name)
    ]
