"""What the engines that load a model share, with a model that a test makes: one copy of it, its arguments, its failures."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from guieval.engines.in_process.checkpoint import Checkpoint, HeldModel, InProcessEngine, require
from guieval.errors import EngineError, FatalEngineError, UsageError
from guieval.journal.setup import EngineFacts
from guieval.models import ModelConfig, Request, Response
from tests.engines.asking import make_request


def config(**changes: Any) -> ModelConfig:
    return ModelConfig.model_validate({"name": "tiny", "adapter": "qwen2_5_vl", "hf_id": "maker/tiny", **changes})


class Parrot(HeldModel):
    """Repeats the request; loading and freeing are counted, and a text decides what fails."""

    loads = 0
    frees = 0

    async def _load(self) -> None:
        type(self).loads += 1
        await asyncio.sleep(0)  # another request may come meanwhile
        if self.checkpoint.path == "maker/broken":
            raise OSError("no weights\nthere")

    async def _answer(self, request: Request) -> Response:
        text = request.input.text.splitlines()[-1]
        failures: dict[str, Exception] = {
            "usage": UsageError("no such field"),
            "dead": FatalEngineError("it died"),
            "odd": KeyError("odd"),
        }
        if text in failures:
            raise failures[text]
        if text == "wait":
            await asyncio.Event().wait()
        return Response(text)

    def facts(self) -> EngineFacts:
        return EngineFacts(name="parrot")

    def _free(self) -> None:
        type(self).frees += 1


@pytest.fixture
def parrot() -> type[Parrot]:
    class Fresh(Parrot):
        pass

    return Fresh


def ask(engine: InProcessEngine, *requests: Request) -> list[str]:
    async def main() -> list[str]:
        return [reply.text for reply in await asyncio.gather(*map(engine.generate, requests))]

    return asyncio.run(main())


def test_engines_of_one_checkpoint_share_one_model(parrot: type[Parrot]) -> None:
    """Each mode of a run has an engine and an event loop of its own; the last to close frees the model."""
    engines = [InProcessEngine(parrot.join(Checkpoint(config()))) for _ in range(3)]
    other = InProcessEngine(parrot.join(Checkpoint(config(), arguments={"dtype": "float32"})))
    assert parrot.loads == 0
    for engine in engines:
        assert ask(engine, make_request("a"), make_request("b")) == ["a", "b"]
        assert parrot.frees == 0
        asyncio.run(engine.close())
        asyncio.run(engine.close())
    assert ask(other, make_request("c")) == ["c"] and parrot.loads == 2
    asyncio.run(other.close())
    assert not [held for held in HeldModel.held.values() if isinstance(held, parrot)]
    with pytest.raises(FatalEngineError, match="closed"):
        ask(other, make_request("d"))


def test_a_model_that_cannot_be_loaded_ends_the_run(parrot: type[Parrot]) -> None:
    engine = InProcessEngine(parrot.join(Checkpoint(config(hf_id="maker/broken"))))
    with pytest.raises(FatalEngineError, match="'maker/broken' cannot be loaded: OSError: no weights there"):
        asyncio.run(engine.load())
    asyncio.run(engine.close())


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("usage", FatalEngineError, "no such field"),
        ("dead", FatalEngineError, "it died"),
        ("odd", EngineError, "KeyError: 'odd'"),
    ],
)
def test_failures_of_an_answer(parrot: type[Parrot], text: str, kind: type[Exception], message: str) -> None:
    engine = InProcessEngine(parrot.join(Checkpoint(config())))
    with pytest.raises(EngineError, match=message) as caught:
        ask(engine, make_request(text))
    assert type(caught.value) is kind
    assert ask(engine, make_request("on it goes")) == ["on it goes"]
    asyncio.run(engine.close())


def test_a_request_in_flight_ends_with_its_model(parrot: type[Parrot]) -> None:
    """Else a run that is stopped prints "Task was destroyed but it is pending" for each."""

    async def main() -> Any:
        model = parrot.join(Checkpoint(config()))
        engine = InProcessEngine(model)
        await engine.load()
        unfinished = asyncio.create_task(engine.generate(make_request("wait")))
        while len(asyncio.all_tasks(model._loop)) < 1:
            await asyncio.sleep(0.01)
        await engine.close()
        await asyncio.to_thread(model._thread.join)
        assert not asyncio.all_tasks(model._loop)
        return await asyncio.gather(unfinished, return_exceptions=True)

    (failure,) = asyncio.run(main())
    assert isinstance(failure, asyncio.CancelledError)


def test_arguments_of_checkpoint_and_user_meet(tmp_path: Path) -> None:
    (tmp_path / "own.jinja").write_text("{{ messages }}")
    model = config(
        vllm={"limit-mm-per-prompt": {"image": 1}, "chat-template": "own.jinja", "tensor-parallel-size": 4},
        context_length=32768,
        options={"min_pixels": 3136, "max_pixels": 602112, "prompt": "auto"},
    )
    arguments = {"limit_mm_per_prompt": {"video": 0}, "tensor-parallel-size": None}
    made = Checkpoint(model, arguments=arguments, chat_templates=tmp_path)
    assert made.path == "maker/tiny" and made.chat_template == "{{ messages }}"
    assert made.arguments == {
        "limit_mm_per_prompt": {"image": 1, "video": 0},
        "mm_processor_kwargs": {"min_pixels": 3136, "max_pixels": 602112},
        "max_model_len": 32768,
    }
    assert Checkpoint(model, arguments={"max-model-len": 99}, chat_templates=tmp_path).arguments["max_model_len"] == 99
    assert Checkpoint(config(), path="else/where").key != Checkpoint(config()).key == Checkpoint(config(hf_id="maker/tiny")).key


@pytest.mark.parametrize("name", ["hf_token", "api-key"])
def test_a_secret_is_refused_and_not_repeated(name: str) -> None:
    values = {name: "hf_0123"}
    for model, arguments in ((config(), values), (config(vllm=values), {})):
        with pytest.raises(UsageError, match="it is a secret") as raised:
            Checkpoint(model, arguments=arguments)
        assert "0123" not in str(raised.value)


def test_where_the_weights_are(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    assert Checkpoint(config(), path=str(tmp_path)).path == str(tmp_path)
    assert Checkpoint(config(), arguments={"model": "an/other"}).path == "an/other"
    assert "model" not in Checkpoint(config(), path="a/b", arguments={"model": "an/other"}).arguments
    for wrong, message in [(tmp_path / "none", "does not exist"), (tmp_path.parent, "has no config.json")]:
        with pytest.raises(UsageError, match=message):
            Checkpoint(config(), path=str(wrong))
    with pytest.raises(UsageError, match="--set model_path=DIR_OR_HF_ID"):
        Checkpoint(config(hf_id=None))
    with pytest.raises(UsageError, match=r"did you mean 'own.jinja'"):
        (tmp_path / "own.jinja").touch()
        Checkpoint(config(vllm={"chat-template": "own.jinj"}), chat_templates=tmp_path)


def test_a_missing_package_is_named_with_its_extra() -> None:
    require("json", engine="e", extra="x")
    with pytest.raises(UsageError, match=r"engine 'e' needs the package 'no_such_package': pip install 'guieval\[x\]'"):
        require("json", "no_such_package", engine="e", extra="x")
