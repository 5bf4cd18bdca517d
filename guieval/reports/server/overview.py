"""The overview of one run, in sections that the page asks for one after the other.

The metrics are those of ``guieval score``, from one pass over the journal that also collects why steps failed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator
from guieval.history.modes import Kind
from guieval.journal import RunFolder
from guieval.journal.run_folders import is_rollout
from guieval.metrics.columns import ENDS, RunColumns
from guieval.metrics.kinds import of_steps
from guieval.metrics.of_run import Metrics
from guieval.metrics.registry import registered
from guieval.reports.console import Run, online_tables, own_table, run_table, warning_lines
from guieval.reports.matrix_table import agreement_lines, glance_table, step_lines
from guieval.reports.past_runs import described
from guieval.reports.score_tables import breakdown_table
from guieval.reports.server.shown_tables import clean, shown
from guieval.reports.tables.table import Number, Table, columns, text
from guieval.reports.tables.writers import plain
from guieval.reports.trajectories.reading import OnlineTrajectories, read_online
from guieval.scoring.matrix import ALL, judge_answers, judge_run, on_own_sets
from guieval.scoring.recorded_run import recorded_answers
from guieval.scoring.score import scored, stored_summary
from guieval.steps import EpisodeKey, Sample, StepKey, StepOutcome, StepTaskModel, Verdict
from guieval.wings import offered

MOST_REASONS, REASON_LENGTH, EXAMPLES = 12, 200, 5
_CARDS = ("exact match", "type match", "success rate", "progress", "coverage", "PG", "TSR")
_VIEWER_WORDS = {"infrastructure failure": "failed"}
_ERROR_FILTERS = {
    **{kind: {"kind": f"wrong {kind}"} for kind in ("type", "text", "app", "direction", "button")},
    **{kind: {"verdict": kind} for kind in ("unparseable", "unsupported", "not run")},
    "infrastructure": {"verdict": "failed"},
}
"""The step viewer's filters for kinds of errors; of points it has one filter for all kinds."""
_FACTS = {name: name.capitalize() for name in ("name", "model", "benchmark", "mode", "protocol")}
_FACTS |= {"created": "Begun", **{name: name.capitalize() for name in ("folder", "steps")}, "setup": "Set-up"}
_FACTS |= {name: name.capitalize() for name in ("labels", "scaffold")}
"""What the head of a page says of a run."""
_UNREAD = ("unparseable", "unsupported", "infrastructure_failure")


@dataclass
class Failures:
    """Why answers could not be judged: how often each reason occurred, with some of the steps."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: defaultdict[tuple[str, str], list[dict[str, str]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, what: StepKey | EpisodeKey, link: str, kind: str, reason: str) -> None:
        """Count a step or a task, whose page is at ``link``."""
        name = kind.replace("_", " "), clean(reason)[:REASON_LENGTH]
        if name in self.counts or len(self.counts) < 1000:
            self.counts[name] += 1
            if len(self.examples[name]) < EXAMPLES:
                self.examples[name].append({"name": clean(str(what)), "link": link})


@dataclass(frozen=True)
class JudgedRun:
    """A run judged under its own protocol."""

    metrics: Metrics
    columns: RunColumns
    failures: Failures


def judged_run(directory: Path) -> JudgedRun:
    """Judge a run; :class:`guieval.errors.UsageError` if it cannot be read."""
    answered, numbers = recorded_answers(directory), count()
    evaluator = ActionEvaluator(answered.protocol)
    unread: list[tuple[int, StepTaskModel, Verdict, str]] = []

    def judge(task: StepTaskModel, samples: tuple[Sample, ...]) -> StepOutcome:
        number = next(numbers)
        outcome = evaluator.rescore(task, samples[0])
        if outcome.verdict in _UNREAD:
            error = samples[0].error
            unread.append(
                (number, task, outcome.verdict, outcome.reason if error is None else f"{error.stage}: {error.message}")
            )
        return outcome

    answers = judge_answers(answered, None, judge=judge)
    failures = Failures()
    for number, task, verdict, reason in unread:
        if answers.counts(number, task):  # a step may have failed in one session and again, or not, in the next
            failures.add(task.key, step_link(task.key), verdict, reason)
    return JudgedRun(scored(answers), answers.columns(), failures)


def step_link(key: StepKey) -> str:
    """The address of a step in the step viewer, from a run's overview."""
    episode = "/".join(part for part in (key.subset, key.episode_id) if part)
    return f"steps/#{quote(episode, safe='')}/{key.step_index}"


