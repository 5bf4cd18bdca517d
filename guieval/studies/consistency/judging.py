"""Does an execution do what its reasoning announces? Judges execute the same reasoning, and vote (GUIEvalKit paper, 5.4.1).

A judge is a model that continued a run's thoughts (``guieval run --fixed-thoughts RUN --samples n``). Its *majority* at a step
is the decision to which most of its executions belong, the *consensus* the decision to which most judges' majorities belong;
the step is consistent if the run's own execution belongs to the consensus. docs/studies/consistency.md has the choices that
the paper leaves open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from guieval.actions import Action, Unsupported
from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator
from guieval.journal import RunFolder
from guieval.journal.run_folders import pooled_parts, rounds_of
from guieval.running.fixed_thoughts import answered, read_thoughts
from guieval.steps import StepKey, StepTaskModel
from guieval.studies.consistency.contingency import Contingency, Detection
from guieval.studies.decisions.clustering import DEFAULTS, ClusterSettings, cluster, prototype
from guieval.studies.decisions.executions import StepExecutions, read_executions

Abstention: TypeAlias = Literal["tie", "no decision", "not asked"]
"""Why there is no vote: a tie for the first place, no execution with a decision, or a step that was never answered."""
Failure: TypeAlias = Literal["action type", "action target", "invalid action"]
"""Table 7's kinds: a type other than the consensus's; the same type with another place, text, direction or button; an
execution that is not an action of the unified space."""
FAILURES: tuple[Failure, ...] = get_args(Failure)


@dataclass(frozen=True)
class Majority:
    """The decision that won: its distinct executions, most frequent first, with their counts.

    ``votes`` of ``of`` are executions for one judge, judges for the consensus.
    """

    actions: tuple[Action, ...]
    counts: tuple[int, ...]
    votes: int
    of: int

    @property
    def prototype(self) -> Action:
        """A representative execution: the weighted mean of points, else the most frequent execution."""
        return prototype(self.actions[0], self.actions, self.counts)


@dataclass(frozen=True)
class JudgeFinding:
    """The verdict of one judge, or of all together, on one execution; ``consistent`` is ``None`` if it is undecided."""

    decision: Majority | Abstention
    consistent: bool | None
    failure: Failure | None


@dataclass(frozen=True)
class Trace:
    """One reasoning trace with its execution (``action``, ``None`` for a response without one) and the findings on them.

    ``judges`` are the findings of each judge alone, in the judges' order, ``joint`` that of their consensus; ``human`` is the
    label, if there is one. ``exact`` is whether the action is an exact match, or, of an online run, its task a success.
    """

    task: StepTaskModel
    thought: str
    action: Action | None
    exact: bool
    judges: tuple[JudgeFinding, ...]
    joint: JudgeFinding
    human: bool | None = None


@dataclass(frozen=True)
class JudgeRun:
    """A directory of executions under fixed thoughts; ``title`` is different for every judge.

    ``executions`` were measured at ``steps`` steps, ``without_decision`` of them hold no action of the unified space.
    ``failed`` requests were not answered.
    """

    directory: Path
    title: str
    steps: int
    executions: int
    without_decision: int
    failed: int


@dataclass(frozen=True)
class Consistency:
    """The traces that at least one judge executed, and the numbers of those left out.

    ``without_thought`` counts answered steps of the run without a thought, ``not_judged`` those that no judge
    executed, ``unknown_labels`` human labels of other steps. ``run`` is a folder of the runs ``parts`` if several are pooled.
    """

    run: Path
    model: str
    protocol: str
    settings: ClusterSettings
    judges: tuple[JudgeRun, ...]
    traces: tuple[Trace, ...]
    without_thought: int
    not_judged: int
    unknown_labels: int = 0
    parts: tuple[Path, ...] = ()
    online: bool = False

    @property
    def match(self) -> str:
        """What it is set against: the action's match, or, of an online run, the task's success."""
        return "success of the task" if self.online else "exact match"

    @property
    def by_benchmark(self) -> dict[str, list[Trace]]:
        """The traces of each benchmark, in their order."""
        found: dict[str, list[Trace]] = {}
        for trace in self.traces:
            found.setdefault(trace.task.benchmark, []).append(trace)
        return found

    @property
    def undecided(self) -> int:
        """The number of traces without a joint verdict."""
        return sum(trace.joint.consistent is None for trace in self.traces)

    @property
    def labelled(self) -> bool:
        return any(trace.human is not None for trace in self.traces)


def majority(executions: StepExecutions, settings: ClusterSettings) -> Majority | Abstention:
    """The decision of most of a judge's executions of one step."""
    drawn = [
        (action, int(count))
        for action, count in zip(executions.actions, executions.counts, strict=True)
        if action is not None and not isinstance(action, Unsupported)
    ]
    if not drawn:
        return "no decision" if executions.n else "not asked"
    labels = cluster([action for action, _ in drawn], [count for _, count in drawn], settings).tolist()
    votes: Counter[int] = Counter()
    for (_, count), label in zip(drawn, labels, strict=True):
        votes[label] += count
    return _elected(votes, drawn, labels)


