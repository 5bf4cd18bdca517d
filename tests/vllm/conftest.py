"""What the tests with real vLLM share: a tiny model, drawn screens, a running server, requests, and one way to ask engines."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pytest

from guieval.data.benchmark import ABCBenchmark
from guieval.data.screenshots import read_screenshot
from guieval.engines import request_id
from guieval.engines.in_process.checkpoint import Checkpoint
from guieval.engines.vllm.command import VLLMSettings
from guieval.engines.vllm.server import VLLMServer
from guieval.history import reference_history
from guieval.models import ABCModel, Engine, ModelInput, Request, Response
from guieval.registry import load_benchmark, load_model
from guieval.steps import Episode

collect_ignore_glob = [] if importlib.util.find_spec("vllm") else ["test_*.py"]
"""Without vLLM there is nothing to test here: `make test-vllm` has it."""

MODEL = "ui-tars-7b-sft"
"""Shows up to five screenshots, and its prompt is short."""
OPTIONS = {"episodes": 2, "seed": 4, "width": 360, "height": 576}
ARGUMENTS: dict[str, Any] = {
    "dtype": "float32",  # a tiny random model's answers do not survive rounding
    "max-model-len": 8192,
    "enforce-eager": True,
    "gpu-memory-utilization": 0.2,  # of the machine's memory; a server and a model in this process run at once
    "limit-mm-per-prompt": {"image": 5, "video": 0},
}

MakeRequest: TypeAlias = Callable[..., Request]


@pytest.fixture(scope="session", autouse=True)
def _settings_of_vllm() -> None:
    """For this process and all those it starts."""
    os.environ.update(VLLM_CPU_KVCACHE_SPACE="1", HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1")
    os.environ["TORCHDYNAMO_DISABLE"] = "1"  # compiling takes longer than all that is computed here


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny random Qwen2.5-VL."""
    folder = tmp_path_factory.mktemp("tiny")
    script = Path(__file__).with_name("tiny_model.py")
    # in a process of its own: vLLM forks, which a process that has computed with torch should not do
    subprocess.run([sys.executable, str(script), str(folder)], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="session")
def screens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which every screen of the demo benchmark is drawn."""
    folder = tmp_path_factory.mktemp("demo")
    for _ in load_benchmark("demo", folder, **OPTIONS):
        pass
    return folder


@pytest.fixture(scope="session")
def benchmark(screens: Path) -> ABCBenchmark:
    return load_benchmark("demo", screens, **OPTIONS)


@pytest.fixture(scope="session")
def model() -> ABCModel:
    return load_model(MODEL)


@pytest.fixture(scope="session")
def checkpoint(model: ABCModel, tiny: Path) -> Checkpoint:
    return Checkpoint(model.config, path=str(tiny), arguments=ARGUMENTS)


@pytest.fixture(scope="session")
def server(model: ABCModel, tiny: Path, screens: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VLLMServer]:
    """vLLM's own server of the tiny model, started as ``--engine vllm`` starts it."""
    settings = VLLMSettings.of({**ARGUMENTS, "model": str(tiny)}, start_timeout=300.0, media=screens)
    with VLLMServer(model.config, settings, tmp_path_factory.mktemp("server") / "vllm.log") as running:
        yield running


@pytest.fixture(scope="session")
def make_request(benchmark: ABCBenchmark, model: ABCModel) -> MakeRequest:
    """A request for a step of the demo, as the runner makes it, ``thought`` being one that is given."""

    def make(
        episode: int = 0,
        step: int = 0,
        *,
        thought: str | None = None,
        change: Callable[[ModelInput], ModelInput] = lambda prepared: prepared,
        reverse_images: bool = False,
        sample: int = 0,
        **sampling: Any,
    ) -> Request:
        loaded = episodes(benchmark)[episode]
        task, past = loaded.steps[step], reference_history(loaded.steps[:step])
        prepared = model.prepare_input(task, past) if thought is None else model.prepare_fixed_thought(task, past, thought)
        shown = [(image.task, image.resize) for image in prepared.images]
        images = [read_screenshot(benchmark.root, of.screenshot, of.screenshot_size, resize) for of, resize in shown]
        if reverse_images:
            images.reverse()
        return Request(change(prepared), tuple(images), sampling, request_id(task.key, sample), task)

    return make


def episodes(benchmark: ABCBenchmark) -> Sequence[Episode]:
    return [benchmark.load(ref) for ref in benchmark.index()]


Ask: TypeAlias = Callable[[Sequence[Request]], list[Response]]
"""All requests at once, each through the same engine; the replies in their order."""


class MakeEngine(Protocol):
    def __call__(self) -> Engine: ...


def asking(make: MakeEngine) -> Ask:
    """Ask through an engine that is made for this one call, in an event loop of its own, as every mode of a run has."""

    def ask(requests: Sequence[Request]) -> list[Response]:
        async def main() -> list[Response]:
            engine = make()
            try:
                return list(await asyncio.gather(*(engine.generate(request) for request in requests)))
            finally:
                await engine.close()

        return asyncio.run(main())

    return ask


def texts(replies: Sequence[Response]) -> list[str]:
    return [reply.text for reply in replies]


def counts(reply: Response) -> tuple[Any, ...]:
    """What must be equal for every engine: tokens of prompt and answer, and why it ended."""
    usage = reply.usage
    return (usage.prompt_tokens, usage.completion_tokens, reply.finish_reason) if usage is not None else ()
