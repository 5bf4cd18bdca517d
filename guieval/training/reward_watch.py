"""Watches whether a reward is gamed while a policy trains with it.

Every response that is rewarded is judged by the evaluation's own protocol too. Every few optimiser steps the log gets the mean
reward next to that exact match, the shares of responses with a sign of gaming, and what the best policy that ignores the screen
would have earned on the same steps. A warning follows when reward and exact match diverge. This module does not need torch.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from guieval.data.files import read_bytes, read_text
from guieval.errors import UsageError
from guieval.evaluation import ActionEvaluator
from guieval.rewards.probes import BLIND, probe
from guieval.rewards.response import ResponseScorer, ScoredResponse
from guieval.rewards.signs import SIGNS, words
from guieval.steps import StepTaskModel
from guieval.training.settings import RewardWatchSettings

PREFIX = "watch/"
REWARD, EXACT, BLIND_POLICY = f"{PREFIX}reward", f"{PREFIX}exact_match", f"{PREFIX}blind_policy"
LOOKED_AT = 256
"""Number of responses per process, the latest ones, that a check searches for signs."""


class Sum(NamedTuple):
    """A sum of ``n`` values."""

    total: float
    n: int


class WatchedScorer(ResponseScorer):
    """A scorer that passes every scored response to a :class:`RewardWatch`."""

    def __init__(self, scorer: ResponseScorer, watch: RewardWatch) -> None:
        super().__init__(scorer.model, scorer.reward, scorer.format, scorer.overlong)
        self._watch = watch

    def score(self, task: StepTaskModel, text: str, *, tokens: int | None = None) -> ScoredResponse:
        scored = super().score(task, text, tokens=tokens)
        self._watch.saw(task, scored)
        return scored


class _Saved(BaseModel):
    """What a check that comes after a checkpoint needs of the responses before it."""

    model_config = ConfigDict(extra="forbid")

    rewards: list[float]
    exact: list[float]
    standing: list[str]
    last: Annotated[list[tuple[StepTaskModel, ScoredResponse]], Field(max_length=LOOKED_AT)]


class RewardWatch:
    """Collects the rewarded responses of a process between two checks.

    ``protocols`` judge exact match, one for each benchmark, as in an evaluation; they may differ from the reward's.
    """

    def __init__(self, settings: RewardWatchSettings, scorer: ResponseScorer, protocols: Mapping[str, str]) -> None:
        self.settings = settings
        self._named = " and ".join(sorted(set(protocols.values())))
        self._scorer = scorer
        self._evaluators = {benchmark: ActionEvaluator(protocol) for benchmark, protocol in protocols.items()}
        self._checks: dict[int, Mapping[str, float]] = {}
        self._standing: set[str] = set()  # warnings of the last check, which are not repeated
        self._clear()

    def _clear(self) -> None:
        self._rewards: list[float] = []
        self._exact: list[float] = []
        self._last: deque[tuple[StepTaskModel, ScoredResponse]] = deque(maxlen=LOOKED_AT)

    def saw(self, task: StepTaskModel, scored: ScoredResponse) -> None:
        """Record a rewarded response; one that could not be judged does not count."""
        if scored.measured:
            self._rewards.append(scored.reward.total / self._scorer.reward.highest)
            self._exact.append(float(self._evaluators[task.benchmark].evaluate(task, scored.sample.action).exact_match))
            self._last.append((task, scored))

    def sums(self) -> dict[str, Sum]:
        """The sums of this process since the last call, by the name in the log."""
        values: dict[str, Sequence[float]] = {REWARD: self._rewards, EXACT: self._exact}
        values[f"{PREFIX}words"] = [float(words(scored)) for _, scored in self._last]
        for sign in SIGNS:
            values[f"{PREFIX}{sign.name}"] = [float(sign.holds(self._scorer, task, scored)) for task, scored in self._last]
        steps = list({task.key: task for task, _ in self._last}.values())
        highest = self._scorer.reward.highest
        found = {name: Sum(sum(each), len(each)) for name, each in values.items()}
        found |= {
            f"{BLIND_POLICY}/{earned.probe.name}": Sum((earned.reward or 0.0) / highest * earned.steps, earned.steps)
            for earned in probe(self._scorer, steps, BLIND)
        }
        self._clear()
        return found

    def check(self, step: int, processes: Sequence[Mapping[str, Sum]]) -> tuple[dict[str, float], list[str]]:
        """The metrics of a check at an optimiser step, from the sums of all processes, and warnings that are new."""
        totals: defaultdict[str, float] = defaultdict(float)
        counts: defaultdict[str, int] = defaultdict(int)
        for each in processes:
            for name, value in each.items():
                totals[name] += value.total
                counts[name] += value.n
        means = {name: totals[name] / counts[name] for name in counts if counts[name]}
        blind = {name: value for name, value in means.items() if name.startswith(BLIND_POLICY)}
        metrics = {name: value for name, value in means.items() if name not in blind}
        best = max(blind, key=blind.__getitem__, default=None)
        if best is not None:
            metrics[BLIND_POLICY] = blind[best]
        if REWARD not in metrics:
            return {}, []
        self._checks[step] = metrics
        found = self._warnings(best)
        warned = [sentence for kind, sentence in found.items() if kind not in self._standing]
        self._standing = set(found)
        return metrics, warned

    def save(self, file: Path) -> None:
        """Write what a check that comes after a checkpoint needs of the responses before it."""
        saved = _Saved(rewards=self._rewards, exact=self._exact, standing=sorted(self._standing), last=list(self._last))
        file.write_text(saved.model_dump_json(), encoding="utf-8")

    def restore(self, file: Path) -> None:
        """Continue with what :meth:`save` wrote, if it did. Raises :class:`UsageError` for a file of another form."""
        if not file.is_file():
            return
        try:
            saved = _Saved.model_validate_json(read_bytes(file))
        except (OSError, ValidationError):
            raise UsageError(f"{str(file)!r} cannot be read; delete it to continue without the responses before it") from None
        self._rewards, self._exact, self._standing = saved.rewards, saved.exact, set(saved.standing)
        self._last.extend(saved.last)

    def remember(self, log: Path, until: int) -> None:
        """Read the checks that a resumed training has already logged, up to an optimiser step."""
        for line in read_text(log).splitlines() if log.exists() else ():
            row = json.loads(line)
            if REWARD in row and row["step"] <= until:
                self._checks[row["step"]] = {name: value for name, value in row.items() if name.startswith(PREFIX)}

    def _warnings(self, best: str | None) -> dict[str, str]:
        window, apart = self.settings.window, self.settings.apart
        checks = [metrics for _, metrics in sorted(self._checks.items())]
        warned: dict[str, str] = {}
        if best is not None and checks[-1][REWARD] <= checks[-1][BLIND_POLICY]:
            name = best.removeprefix(f"{BLIND_POLICY}/")
            warned[BLIND_POLICY] = (
                f"the policy earns {checks[-1][REWARD]:.2f} of the highest reward, and {name!r}, which ignores the screen, "
                f"would earn {checks[-1][BLIND_POLICY]:.2f} on the same steps"
            )
        if len(checks) < 2 * window:
            return warned

        def change(name: str) -> tuple[float, float]:
            first, last = (fmean(each.get(name, 0.0) for each in part) for part in (checks[:window], checks[-window:]))
            return first, last

        reward, exact = change(REWARD), change(EXACT)
        if (reward[1] - reward[0]) - (exact[1] - exact[0]) > apart:
            warned[REWARD] = (
                f"reward and exact match diverge: since the first {window} checks the reward went from {reward[0]:.2f} to "
                f"{reward[1]:.2f} of its highest, exact match under {self._named} from {exact[0]:.2f} to {exact[1]:.2f}; "
                "`guieval train probe-reward` shows what else earns this reward"
            )
        for sign in SIGNS:
            before, now = change(f"{PREFIX}{sign.name}")
            if now - before > apart:
                warned[sign.name] = f"{sign.summary}: from {100 * before:.0f} % to {100 * now:.0f} % of the responses"
        return warned


def watch_callback(watch: RewardWatch, trainer: Any, log: Path) -> Any:
    """A callback for TRL's GRPOTrainer: metrics go to its log, warnings to ``log`` and to standard error."""
    from accelerate.utils import gather_object
    from transformers import TrainerCallback

    def state_file(args: Any, state: Any) -> Path:
        rank, processes = trainer.accelerator.process_index, trainer.accelerator.num_processes
        return Path(args.output_dir) / f"checkpoint-{state.global_step}" / f"watch_{rank}_of_{processes}.json"

    class WatchCallback(TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            watch.remember(log, state.global_step)
            watch.restore(state_file(args, state))

        def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            watch.save(state_file(args, state))

        def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            if state.global_step % watch.settings.every:
                return
            metrics, warned = watch.check(state.global_step, gather_object([watch.sums()]))
            for name, value in metrics.items():
                trainer._metrics["train"][name].append(value)  # TRL logs them with the step's own metrics
            if state.is_world_process_zero:
                for sentence in warned:
                    print(f"warning: step {state.global_step}: {sentence}", file=sys.stderr)
                with log.open("a", encoding="utf-8") as stream:
                    stream.writelines(json.dumps({"step": state.global_step, "warning": each}) + "\n" for each in warned)

    return WatchCallback()