def consensus(majorities: Sequence[Majority | Abstention], settings: ClusterSettings) -> Majority | Abstention:
    """The decision of most judges."""
    voting = [decision for decision in majorities if isinstance(decision, Majority)]
    if not voting:
        return "not asked" if all(reason == "not asked" for reason in majorities) else "no decision"
    drawn = [
        (action, count, judge)
        for judge, decision in enumerate(voting)
        for action, count in zip(decision.actions, decision.counts, strict=True)
    ]
    drawn.sort(key=lambda execution: execution[0].model_dump_json())  # clusters of texts depend on the order
    pooled: Counter[Action] = Counter()
    for action, count, _ in drawn:
        pooled[action] += count
    actions, counts = zip(*pooled.most_common(), strict=True)
    labels = dict(zip(actions, cluster(actions, counts, replace(settings, min_samples=1)).tolist(), strict=True))
    # A judge's own executions may be in several of these clusters: its most frequent one decides.
    meant = [labels[decision.actions[0]] for decision in voting]
    return _elected(Counter(meant), [(action, count) for action, count, _ in drawn], [meant[judge] for _, _, judge in drawn])


def find(decision: Majority | Abstention, action: Action | None, settings: ClusterSettings) -> JudgeFinding:
    """Whether an execution belongs to a decision, and if not, how it fails."""
    if action is None or isinstance(action, Unsupported):
        return JudgeFinding(decision, False, "invalid action")
    if not isinstance(decision, Majority):
        return JudgeFinding(decision, None, None)
    labels = cluster([*decision.actions, action], [*decision.counts, 1], replace(settings, min_samples=1)).tolist()
    if labels[-1] in labels[:-1]:
        return JudgeFinding(decision, True, None)
    return JudgeFinding(decision, False, "action target" if action.type == decision.prototype.type else "action type")


def judged(
    task: StepTaskModel,
    thought: str,
    action: Action | None,
    exact: bool,
    majorities: Sequence[Majority | Abstention],
    settings: ClusterSettings,
    human: bool | None = None,
) -> Trace:
    """A trace with the findings of each judge alone, and of all together."""
    alone = tuple(find(each, action, settings) for each in majorities)
    return Trace(task, thought, action, exact, alone, find(consensus(majorities, settings), action, settings), human)


def read_consistency(
    directory: Path,
    judges: Sequence[Path],
    *,
    pool: bool = False,
    settings: ClusterSettings = DEFAULTS,
    protocol: str | None = None,
    labels: Mapping[StepKey, bool] | None = None,
) -> Consistency:
    """Judge every trace of the run in ``directory`` by the runs or rollouts in ``judges``.

    With ``pool`` each of these is a folder of runs, e.g. of several benchmarks, that are read as one. Exact match is under
    ``protocol`` (default: each run's). ``labels``: whether a human calls a step consistent, with an empty benchmark for any.
    Memory grows with the traces and the majorities' executions. Raises :class:`UsageError` where there is no run, thought or
    protocol, where a judge did not continue these runs' thoughts, and for a label that fits two steps.
    """
    parts = pooled_parts(directory) if pool else (directory,)
    by_judge = {judge: pooled_parts(judge) if pool else (judge,) for judge in judges}
    thoughts = [read_thoughts(part) for part in parts]
    for part in chain.from_iterable(by_judge.values()):
        _check_judge(part, directory, parts, {each.digest for each in thoughts})
    decided, asked = _decisions(by_judge, settings)
    known = dict(labels or {})
    used: dict[StepKey, StepKey] = {}
    traces: list[Trace] = []
    protocols: dict[str, None] = {}
    online = {RunFolder(part).manifest.mode.is_over("tasks") for part in parts}
    if True in online and (protocol is not None or len(online) > 1):
        others = "others are" if protocol is None else f"the protocol {protocol!r} is"
        raise UsageError(f"{str(directory)!r} is of live tasks, whose success counts, and {others} of recorded steps")
    for part, its_thoughts in zip(parts, thoughts, strict=True):
        evaluator = ActionEvaluator(RunFolder(part).protocol if protocol is None else protocol)
        protocols[evaluator.protocol.name] = None
        actual = {record.task.key: record for record in answered(part)}
        for key, record in sorted(actual.items()):
            if key in its_thoughts.texts and key in decided:
                task, action = record.task, record.sample.action
                exact = (record.sample.outcome if True in online else evaluator.evaluate(task, action)).exact_match
                label = key if key in known else key._replace(benchmark="")
                if label in known and (other := used.setdefault(label, key)) != key:
                    raise UsageError(f"a label fits the steps {other} and {key}; give the labels a column 'benchmark'")
                traces.append(judged(task, its_thoughts.texts[key], action, exact, decided[key], settings, known.get(label)))
    if not traces:
        raise UsageError(f"the judges answered no step of {str(directory)!r}")
    return Consistency(
        directory,
        RunFolder(parts[0]).label,
        ", ".join(protocols),
        settings,
        asked,
        tuple(traces),
        sum(each.without for each in thoughts),
        sum(len(each.texts) for each in thoughts) - len(traces),
        len(known) - len(used),
        parts,
        online=True in online,
    )


