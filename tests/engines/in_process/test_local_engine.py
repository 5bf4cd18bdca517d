"""The local engine keeps the loop free and turns whatever an agent raises into an error of that step."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from guieval.engines.in_process.agent import LocalEngine
from guieval.errors import EngineError, FatalEngineError, UsageError
from guieval.models import ModelConfig, Request
from tests.engines.asking import ask, ask_all, make_request
from tests.rows import every_row
from tests.scripted import ScriptedModel


class Agent(ScriptedModel):
    def __init__(self, respond: Callable[[Request], Any] | None) -> None:
        super().__init__(ModelConfig(name="agent", adapter="agent", engine="local"))
        self._respond = respond

    def respond(self, request: Request) -> str:
        if self._respond is None:
            return super().respond(request)
        answer: str = self._respond(request)
        return answer


def test_the_agent_answers_with_the_request_it_got() -> None:
    reply = ask(LocalEngine(Agent(lambda request: f"saw {request.input.text}")), make_request("hello"))
    assert reply.text == "saw You are an agent.\nhello"


class OddError(Exception):
    pass


@every_row("error", [OddError("lost"), KeyError("x"), StopIteration(3), MemoryError("m")])
def test_what_the_agent_raises_is_named(error: Exception) -> None:
    def respond(request: Request) -> str:
        raise error

    with pytest.raises(EngineError, match=type(error).__name__) as caught:
        ask(LocalEngine(Agent(respond)), make_request())
    assert str(error) in str(caught.value)
    assert not isinstance(caught.value, FatalEngineError)


def test_what_cannot_answer_is_reported() -> None:
    with pytest.raises(FatalEngineError, match="cannot answer by itself"):
        ask(LocalEngine(Agent(None)), make_request())
    with pytest.raises(EngineError, match="answered with NoneType"):
        ask(LocalEngine(Agent(lambda request: None)), make_request())
    with pytest.raises(UsageError, match="not 0"):
        LocalEngine(Agent(None), workers=0)


def test_agents_block_each_other_only_beyond_the_pool() -> None:
    """Two workers meet at a barrier, which only works when both run at once and the loop is free to start the second."""
    barrier = threading.Barrier(2, timeout=30)
    running: list[int] = []
    most = 0
    lock = threading.Lock()

    def respond(request: Request) -> str:
        nonlocal most
        with lock:
            running.append(1)
            most = max(most, len(running))
        barrier.wait()
        with lock:
            running.pop()
        return "met"

    replies = ask_all(LocalEngine(Agent(respond), workers=2), *(make_request() for _ in range(6)))
    assert [reply.text for reply in replies] == ["met"] * 6
    assert most == 2
