"""Reports of runs besides their metrics: progress, cost, and trackers such as W&B."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from guieval.errors import UsageError
from guieval.journal import METRICS
from guieval.metrics import Summary
from guieval.models import ModelConfig
from guieval.models.composition import Composition, checkpoints
from guieval.running.costs import (
    AnyPrice,
    CostLimit,
    Price,
    RunCost,
    Tokens,
    amount,
    bill,
    find_prices,
    price_of_all,
    read_prices,
)
from guieval.running.engine_choice import HOSTED, asks_a_model
from guieval.running.outcome import RunOutcome
from guieval.running.progress.counts import RunProgress
from guieval.running.progress.display import Cost, Display, RunDisplay
from guieval.running.progress.view import ProgressView, ProgressWatch
from guieval.running.resolved import ResolvedRun
from guieval.running.resume.identity import manifest_of
from guieval.running.tracking import Trackers, check_tracking, final_metrics
from guieval.scoring.score import store_summary
from guieval.secrets import Redaction
from guieval.settings import key_variables
from guieval.steps import VERDICTS


class Callbacks(NamedTuple):
    """What a runner calls after each step: to show progress, and to hear why it is to stop, if it is."""

    on_progress: Callable[[RunProgress], None]
    halt: Callable[[RunProgress], str | None]


class Telemetry:
    """Reports on ``runs`` that are done one after the other.

    Without ``tracked``, trackers do not follow them. Raises :class:`UsageError` for an unknown or missing tracker, a damaged
    price file, and a budget without a price.
    """

    def __init__(self, runs: Sequence[ResolvedRun], display: Display, *, tracked: bool = True) -> None:
        self._display = display
        self._runs = list(runs)
        self._tracked = tracked
        self._budget: CostLimit | None = None
        self._tracking: Trackers | None = None
        self._shown: RunDisplay | None = None
        self._warnings: list[str] = []
        for run in runs:
            check_tracking(run.config.tracking)
            limit, price = run.config.tracking.budget, price_of(run)
            if limit is None:
                continue
            if price is None:
                raise UsageError(_priceless(run))
            self._budget = self._budget or CostLimit(limit, price)

    @contextmanager
    def following(self, run: ResolvedRun, directory: Path) -> Iterator[Callbacks]:
        """Show the run as it goes, keep the budget, and report to the trackers; :meth:`close` reports the end."""
        config = run.config
        title = f"{config.model.name} on {config.data.bench}, {config.history.mode}{self._number(run)}"
        self._warnings = []
        with self._display.following(title, self._cost(run)) as shown:
            self._shown = shown
            if config.tracking.track and self._tracked:
                self._tracking = Trackers(
                    config.tracking.model_copy(update={"name": self._name(run)}),
                    directory,
                    _facts(run),
                    redaction=Redaction.of_variables(*key_variables(config)),
                    warn=self._warn,
                )
            try:
                yield Callbacks(self._seen(shown), self._halt(run))
            except BaseException:
                if self._tracking is not None:
                    self._tracking.finish({}, {"directory": str(directory.resolve())}, failed=True)
                    self._tracking = None
                raise
            finally:
                self._shown = None

    def close(self, outcome: RunOutcome) -> tuple[Summary, RunCost | None, list[str]]:
        """Store an ended run's summary and cost, report to the trackers, and return both with remarks on the trackers."""
        run, directory = outcome.run, outcome.directory
        spent = RunCost(outcome.progress.tokens, price_of(run)) if asks_a_model(run.config, run.model.config) else None
        cost = None if spent is None else bill(*spent)
        if self._budget is not None:
            self._budget.close(outcome.progress.tokens)
        # a session that had nothing to ask does not take the place of the last one that did
        servers = [server.to_json() for server in outcome.endpoints] if any(each.requests for each in outcome.endpoints) else []
        try:
            summary = outcome.summary(intervals=True, users=True)
        except UsageError as error:  # a metric of a package, which must not cost the run its own
            self._warn(str(error))
            summary = outcome.summary(intervals=True)
        store_summary(directory, summary, cost=cost, servers=servers)
        if self._tracking is not None:
            metrics = final_metrics(summary.model_dump(mode="json"))
            if cost is not None and cost["amount"] is not None:
                metrics["cost"] = cost["amount"]
            report = {"directory": str(directory.resolve()), "report": str((directory / METRICS).resolve())}
            self._tracking.finish(metrics, report, failed=not summary.complete)
            self._tracking = None
        return summary, spent, [f"warning:  {run.config.history.mode}: {warning}" for warning in self._warnings]

    def _seen(self, shown: RunDisplay) -> Callable[[RunProgress], None]:
        watch = ProgressWatch("")

        def see(progress: RunProgress) -> None:
            shown.update(progress)
            if self._tracking is not None:
                self._tracking.live(lambda: live_metrics(watch.look(progress, time.monotonic())), progress.done)

        return see

    def _halt(self, run: ResolvedRun) -> Callable[[RunProgress], str | None]:
        budget = self._budget
        if budget is None:
            return lambda progress: None
        return lambda progress: budget.reached(progress.tokens, progress.ahead(run.config.sampling.samples))

    def _number(self, run: ResolvedRun) -> str:
        place = next((number for number, other in enumerate(self._runs, 1) if other is run), None)
        return f" ({place} of {len(self._runs)})" if place is not None and len(self._runs) > 1 else ""

    def _warn(self, text: str) -> None:
        self._warnings.append(text)
        if self._shown is not None:
            self._shown.warn(text)

    def _name(self, run: ResolvedRun) -> str:
        config = run.config
        given = config.tracking.name
        if given is None:
            return f"{config.model.name}-{config.data.bench}-{config.history.mode}"
        return f"{given}-{config.history.mode}" if len(self._runs) > 1 else str(given)

    def _cost(self, run: ResolvedRun) -> Cost:
        price, budget = price_of(run), self._budget

        def cost(tokens: Tokens) -> str | None:
            if price is None:
                return None
            value = price.cost(tokens) if budget is None else budget.spent(tokens)
            if value is None:
                return None
            return amount(value, price.currency) + (f" of {amount(budget.limit, price.currency)}" if budget else "")

        return cost


