"""Reads what a mixed history needs (:mod:`guieval.history.mixing`): artifacts from finished runs, diversities from a file."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel, Field

from guieval.actions import Action, Unsupported
from guieval.data.files import read_text
from guieval.errors import DataError, UsageError
from guieval.evaluation import ActionEvaluator
from guieval.history.mixing import Artifact, Artifacts, Diversities, Pick, drawn
from guieval.journal import RunFolder
from guieval.journal.run_folders import rounds_of
from guieval.steps import Sample, StepKey, StepRecord, validated


def read_artifacts(directory: Path, evaluator: ActionEvaluator, *, pick: Pick = "first", seed: int = 0) -> Artifacts:
    """The artifacts that a run, or the rounds of a rollout, hold; exact is what ``evaluator`` calls so.

    Of several exact samples of a step, ``first`` takes the first one of the first round that has one; ``seeded`` takes each
    with equal probability, by a hash of ``seed``, the step, the round and the sample. Of a step that is in a journal more
    than once, the last record counts that was answered whole. Raises :class:`UsageError` if there is no run, the rounds are
    of different models or benchmarks, the model was given another one's thoughts, or no answer is exact.
    """
    found: dict[StepKey, tuple[tuple[int, ...], Artifact]] = {}
    names: set[tuple[str, str]] = set()
    for number, run in enumerate(rounds_of(directory)):
        manifest = RunFolder(run).manifest
        names.add((manifest.model_name, manifest.benchmark.name))
        thinker = manifest.config.model.name if manifest.fixed_thoughts is None else manifest.fixed_thoughts.model
        if thinker != manifest.config.model.name:
            raise UsageError(f"{str(run)!r} was given the thoughts of {thinker!r}, so its answers are not one model's own")
        for key, best in _of_run(run, number, evaluator, pick, seed).items():
            if key not in found or best[0] < found[key][0]:
                found[key] = best
    if len(names) > 1:
        raise UsageError(f"{str(directory)!r} has runs of different models or benchmarks, so no one model's artifacts")
    if not found:
        raise UsageError(
            f"{str(directory)!r} has no response that is an exact match under {evaluator.protocol.name!r}, so no artifacts"
        )
    steps = {key: artifact for key, (_, artifact) in found.items()}
    ((model, benchmark),) = names
    rows = [(tuple(key), steps[key].action.model_dump_json(), *steps[key][1:]) for key in sorted(steps)]
    whole = sha256("".join(f"{row!r}\n" for row in rows).encode("utf-8", "surrogatepass"))
    return Artifacts(directory, model, benchmark, steps, whole.hexdigest()[:16])


class _Decisions(BaseModel, frozen=True):
    """A line of the file of ``guieval study decisions --steps``, as far as it is read here."""

    model: str
    benchmark: str
    subset: str
    episode_id: str
    step_index: int
    diversity: float | None = Field(ge=0, allow_inf_nan=False)


def read_diversities(file: Path, model: str, benchmark: str) -> Diversities:
    """The diversities of a benchmark's steps in a JSONL file of ``guieval study decisions --steps``.

    A step without a decision has none. Raises :class:`UsageError` for a file that cannot be read, of another model, or without
    a step of the benchmark; :class:`DataError`, naming the line, for a line that does not fit or repeats a step.
    """
    try:
        lines = read_text(file).split("\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise UsageError(f"the decisions {str(file)!r} cannot be read: {why}") from None
    steps: dict[StepKey, float | None] = {}
    others: set[str] = set()
    for number, text in enumerate(lines, 1):
        if not text:
            continue
        line = validated(_Decisions, text, file=file, line=number)
        if line.model != model:
            raise UsageError(f"the decisions of {str(file)!r} are of model {line.model!r}, not of {model!r}")
        key = StepKey(line.benchmark, line.subset, line.episode_id, line.step_index)
        if key.benchmark != benchmark:
            others.add(key.benchmark)
        elif key in steps:
            raise DataError(f"{file}, line {number}: has the step {key} again; write the decisions of one run")
        else:
            steps[key] = line.diversity
    if not steps:
        instead = f" (it has steps of {', '.join(sorted(others))})" if others else ""
        raise UsageError(f"{str(file)!r} has no decisions of benchmark {benchmark!r}{instead}")
    known = {key: diversity for key, diversity in sorted(steps.items()) if diversity is not None}
    return Diversities(file, known, sha256(repr([*known.items()]).encode("utf-8", "surrogatepass")).hexdigest()[:16])


def _of_run(
    run: Path, number: int, evaluator: ActionEvaluator, pick: Pick, seed: int
) -> dict[StepKey, tuple[tuple[int, ...], Artifact]]:
    chosen: dict[StepKey, tuple[tuple[int, ...], Artifact]] = {}
    whole: set[StepKey] = set()
    for record in RunFolder(run).steps:
        key = record.task.key
        if not record.finished and key in whole:
            continue
        if record.finished:
            whole.add(key)
        chosen.pop(key, None)
        ranked = ((_rank(pick, seed, key, number, place), sample) for place, sample in _exact(record, evaluator))
        best = next(ranked, None) if pick == "first" else min(ranked, key=lambda each: each[0], default=None)
        if best is not None and (action := best[1].action) is not None:
            sample = best[1]
            chosen[key] = best[0], Artifact(action, sample.thought, sample.conclusion, sample.raw_response)
    return chosen


def _exact(record: StepRecord, evaluator: ActionEvaluator) -> Iterator[tuple[int, Sample]]:
    known: dict[Action, bool] = {}
    for place, sample in enumerate(record.samples):
        action = sample.action
        if action is None or isinstance(action, Unsupported) or sample.outcome.verdict == "infrastructure_failure":
            continue
        if action not in known:
            known[action] = evaluator.evaluate(record.task, action).exact_match
        if known[action]:
            yield place, sample


def _rank(pick: Pick, seed: int, key: StepKey, number: int, place: int) -> tuple[int, ...]:
    return (number, place) if pick == "first" else (drawn(seed, *key, number, place, "artifact"),)
