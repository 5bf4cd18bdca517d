from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class ExecutionResult:
    steps: int
    trace: list[dict[str, Any]]
    runtime_s: float
    finished: bool
    truncated: bool
    stop_reason: str | None = None
    agent_message: str | None = None
    agent_answer: str | None = None


@dataclass
class JudgeResult:
    success: bool
    clean: bool
    progress: float
    issues: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[dict[str, Any]] = field(default_factory=list)
    judge_error: str | None = None

    @property
    def passed(self) -> bool:
        return self.success and self.clean


class Controller:
    @staticmethod
    async def setup(env: Any, task: Any) -> tuple[Any, dict[str, Any]]:
        return await task.setup(env), {}


class Evaluator:
    async def evaluate(self, task: Any, init_obs: Any, last_obs: Any, exec_result: ExecutionResult) -> JudgeResult:
        saves, likes = (last_obs.state[name] - init_obs.state[name] for name in ("saves", "likes"))
        check = {"field": "saves", "expected": task.times, "actual": saves, "passed": saves == task.times}
        changes = [{"field": "apps.notes.likes", "before": 0, "after": likes}] if likes else []
        error = "no state" if exec_result.agent_answer == "break" else None
        return JudgeResult(saves == task.times, not likes, min(1.0, saves / task.times), [check], changes, error)