def _filter_link(**values: str) -> str:
    return f"steps/#?{urlencode(values)}"


def stored_section(directory: Path) -> dict[str, Any] | None:
    """The leading metrics, from ``metrics.json``; ``None`` if it may differ from the journal."""
    folder = RunFolder(directory)
    summary = None if registered() else stored_summary(folder)  # metrics of the user may be others now
    if summary is None:
        return None
    run = Run(folder.protocol, of_steps(summary))
    return {**_headline(run), "notes": [clean(note) for note in warning_lines([run])]}


def metrics_section(run: JudgedRun) -> dict[str, Any]:
    """The leading metrics, the five verdicts, and the tables with all of them."""
    found = run.metrics
    column = Run(found.label, of_steps(found.summary))
    notes = [*found.notes, *warning_lines([column]), *(f"overlay: {each}" for each in found.overlays)]
    notes += [f"Protocol: {found.protocol}. Steps: {found.steps}."]
    tables = shown(run_table([column]), own_table([column]))
    return {**_headline(column), "tables": tables, "notes": [clean(note) for note in dict.fromkeys(notes)]}


def _headline(run: Run[Any]) -> dict[str, Any]:
    cards, verdicts = [], []
    for name, measured in run.summary.all_metrics.items():
        if (name in _CARDS or name in run.summary.further) and measured.value is not None:
            cell = Number(measured)
            card = {"name": name, "value": cell.shown, "ends": cell.ends, "n": measured.n, "of": measured.of}
            cards.append({**card, "mark": cell.marks, "measured": plain(measured)})
    for end in ENDS:
        name = end.replace("_", " ")
        if count := getattr(run.summary.verdicts, end):
            verdicts.append({"name": name, "count": count, "link": _filter_link(verdict=_VIEWER_WORDS.get(name, name))})
    return {"cards": cards, "verdicts": verdicts, "planned": run.summary.verdicts.planned, "state": run.summary.state}


def breakdowns_section(run: JudgedRun) -> dict[str, Any]:
    """Matches by action type, by horizon and by the benchmark's labels, and the kinds of errors."""
    protocol, tables = run.metrics.protocol, []
    for by in ("action-type", "error", "length", "step", *sorted(run.columns.groups)):
        try:
            table = breakdown_table(run.columns, protocol, by)
        except UsageError:
            continue
        if len(table.rows) > 1 or (by == "error" and table.rows):
            tables += shown(table, links=[_row_link(by, text(row[0])) for row in table.rows])
    return {"tables": tables}


def _row_link(by: str, name: str) -> str | None:
    """The address of the steps in a row of a breakdown, if the step viewer has such a filter."""
    filters = {"action-type": {"reference": name}, "error": _ERROR_FILTERS.get(name)}.get(by)
    return None if filters is None else _filter_link(**filters)


def failures_section(failures: Failures, directory: Path) -> dict[str, Any]:
    """Failures and their reasons, most frequent first, and the cost of the run."""
    rows = [
        {"kind": kind, "reason": reason, "count": count, "steps": failures.examples[kind, reason]}
        for (kind, reason), count in failures.counts.most_common(MOST_REASONS)
    ]
    return {"failures": rows, "more": max(0, len(failures.counts) - MOST_REASONS), "tables": shown(_cost_table(directory))}


def protocols_section(directory: Path) -> dict[str, Any]:
    """The same answers under every protocol of their data set."""
    answers = judge_run(directory, [ALL])
    placed = on_own_sets(answers)
    run = answers.columns()
    lines = [*answers.notes, *step_lines(placed), *agreement_lines(run)]
    return {"tables": shown(glance_table(run, placed)), "notes": [clean(line) for line in lines]}


