"""What ``guieval run`` tells beside the figures: where its runs stand, what they cost, and other programs that want to know."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guieval.cli.progress import Dashboard, View, Watch
from guieval.errors import UsageError

if TYPE_CHECKING:
    from guieval.metrics import RunSummary
    from guieval.runner import Progress, Run, RunOutcome
    from guieval.telemetry.costs import Price, Tokens
    from guieval.telemetry.tracking import Tracking


class Telemetry:
    """The telling of one command's runs, one after the other.

    Raises :class:`UsageError` for an unknown or missing tracker, a damaged price file, and a budget without a price.
    """

    def __init__(self, runs: Sequence[Run], *, quiet: bool) -> None:
        from guieval.telemetry.costs import Budget
        from guieval.telemetry.tracking import check_tracking

        self._quiet = quiet
        self._runs = list(runs)
        self._prices = {id(run): _price(run) for run in runs}
        self._budget: Budget | None = None
        self._tracking: Tracking | None = None
        self._dashboard: Dashboard | None = None
        self._warnings: list[str] = []
        for run in runs:
            check_tracking(run.config.track, run.config.tracking)
            limit, price = run.config.budget, self._prices[id(run)]
            if limit is None:
                continue
            if price is None:
                raise UsageError(
                    f"a budget needs the price of {_names(run)[0]!r}, and none is known; give it with --prices FILE"
                )
            self._budget = self._budget or Budget(limit, price)

    @contextmanager
    def following(self, run: Run) -> Iterator[None]:
        """Show the run as it goes, keep the budget, and tell the trackers; they are to hear of its end by :meth:`close`."""
        from guieval.telemetry.tracking import Tracking

        config = run.config
        number = f" ({self._runs.index(run) + 1} of {len(self._runs)})" if len(self._runs) > 1 else ""
        self._warnings = []
        with Dashboard(
            f"{config.model} on {config.bench}, {config.mode}{number}", quiet=self._quiet, cost=self._cost(run)
        ) as board:
            self._dashboard = board
            if config.track:
                self._tracking = Tracking(
                    config.track,
                    {**config.tracking, "name": self._name(run)},
                    run.directory,
                    _facts(run),
                    secrets=[os.environ.get(name, "").strip() for name in (config.api_key_env, config.patch_api_key_env)],
                    warn=self._warn,
                )
            watch = Watch("")

            def see(progress: Progress) -> None:
                board.update(progress)
                if self._tracking is not None:
                    self._tracking.live(lambda: live_figures(watch.look(progress, time.monotonic())), progress.done)

            run.on_progress = see
            budget = self._budget
            if budget is not None:
                run.halt = lambda progress: budget.reached(progress.tokens, progress.in_flight * run.config.samples)
            try:
                yield
            except BaseException:
                if self._tracking is not None:
                    self._tracking.finish({}, {"directory": str(run.directory.resolve())}, failed=True)
                    self._tracking = None
                raise
            finally:
                self._dashboard = None

    def close(self, run: Run, outcome: RunOutcome) -> tuple[RunSummary, list[str]]:
        """Store an ended run's summary and cost, tell the trackers, and say what is to be said of both at the end."""
        from guieval.journal import METRICS
        from guieval.scoring import store_summary
        from guieval.telemetry.costs import bill, describe
        from guieval.telemetry.tracking import final_figures

        cost = bill(outcome.tokens, self._prices[id(run)]) if _asks(run) else None
        if self._budget is not None:
            self._budget.close(outcome.tokens)
        summary = store_summary(
            outcome.directory,
            outcome.tally,
            outcome.plan,
            cost=cost,
            servers=[server.to_json() for server in outcome.endpoints],
        )
        if self._tracking is not None:
            figures = final_figures(summary.model_dump(mode="json"))
            if cost is not None and cost["amount"] is not None:
                figures["cost"] = cost["amount"]
            report = {"directory": str(run.directory.resolve()), "report": str((run.directory / METRICS).resolve())}
            self._tracking.finish(figures, report, failed=not summary.complete)
            self._tracking = None
        said = None if cost is None else describe(cost)
        label = "tokens:  " if cost is None or cost["price"] is None else "cost:    "
        notes = [] if said is None else [f"{label} {run.config.mode}: {said}"]
        return summary, notes + [f"warning:  {run.config.mode}: {text}" for text in self._warnings]

    def _warn(self, text: str) -> None:
        self._warnings.append(text)
        if self._dashboard is not None:
            self._dashboard.warn(text)

    def _name(self, run: Run) -> str:
        config = run.config
        given = config.tracking.get("name")
        if given is None:
            return f"{config.model}-{config.bench}-{config.mode}"
        return f"{given}-{config.mode}" if len(self._runs) > 1 else str(given)

    def _cost(self, run: Run) -> Any:
        """What tells the dashboard what tokens cost, in words."""
        from guieval.telemetry.costs import amount

        price, budget = self._prices[id(run)], self._budget

        def said(tokens: Tokens) -> str | None:
            if price is None:
                return None
            value = price.cost(tokens) if budget is None else budget.spent(tokens)
            if value is None:
                return None
            return amount(value, price.currency) + (f" of {amount(budget.limit, price.currency)}" if budget else "")

        return said


def live_figures(view: View) -> dict[str, float]:
    """What trackers are told of a run as it goes: counts, and exact match as a fraction of the done steps."""
    figures: dict[str, float] = {
        "steps_done": view.done,
        "steps_total": view.total,
        "prompt_tokens": view.tokens_in,
        "completion_tokens": view.tokens_out,
        **view.verdicts,
    }
    if view.recent is not None:
        figures["steps_per_second"] = view.recent
    if view.done:
        figures["exact_match"] = view.exact / view.done
    return figures


def _asks(run: Run) -> bool:
    """Whether a model is asked, so that there are tokens to count: not in a replay, nor where an agent answers by itself."""
    kind = run.model.config.engine if run.config.engine == "auto" else run.config.engine
    return kind not in ("local", "replay")


def _names(run: Run) -> list[str]:
    """By which names the model may be priced, the one that is surely asked first."""
    config = run.model.config
    return [run.config.served_model] if run.config.served_model else [name for name in (config.hf_id, config.name) if name]


def _price(run: Run) -> Price | None:
    from guieval.telemetry.costs import find_price, read_prices

    if run.config.engine not in ("auto", "openai") or not _asks(run):
        return None
    return find_price(read_prices(Path(run.config.prices) if run.config.prices else None), _names(run))


def _facts(run: Run) -> dict[str, Any]:
    """What a tracker is told of a run: what its manifest says of it, but for the machine."""
    manifest = run.manifest()
    return {name: manifest[name] for name in ("guieval", "config", "benchmark", "protocol", "prompts", "selection")}