def _decisions(
    by_judge: Mapping[Path, Sequence[Path]], settings: ClusterSettings
) -> tuple[dict[StepKey, list[Majority | Abstention]], tuple[JudgeRun, ...]]:
    """What each judge decides, by step, in the judges' order; and the judges."""
    decided: dict[StepKey, list[Majority | Abstention]] = {}
    asked: list[JudgeRun] = []
    for place, ((each, its_parts), title) in enumerate(zip(by_judge.items(), _titles(by_judge), strict=True)):
        steps = n = without = failed = 0
        for executions in chain.from_iterable(map(read_executions, its_parts)):
            decided.setdefault(executions.task.key, ["not asked"] * len(by_judge))[place] = majority(executions, settings)
            steps += 1
            n += executions.n
            without += executions.unparseable + executions.unsupported
            failed += executions.failed
        asked.append(JudgeRun(each, title, steps, n, without, failed))
    return decided, tuple(asked)


def contingency(traces: Sequence[Trace], *, undecided_as: bool | None = None) -> Contingency:
    """Table 6: traces by consistency and exact match. Undecided ones count as ``undecided_as``, or are left out."""
    counts: Counter[tuple[bool, bool]] = Counter()
    for trace in traces:
        consistent = undecided_as if trace.joint.consistent is None else trace.joint.consistent
        if consistent is not None:
            counts[consistent, trace.exact] += 1
    return Contingency(counts[True, True], counts[True, False], counts[False, True], counts[False, False])


def detection(traces: Sequence[Trace], judge: int | None = None, *, undecided_as: bool | None = None) -> Detection:
    """Tables 5 and 21 over the labelled traces: of one judge alone (``judge`` is its place), or of all together."""
    counts: Counter[tuple[bool, bool | None]] = Counter()
    for trace in traces:
        if trace.human is not None:
            verdict = (trace.joint if judge is None else trace.judges[judge]).consistent
            counts[trace.human, undecided_as if verdict is None else verdict] += 1
    return Detection(
        counts[True, True],
        counts[True, False],
        counts[False, True],
        counts[False, False],
        counts[True, None] + counts[False, None],
    )


def failures(traces: Sequence[Trace]) -> dict[Failure, list[Trace]]:
    """Table 7: the inconsistent traces by kind of failure, in their order."""
    found: dict[Failure, list[Trace]] = {kind: [] for kind in FAILURES}
    for trace in traces:
        if trace.joint.failure is not None:
            found[trace.joint.failure].append(trace)
    return found


def _elected(votes: Counter[int], drawn: Sequence[tuple[Action, int]], labels: Sequence[int]) -> Majority | Abstention:
    (won, most), *others = votes.most_common(2)
    if others and others[0][1] == most:
        return "tie"
    counts: Counter[Action] = Counter()
    for (action, count), label in zip(drawn, labels, strict=True):
        if label == won:
            counts[action] += count
    ordered = counts.most_common()  # of equally frequent ones, the first drawn is first
    return Majority(tuple(action for action, _ in ordered), tuple(count for _, count in ordered), most, votes.total())


def _check_judge(judge: Path, directory: Path, parts: Sequence[Path], digests: Collection[str]) -> None:
    for each in rounds_of(judge):
        fixed = RunFolder(each).manifest.fixed_thoughts
        if fixed is None:
            raise UsageError(
                f"the judge {str(judge)!r} has its own thoughts; make a judge with `guieval run --fixed-thoughts {parts[0]} "
                "--samples 32 ...`"
            )
        if fixed.sha256 not in digests:
            raise UsageError(
                f"the judge {str(judge)!r} continued thoughts other than those of {str(directory)!r}: those of "
                f"{fixed.run!r}, or of this run at an earlier time"
            )
        if each.resolve() in [part.resolve() for part in parts]:
            raise UsageError(f"the run {str(each)!r} cannot be its own judge")


def _titles(judges: Mapping[Path, Sequence[Path]]) -> list[str]:
    """A name for each judge: its model, with the directory if two judges have the same model."""
    models = [RunFolder(rounds_of(parts[0])[0]).label for parts in judges.values()]
    return [model if models.count(model) == 1 else f"{model} ({each.name})" for model, each in zip(models, judges, strict=True)]