def decisions_section(directory: Path) -> dict[str, Any]:
    """Diversity, stability and PASS@n of a rollout."""
    found: dict[str, Any] = offered("pages", "rollout")(directory)
    return found


def online_section(online: OnlineTrajectories) -> dict[str, Any]:
    """The metrics of an online run."""
    tables = shown(*online_tables([Run("value", online.metrics)]))
    return {"tables": tables, "notes": [clean(note) for note in online.run.notes]}


def online_failures(online: OnlineTrajectories) -> Failures:
    """Why repetitions of tasks have no outcome."""
    failures = Failures()
    for number, trajectory in enumerate(online):
        if trajectory.failure is not None:
            failures.add(trajectory.key, f"trajectories/#{number}", "infrastructure_failure", trajectory.failure)
    return failures


def _cost_table(directory: Path) -> Table | None:
    try:
        bill = RunFolder(directory).stored["cost"]
        rows = [(name.replace("_", " "), bill[name]) for name in ("answers", "prompt_tokens", "completion_tokens")]
        if not all(isinstance(value, int) for _, value in rows):
            return None
        if isinstance(bill.get("amount"), int | float) and isinstance(bill.get("price"), dict):
            price = bill["price"]
            rows.append(("cost", f"{bill['amount']:,.4f} {price.get('currency')}, prices of {price.get('as_of')}"))
            for name, own in bill.get("models", {}).items():
                rows.append((f"cost of {name}", f"{own['amount']:,.4f} {price.get('currency')}"))
    except (ValueError, KeyError, TypeError):
        return None
    return Table("Cost", columns("", "value"), tuple(rows), name="cost")


def run_head(first: Path, directory: Path) -> list[str]:
    """The run in ``directory``, in a line for each fact; ``first`` is the run itself, or the first of its rounds."""
    told = {**described(RunFolder(first).manifest, directory), "folder": str(directory)}
    return [clean(f"{title}: {told[name]}") for name, title in _FACTS.items() if told.get(name)]


class PageSection(NamedTuple):
    """A section of a run's page: how the run is read, under which name that is kept, and what it shows of it."""

    what: str
    read: Callable[[Path], Any]
    make: Callable[[Any, Path], dict[str, Any]]


class RunPart(NamedTuple):
    """What the page of a run, or of several to compare, has: its sections, and links to the pages below it by their folder."""

    sections: Mapping[str, PageSection]
    links: Mapping[str, str]
    together: bool = True
    """Whether one link shows several runs side by side."""
    compared: str | None = "patterns"
    """The section of a comparison that shows all runs at once; ``None`` if their metrics are not compared."""
    judged: bool = False
    """Whether a run is judged by its answers, so that it may have no stored metrics."""


STEPS = {"steps": "Steps", "protocols": "Steps under every protocol"}
RUN = RunPart(
    {
        "metrics": PageSection("judged", judged_run, lambda run, _: metrics_section(run)),
        "breakdowns": PageSection("judged", judged_run, lambda run, _: breakdowns_section(run)),
        "failures": PageSection("judged", judged_run, lambda run, directory: failures_section(run.failures, directory)),
        "protocols": PageSection("protocols", protocols_section, lambda made, _: made),  # takes seconds: asked for by a button
    },
    STEPS,
    judged=True,
)
ROLLOUTS = RunPart({"decisions": PageSection("decisions", decisions_section, lambda made, _: made)}, STEPS, compared=None)
ONLINE = RunPart(
    {
        "online": PageSection("online", read_online, lambda run, _: online_section(run)),
        "failures": PageSection(
            "online", read_online, lambda run, directory: failures_section(online_failures(run), directory)
        ),
    },
    {"trajectories": "Trajectories"},
    together=False,
    compared="online",
)
_PARTS: Mapping[Kind, RunPart] = {"steps": RUN, "tasks": ONLINE}


def part_of(directory: Path) -> RunPart:
    """The page of a run or a rollout."""
    return ROLLOUTS if is_rollout(directory) else RunFolder(directory).manifest.mode.of_kind(_PARTS)
