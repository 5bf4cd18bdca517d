"""The thoughts of an earlier run, given to a model as its own: fixed-thought inference (GUIEvalKit paper, appendix E).

The thought of a step is that of the run's first sample, the one that every step metric scores; an online run's steps are those
of its trajectories. A step without one cannot be asked with a fixed thought: it is not part of the plan of such a run, and
counted. How a family writes a given thought is its adapter's business (:meth:`guieval.models.ABCModel.prepare_fixed_thought`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from guieval.data.selection import Selection
from guieval.errors import UsageError
from guieval.journal import RunFolder
from guieval.online.record import EPISODES_BENCHMARK, every_trajectory
from guieval.steps import EpisodeKey, Sample, StepKey, StepOutcome, StepRecord


@dataclass(frozen=True, eq=False)
class FixedThoughts:
    """The thoughts of the run in ``directory``, by step; of ``without`` answered steps there is none.

    ``model`` and ``benchmark`` are the run's, by name.
    """

    directory: Path
    model: str
    benchmark: str
    texts: Mapping[StepKey, str]
    without: int

    @property
    def digest(self) -> str:
        """SHA-256 of all thoughts and the steps they are of, whatever the order in which they were thought."""
        whole = sha256()
        for key in sorted(self.texts):
            for part in (*map(str, key), self.texts[key]):
                data = part.encode("utf-8", "surrogatepass")
                whole.update(b"%d:" % len(data) + data)
        return whole.hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The entry for these thoughts in a run's manifest."""
        return {
            "run": str(self.directory),
            "model": self.model,
            "sha256": self.digest,
            "steps": len(self.texts),
            "without_thought": self.without,
        }

    def among(self, selection: Selection) -> Selection:
        """The steps of a selection that have a thought; :class:`UsageError` if none has."""
        plan: dict[EpisodeKey, Sequence[int]] = {}
        for key, steps in selection.plan.items():
            thought = [index for index in steps if StepKey(*key, index) in self.texts]
            if thought:
                plan[key] = steps if len(thought) == len(steps) else thought
        asked, kept = (sum(map(len, each.values())) for each in (selection.plan, plan))
        if not plan:
            raise UsageError(f"the run {str(self.directory)!r} has no thought at any of the chosen steps ({selection.text})")
        if kept == asked:
            return selection
        refs = [ref for ref in selection.refs if ref.key in plan]
        text = f"{selection.text}: the {kept:,} of {asked:,} steps at which {self.model} gave a thought"
        return replace(selection, refs=refs, plan=plan, title=f"{selection.title}, with a thought", text=text)

    def with_thought(self, key: StepKey, sample: Sample) -> Sample:
        """An answer with the thought that was given as its own, so that a later step's history has it."""
        if sample.outcome.verdict == "infrastructure_failure" or key not in self.texts:
            return sample
        return sample.model_copy(update={"thought": self.texts[key]})


def read_thoughts(directory: Path) -> FixedThoughts:
    """The thoughts of a run. Raises :class:`UsageError` if there is no run, or one in which nothing was thought."""
    manifest = RunFolder(directory).manifest
    thoughts = {record.task.key: thought_of(record) for record in answered(directory)}
    texts = {key: text for key, text in thoughts.items() if text is not None}
    model = manifest.config.model.name
    if not texts:
        why = "has no answer" if not thoughts else f"has no thought: {model} gave none at {len(thoughts):,} steps"
        raise UsageError(f"the run {str(directory)!r} {why}")
    benchmark = EPISODES_BENCHMARK if manifest.mode.is_over("tasks") else manifest.benchmark.name
    return FixedThoughts(directory, model, benchmark, texts, len(thoughts) - len(texts))


def answered(directory: Path) -> Iterator[StepRecord]:
    """A run's records whose first sample was answered. Of several of a step the last one counts.

    Among them one with every sample answered is not followed by one that lacks some. The steps of an online run are those that
    ``guieval data record --every`` writes, and each counts as right if its task was done.
    """
    if RunFolder(directory).manifest.mode.is_over("tasks"):
        yield from _of_trajectories(directory)
        return
    finished: set[StepKey] = set()
    for record in RunFolder(directory).steps:
        key = record.task.key
        if record.sample.outcome.verdict == "infrastructure_failure" or (key in finished and not record.finished):
            continue
        if record.finished:
            finished.add(key)
        yield record


def _of_trajectories(directory: Path) -> Iterator[StepRecord]:
    for each in every_trajectory(directory, RunFolder(directory).tasks):
        outcome = StepOutcome(verdict="right" if each.success else "wrong", type_match=each.success, exact_match=each.success)
        for task, step in zip(each.tasks, each.steps, strict=True):
            fields = step.model_dump(include=Sample.model_fields.keys() - {"outcome"})
            yield StepRecord(task=task, samples=(Sample(**fields, outcome=outcome),))


def thought_of(record: StepRecord) -> str | None:
    """The thought of a step's first sample; ``None`` for none, and for one of blanks alone.

    Of a response that its adapter could not read it is what a server's reasoning parser took out of it, else what it has
    between tags of its own; a thought in any other form is lost with such a response.
    """
    sample = record.sample
    tagged = _TAGGED.search(sample.raw_response or "") if sample.action is None else None
    for thought in (sample.thought, sample.reasoning, tagged[2] if tagged is not None else None):
        if thought is not None and thought.strip():
            return thought.strip()
    return None


_TAGGED = re.compile(r"<(think|thinking|thought)>(.*?)</\1>", re.DOTALL)