def live_metrics(view: ProgressView) -> dict[str, float]:
    """The metrics that trackers get during a run: counts, and exact match of the done steps, or success of the judged tasks."""
    metrics: dict[str, float] = {
        f"{view.progress.units}_done": view.progress.done,
        f"{view.progress.units}_total": view.progress.total,
        "prompt_tokens": view.progress.tokens.prompt,
        "completion_tokens": view.progress.tokens.completion,
        **{name: view.progress.verdicts[name] for name in VERDICTS},
    }
    if view.recent is not None:
        metrics[f"{view.progress.units}_per_second"] = view.recent
    if view.progress.judged:
        metrics[view.progress.measure.replace(" ", "_")] = view.progress.exact / view.progress.judged
    return metrics


def _names(run: ResolvedRun) -> dict[str, list[str]]:
    """For the model, or each one of a composition, the names that it may have a price under."""

    def of(config: ModelConfig, served: str | None) -> tuple[str, list[str]]:
        own = checkpoints(config.name)[0]
        return own, [served] if served else [name for name in (config.served_as, config.hf_id, own) if name]

    server, model = run.config.server, run.model
    grounder = model.grounder.config if isinstance(model, Composition) and model.grounder is not None else None
    others = [] if grounder is None or grounder.engine == "local" else [of(grounder, server.grounder_served_model)]
    return dict([of(model.config, server.served_model), *others])


def _prices(run: ResolvedRun) -> dict[str, Price | None]:
    file = run.config.tracking.prices
    return find_prices(read_prices(Path(file) if file else None), _names(run))


def _priceless(run: ResolvedRun) -> str:
    """Why a run has no price, in a sentence."""
    found, names = _prices(run), _names(run)
    for model, price in found.items():
        if price is None:
            return f"a budget needs the price of {names[model][0]!r}, and none is known; give it with --prices FILE"
    each = " and ".join(f"{model!r} is in {price.currency}" for model, price in found.items() if price is not None)
    return f"a budget needs prices in one currency, but that of {each}; give others with --prices FILE"


def price_of(run: ResolvedRun) -> AnyPrice | None:
    """The price of the model, or of each one of a composition, if a service with a price is queried."""
    if run.config.server.engine not in ("auto", "openai", *HOSTED) or not asks_a_model(run.config, run.model.config):
        return None
    return price_of_all(_prices(run))


def _facts(run: ResolvedRun) -> dict[str, Any]:
    manifest = manifest_of(run)
    names = ("guieval", "options", "rules", "benchmark", "protocol", "prompts", "selection")
    return {"config": run.config.flat(), **{name: manifest[name] for name in names}}
