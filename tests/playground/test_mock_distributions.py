"""The mock server's policy ``distribution``: what is drawn, from what, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

from guieval.actions import Action, Click
from guieval.engines import request_id
from guieval.errors import UsageError
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark, load_model
from guieval.steps import StepTaskModel
from tests.rows import every_row
from tests.waiting import PATIENCE

MODEL = "agentcpm-gui-8b"


@pytest.fixture(scope="module")
def task() -> StepTaskModel:
    return next(step for step in load_benchmark("demo").episode(0).steps if isinstance(step.action, Click))


def settings(folder: Path, *lines: dict[str, Any]) -> MockSettings:
    script = folder / "draws.jsonl"
    script.write_text("\n".join(map(json.dumps, lines)))
    return MockSettings(policy="distribution", script=script, model=MODEL, benchmark="demo")


def asked(server: MockServer, task: StepTaskModel, count: int, *, seed: int | None = None) -> list[Action | None]:
    model = load_model(MODEL)
    found: list[Action | None] = []
    with httpx.Client(timeout=PATIENCE) as client:
        for number in range(count):
            body = {"model": "mock", "messages": [], **({} if seed is None else {"seed": seed + number})}
            headers = {"X-Request-Id": request_id(task.key, number)}
            reply = client.post(f"{server.base_url}/chat/completions", json=body, headers=headers).raise_for_status().json()
            try:
                found.append(model.parse_response(task, reply["choices"][0]["message"]["content"]).action)
            except Exception:
                found.append(None)
    return found


def test_answers_are_drawn_as_stated_and_by_the_seed_of_each_request(tmp_path: Path, task: StepTaskModel) -> None:
    draws: list[dict[str, Any]] = [{"weight": 3, "action": "reference", "spread": 5}]
    draws += [{"weight": 1, "action": {"type": "WAIT"}}, {"weight": 1, "action": None}]
    with MockServer(settings(tmp_path, {"key": "*", "draws": draws})) as server:
        first, again, other = (asked(server, task, 200, seed=seed) for seed in (1, 1, 10_000))
    assert first == again and first != other
    kinds = Counter("none" if each is None else each.type for each in [*first, *other])
    assert kinds.keys() == {"CLICK", "WAIT", "none"}
    assert abs(kinds["CLICK"] / 400 - 0.6) < 0.1 and abs(kinds["WAIT"] / 400 - 0.2) < 0.08
    xs = [each.point.x - task.action.point.x for each in first if isinstance(each, Click)]  # type: ignore[union-attr]
    assert 3 < (sum(x * x for x in xs) / len(xs)) ** 0.5 < 7


def test_a_step_has_its_own_distribution_or_the_one_of_every_other(tmp_path: Path, task: StepTaskModel) -> None:
    own = {"key": str(task.key), "draws": [{"weight": 1, "action": {"type": "PRESS", "button": "BACK"}}]}
    rest = {"key": "*", "draws": [{"weight": 1, "action": "wrong"}]}
    with MockServer(settings(tmp_path, own, rest)) as server:
        (action,) = asked(server, task, 1)
        assert action is not None and action.type == "PRESS"
    with MockServer(settings(tmp_path, rest)) as server:
        assert asked(server, task, 1) != [task.action]


@every_row(
    ("draws", "sentence"),
    [
        ([], "line 1, field draws"),
        ([{"weight": 0, "action": None}], r"field draws\.0\.weight"),
        ([{"weight": 1, "action": "right"}], r"field draws\.0\.action"),
    ],
)
def test_a_file_that_states_no_distribution_is_refused(tmp_path: Path, draws: list[Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        MockServer(settings(tmp_path, {"key": "*", "draws": draws})).start()
