"""Engine transformers: in a batch of mixed lengths and screenshots, a request gets the response that it gets alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from guieval.data.screenshots import read_screenshot
from guieval.engines import request_id
from guieval.engines.in_process import transformers as engine_module
from guieval.engines.in_process.batches import PromptRow, padded
from guieval.engines.in_process.checkpoint import Checkpoint
from guieval.engines.in_process.transformers import TransformersModel, transformers_engine
from guieval.errors import EngineError
from guieval.history import reference_history
from guieval.models import Request, Response
from guieval.registry import load_benchmark, load_model
from tests.vllm.tiny_model import write_tiny_model

MODEL = load_model("ui-tars-7b-sft")  # shows up to five screenshots, and its prompt is short
GREEDY = {"temperature": 0.0, "max_tokens": 12}


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Qwen2.5-VL, whose vision tower has windows."""
    folder = tmp_path_factory.mktemp("tiny")
    write_tiny_model(folder)
    return folder


@pytest.fixture(scope="module")
def requests(tmp_path_factory: pytest.TempPathFactory) -> list[Request]:
    """Steps with one to three screenshots of two sizes."""
    made = []
    for width, height in ((360, 576), (400, 900)):
        folder = tmp_path_factory.mktemp("demo")
        benchmark = load_benchmark("demo", folder, episodes=1, seed=4, width=width, height=height)
        (steps,) = (episode.steps for episode in benchmark)
        for number, task in enumerate(steps[:3]):
            prepared = MODEL.prepare_input(task, reference_history(steps[:number]))
            shown = [(image.task, image.resize) for image in prepared.images]
            images = [read_screenshot(folder, each.screenshot, each.screenshot_size, resize) for each, resize in shown]
            made.append(Request(prepared, tuple(images), GREEDY, request_id(task.key, 0), task))
    return made


def answered(weights: Path, requests: Sequence[Request], **how: Any) -> list[Response | BaseException]:
    async def main() -> list[Response | BaseException]:
        engine = transformers_engine(Checkpoint(MODEL.config, path=str(weights), arguments={"dtype": "float32"}, **how))
        try:
            return await asyncio.gather(*map(engine.generate, requests), return_exceptions=True)
        finally:
            await engine.close()

    return asyncio.run(main())


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The lengths of the prompts of each batch, in the order of batches."""
    computed: list[list[int]] = []
    original = TransformersModel._replies

    def replies(self: TransformersModel, rows: Sequence[PromptRow]) -> list[Response]:
        computed.append([row.length for row in rows])
        return original(self, rows)

    monkeypatch.setattr(TransformersModel, "_replies", replies)
    monkeypatch.setattr(engine_module, "_PAUSE", 0.3)  # so that all requests are there, however busy the machine is
    return computed


@pytest.fixture(scope="module")
def alone(weights: Path, requests: list[Request]) -> list[Response | BaseException]:
    return answered(weights, requests, batch_size=1)


@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_batches_by_length_change_no_response_and_need_no_deprecated_argument(
    weights: Path, requests: list[Request], alone: list[Any], batches: list[list[int]], cache: str, caplog: Any
) -> None:
    from transformers.utils import logging as of_transformers

    logger = logging.getLogger("transformers.generation")
    of_transformers.warning_once.cache_clear()
    logger.addHandler(caplog.handler)
    stop = {**GREEDY, "stop": [alone[0].text[2:4]]}
    stopping = [replace(each, sampling=stop) for each in requests[:2]]
    try:
        found = answered(weights, [*requests, *stopping], batch_size=3, cache=cache)
    finally:
        logger.removeHandler(caplog.handler)
    assert [record.getMessage() for record in caplog.records] == []
    assert found[:6] == alone and len({each.text for each in alone}) == 6
    lengths = [each.usage.prompt_tokens for each in alone]
    assert batches[0] == sorted(lengths, key=lambda length: abs(length - lengths[0]))[:3] and len(set(lengths)) > 3
    assert list(map(len, batches)) == [3, 3, 2]
    assert found[6:] == answered(weights, stopping, batch_size=1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="about machines without a GPU")
def test_a_cpu_computes_one_request_at_a_time_unless_asked_for_more(
    weights: Path, requests: list[Request], batches: list[list[int]]
) -> None:
    """Batches cost a CPU a quarter of its rate (docs/engines.md)."""
    answered(weights, requests[:3])
    assert list(map(len, batches)) == [1, 1, 1]


def test_a_batch_that_fails_is_halved_and_only_its_cause_fails(
    weights: Path, requests: list[Request], alone: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory for two rows, and a row that never works; else a larger batch would fail more steps than a batch of one."""
    odd, original = alone[1].usage.prompt_tokens, TransformersModel._replies

    def replies(self: TransformersModel, rows: Sequence[PromptRow]) -> list[Response]:
        if len(rows) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        if odd in [row.length for row in rows]:
            raise RuntimeError("odd")
        return original(self, rows)

    monkeypatch.setattr(TransformersModel, "_replies", replies)
    found = answered(weights, requests, batch_size=8)
    assert isinstance(found[1], EngineError) and "RuntimeError: odd" in str(found[1])
    assert [found[0], *found[2:]] == [alone[0], *alone[2:]]


def test_the_seconds_of_a_response_are_those_of_its_batch(
    weights: Path, requests: list[Request], batches: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch takes 10 seconds of this clock; the last of three has waited for 20."""
    clock = [0.0]

    def slow(rows: Sequence[PromptRow], pad: int) -> Any:
        clock[0] += 10
        return padded(rows, pad)

    monkeypatch.setattr(engine_module, "padded", slow)
    monkeypatch.setattr(engine_module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    found = answered(weights, requests, batch_size=2)
    assert [each.seconds for each in found if isinstance(each, Response)] == [10.0] * 6 and len(batches) == 3
