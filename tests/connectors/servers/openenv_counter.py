"""A small environment on a server of the package openenv, which must be installed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from openenv.core.env_server import Action, Environment, Observation, State, create_fastapi_app

from tests.waiting import PATIENCE, until


class CounterAction(Action):  # type: ignore[misc]  # the package may be missing
    type: str
    point: list[float] | None = None
    duration: float | None = None
    status: str | None = None


class CounterObservation(Observation):  # type: ignore[misc]
    goal: str
    screenshot: list[list[list[int]]]


class CounterEnvironment(Environment):  # type: ignore[misc]
    """Two clicks are a success."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._clicks, self._seed = 0, 0

    def reset(self, seed: int | None = None, episode_id: str | None = None, **_: Any) -> CounterObservation:
        self._clicks, self._seed = 0, seed or 0
        return self._seen(None)

    def step(self, action: CounterAction, timeout_s: float | None = None, **_: Any) -> CounterObservation:
        self._clicks += action.type == "CLICK"
        return self._seen(float(self._clicks == 2))

    def _seen(self, reward: float | None) -> CounterObservation:
        pixels = [[[50 * self._clicks, 0, 255]] * 4] * 3
        goal = f"Click twice (seed {self._seed})"
        return CounterObservation(goal=goal, screenshot=pixels, reward=reward, done=self._clicks >= 2)

    @property
    def state(self) -> State:
        return State(step_count=self._clicks)


@contextmanager
def running() -> Iterator[str]:
    """The address of the server."""
    app = create_fastapi_app(CounterEnvironment, CounterAction, CounterObservation, max_concurrent_envs=4)
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    until(lambda: server.started, "OpenEnv's server")
    try:
        yield f"ws://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        listener.close()
