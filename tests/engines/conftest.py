"""Builders of requests, shared by the tests of all engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from guieval.actions import Click, Point
from guieval.data.screenshots import Screenshot
from guieval.engines import request_id
from guieval.models import ImageRef, Message, ModelInput, Part, Request
from guieval.steps import StepTaskModel

MakeTask = Callable[..., StepTaskModel]
MakeRequest = Callable[..., Request]


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def make_task() -> MakeTask:
    def make(episode: str = "e0", step: int = 0, **changes: Any) -> StepTaskModel:
        fields: dict[str, Any] = {
            "benchmark": "bench",
            "dataset": "data",
            "subset": "sub",
            "episode_id": episode,
            "step_index": step,
            "episode_length": max(10, step + 1),
            "instruction": "open the settings",
            "screenshot": "shot.png",
            "screenshot_size": (1080, 2400),
            "action": Click(point=Point(100.0, 200.0)),
        }
        return StepTaskModel.model_validate({**fields, **changes})

    return make


@pytest.fixture
def make_request(make_task: MakeTask) -> MakeRequest:
    def make(
        *texts: str,
        images: Sequence[Screenshot] = (),
        sample: int = 0,
        name: str | None = None,
        sampling: dict[str, Any] | None = None,
        extra: dict[str, Any] | None = None,
        prefill: str | None = None,
        task: StepTaskModel | None = None,
    ) -> Request:
        task = task or make_task()
        parts: tuple[Part, ...] = (*texts, *(ImageRef(task) for _ in images))
        messages = [Message("system", ("You are an agent.",)), Message("user", parts)]
        if prefill is not None:
            messages.append(Message("assistant", (prefill,)))
        return Request(
            ModelInput(tuple(messages), prefill=prefill is not None, extra=extra or {}),
            tuple(images),
            sampling or {},
            name if name is not None else request_id(task.key, sample),
            task,
        )

    return make
