"""Three engines, one model: vLLM's server, vLLM in this process and transformers mean the same by every request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from guieval.engines.http.chat_body import chat_body
from guieval.engines.http.chat_completions import OpenAIEngine
from guieval.engines.in_process.chat_prompts import chat_options, pictures, prompt_text
from guieval.engines.in_process.checkpoint import Checkpoint
from guieval.engines.in_process.transformers import TransformersModel, transformers_engine
from guieval.engines.in_process.vllm import VLLMModel, vllm_engine
from guieval.engines.vllm.command import served_name
from guieval.engines.vllm.launched import LaunchedEngine
from guieval.engines.vllm.server import VLLMServer
from guieval.errors import EngineError, FatalEngineError
from guieval.journal.setup import Setup
from guieval.models import Message, ModelInput, Request
from guieval.registry import load_model
from guieval.settings import Server
from tests.rows import every_row

from .conftest import ARGUMENTS, MODEL, Ask, MakeRequest, asking, counts, texts

ENGINES = ("server", "vllm-inprocess", "transformers")


@pytest.fixture(scope="module")
def in_process(checkpoint: Checkpoint) -> Iterator[dict[str, Ask]]:
    # these two stay joined, so that the weights stay while every test opens and closes an engine of its own
    kept = [vllm_engine(checkpoint), transformers_engine(checkpoint)]
    makers = {"vllm-inprocess": vllm_engine, "transformers": transformers_engine}
    yield {name: asking(partial(maker, checkpoint)) for name, maker in makers.items()}
    for engine in kept:
        asyncio.run(engine.close())
    assert not VLLMModel.held and not TransformersModel.held


@pytest.fixture(scope="module")
def engines(in_process: dict[str, Ask], server: VLLMServer) -> dict[str, Ask]:
    settings = Server(base_urls=(server.base_url,), served_model=served_name(server.model, server.settings))
    return {"server": asking(lambda: OpenAIEngine(settings)), **in_process}


@pytest.fixture(params=ENGINES)
def ask(request: pytest.FixtureRequest, engines: dict[str, Ask]) -> Ask:
    return engines[request.param]


def agreed(engines: dict[str, Ask], requests: list[Request]) -> list[str]:
    """The texts that all three answer with, their counts being equal too."""
    replies = {name: ask(requests) for name, ask in engines.items()}
    assert texts(replies["server"]) == texts(replies["vllm-inprocess"]) == texts(replies["transformers"])
    for first, second, third in zip(*replies.values(), strict=True):
        assert counts(first) == counts(second) == counts(third) != ()
    return texts(replies["server"])


def test_greedy_answers_and_counts_are_equal(engines: dict[str, Ask], make_request: MakeRequest) -> None:
    requests = [make_request(episode, step, temperature=0, max_tokens=40) for episode in (0, 1) for step in (0, 2)]
    assert [len(request.images) for request in requests] == [1, 3] * 2
    assert len(set(agreed(engines, requests))) == len(requests)


def test_the_server_got_the_templates_prompt(server: VLLMServer, checkpoint: Checkpoint, make_request: MakeRequest) -> None:
    """Token for token, image places included; the engines in this process count as many (the test above)."""
    from transformers import AutoProcessor

    processor = AutoProcessor.from_pretrained(checkpoint.path)
    for thought in (None, "I look at the list."):
        request = make_request(0, 3, thought=thought, temperature=0, max_tokens=1)
        text = prompt_text(processor.tokenizer, processor.chat_template, request, chat_options(request).template)
        assert text.count("<|image_pad|>") == 4
        inputs = processor(text=[text], images=pictures(request), add_special_tokens=False)
        assert completion(server, request, return_token_ids=True)["prompt_token_ids"] == list(inputs["input_ids"][0])


def test_images_are_read_in_their_order(ask: Ask, make_request: MakeRequest) -> None:
    there, back = ask([make_request(0, 3, reverse_images=reverse, temperature=0, max_tokens=40) for reverse in (False, True)])
    assert there.text != back.text and there.usage == back.usage


def test_a_begun_answer_or_a_given_thought_is_continued(engines: dict[str, Ask], make_request: MakeRequest) -> None:
    """Given the first words of its own greedy answer the model goes on with the rest of it."""
    whole = agreed(engines, [make_request(1, 1, temperature=0, max_tokens=30)])[0]
    assert len(whole) > 20

    def begun(prepared: ModelInput) -> ModelInput:
        return ModelInput((*prepared.messages, Message("assistant", (whole[:10],))), prefill=True)

    assert agreed(engines, [make_request(1, 1, change=begun, temperature=0, max_tokens=20)]) == [whole[10:30]]
    thoughts = ("I look at the list.", "I go back.")
    plain = make_request(0, 1, temperature=0, max_tokens=20)
    given = [make_request(0, 1, thought=thought, temperature=0, max_tokens=20) for thought in thoughts]
    assert len(set(agreed(engines, [plain, *given]))) == 3
    replies = engines["transformers"]([plain, *given])
    prompts = [reply.usage.prompt_tokens or 0 for reply in replies if reply.usage is not None]
    # one token a byte: the begun turn of each is longer than none by itself, and by the thoughts' difference than the other
    assert prompts[1] == prompts[0] + len(given[0].input.text) - len(plain.input.text) - 1
    assert prompts[1] - prompts[2] == len(thoughts[0]) - len(thoughts[1])


def test_a_seed_decides_what_is_sampled_and_several_samples_differ(ask: Ask, make_request: MakeRequest) -> None:
    def sampled(seed: int) -> Request:
        return make_request(0, 0, temperature=1.0, max_tokens=24, seed=seed)

    first, second = ask([sampled(7), sampled(8)])
    assert first.text != second.text
    assert ask([sampled(7)])[0].text == first.text
    replies = ask([make_request(0, 0, sample=sample, temperature=1.0, max_tokens=24) for sample in range(4)])
    assert len(set(texts(replies))) == 4


@every_row(
    "sampling",
    [
        {"temperature": 1.0, "top_k": 1},
        {"temperature": 1.0, "top_p": 0.0001},
        {"temperature": 0.0, "seed": 5, "top_k": -1, "top_p": 0.5},
        {"temperature": 0.0, "logprobs": True, "top_logprobs": 3},
        {"temperature": 0.0, "skip_special_tokens": True, "presence_penalty": 0.0, "repetition_penalty": 1.0, "stop": None},
    ],
)
def test_only_the_best_token_is_left(engines: dict[str, Ask], make_request: MakeRequest, sampling: dict[str, Any]) -> None:
    best = engines["server"]([make_request(0, 0, temperature=0.0, max_tokens=24)])[0].text
    assert agreed(engines, [make_request(0, 0, max_tokens=24, **sampling)]) == [best]


@every_row("penalty", [{"repetition_penalty": 1.4}, {"presence_penalty": 1.7}, {"frequency_penalty": 1.9}])
def test_penalties_change_the_answer_alike(engines: dict[str, Ask], make_request: MakeRequest, penalty: dict[str, Any]) -> None:
    plain = engines["server"]([make_request(0, 0, temperature=0, max_tokens=60)])[0].text
    assert agreed(engines, [make_request(0, 0, temperature=0, max_tokens=60, **penalty)]) != [plain]


def test_an_answer_ends_where_the_server_ends_it(engines: dict[str, Ask], make_request: MakeRequest) -> None:
    whole = agreed(engines, [make_request(0, 0, temperature=0, max_tokens=30)])[0]
    stop = whole[8:11]
    cut = whole.index(stop)
    result: list[dict[str, Any]] = [
        {"max_tokens": 5},
        {"max_completion_tokens": 6},
        {"max_tokens": 30, "stop": stop},
        {"max_tokens": 30, "stop": [stop], "include_stop_str_in_output": True},
    ]
    requests = [make_request(0, 0, temperature=0, **each) for each in result]
    assert agreed(engines, requests) == [whole[:5], whole[:6], whole[:cut], whole[: cut + 3]]
    replies = engines["transformers"](requests)
    assert [reply.finish_reason for reply in replies] == ["length", "length", "stop", "stop"]


def test_a_prompt_beyond_the_context_fails_alone(engines: dict[str, Ask], make_request: MakeRequest) -> None:
    def long(prepared: ModelInput) -> ModelInput:
        return ModelInput((*prepared.messages[:-1], Message("user", ("x" * 9000, *prepared.messages[-1].parts))))

    for ask in engines.values():
        with pytest.raises(EngineError, match="8192") as caught:
            ask([make_request(0, 0, change=long, temperature=0, max_tokens=5)])
        assert not isinstance(caught.value, FatalEngineError)
        assert ask([make_request(0, 0, temperature=0, max_tokens=5)])[0].text


def test_an_unknown_parameter_ends_the_run(in_process: dict[str, Ask], make_request: MakeRequest) -> None:
    for ask in in_process.values():
        for field, hint in (("temprature", "did you mean 'temperature'"), ("n", "set by the engine")):
            with pytest.raises(FatalEngineError, match=hint):
                ask([make_request(0, 0, **{field: 1})])


def test_logprobs_are_those_of_the_checkpoint(server: VLLMServer, checkpoint: Checkpoint, make_request: MakeRequest) -> None:
    """What a server says of a token's probability is what the checkpoint's own code computes, with four images too."""
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor

    request = make_request(0, 3, temperature=0, max_tokens=8, logprobs=True, top_logprobs=2)
    message = completion(server, request, return_token_ids=True)
    tokens = message["choices"][0]["token_ids"]
    processor = AutoProcessor.from_pretrained(checkpoint.path)
    model = AutoModelForImageTextToText.from_pretrained(checkpoint.path, dtype=torch.float32).eval()
    text = prompt_text(processor.tokenizer, processor.chat_template, request, chat_options(request).template)
    inputs = processor(text=[text + processor.tokenizer.decode(tokens[:-1])], images=pictures(request), return_tensors="pt")
    with torch.inference_mode():
        computed = model(**inputs).logits[0, -len(tokens) :].log_softmax(-1)
    content = message["choices"][0]["logprobs"]["content"]
    assert [entry["logprob"] for entry in content] == pytest.approx(computed.max(-1).values.tolist(), abs=1e-3)
    second = computed.topk(2).values[:, 1].tolist()
    assert [entry["top_logprobs"][1]["logprob"] for entry in content] == pytest.approx(second, abs=1e-3)


def test_a_replys_logprob_is_the_same_from_every_engine(engines: dict[str, Ask], make_request: MakeRequest) -> None:
    """Of the model's own distribution, whatever penalties and temperature make of it; nothing where it was not asked for."""
    for more in ({}, {"repetition_penalty": 1.4, "stop": None}, {"temperature": 1.0, "top_k": 1}):
        sampling = {"temperature": 0.0, "max_tokens": 12, **more}
        asked = make_request(0, 2, logprobs=True, **sampling)
        means = {name: ask([asked])[0].logprob for name, ask in engines.items()}
        assert all(mean is not None and mean < 0 for mean in means.values()), means
        assert means["vllm-inprocess"] == pytest.approx(means["server"], abs=1e-3)
        assert means["transformers"] == pytest.approx(means["server"], abs=1e-3)
        for ask in engines.values():
            assert ask([make_request(0, 2, **sampling)])[0].logprob is None


def test_images_are_not_resized_a_second_time(tiny: Path, tmp_path: Path, make_request: MakeRequest) -> None:
    """A processor that would shrink the adapter's images is refused, and one that the checkpoint's options widen is not."""
    small = tmp_path / "small"
    small.mkdir()
    for file in tiny.iterdir():
        (small / file.name).write_bytes(file.read_bytes())
    settings = json.loads((small / "processor_config.json").read_text())
    settings["image_processor"]["size"] = {"shortest_edge": 56 * 56, "longest_edge": 112 * 112}
    (small / "processor_config.json").write_text(json.dumps(settings))
    request = make_request(0, 0, temperature=0, max_tokens=3)
    shrunk = Checkpoint(load_model(MODEL).config, path=str(small), arguments=ARGUMENTS)
    with pytest.raises(EngineError, match=r"of an image of 360x576 pixels: set vllm\.mm-processor-kwargs"):
        asking(lambda: transformers_engine(shrunk))([request])
    options = {"min_pixels": 4 * 28 * 28, "max_pixels": 16384 * 28 * 28}
    config = load_model(MODEL).config
    wider = config.model_copy(update={"options": {**config.options, **options}})
    widened = Checkpoint(wider, path=str(small), arguments=ARGUMENTS)
    whole = Checkpoint(load_model(MODEL).config, path=str(tiny), arguments=ARGUMENTS)
    assert asking(lambda: transformers_engine(widened))([request]) == asking(lambda: transformers_engine(whole))([request])


def test_three_engines_say_the_same_of_one_checkpoint(
    server: VLLMServer, checkpoint: Checkpoint, make_request: MakeRequest
) -> None:
    """Version and attention may differ; precision, processor and template may not, or their answers could not agree."""

    async def said(engine: Any) -> Setup:
        await (engine.discover() if isinstance(engine, OpenAIEngine) else engine.load())
        engine.note(make_request())
        await engine.generate(make_request(max_tokens=1))
        await engine.close()
        setup = engine.setup()
        assert isinstance(setup, Setup)
        return setup

    launched = LaunchedEngine(server, Server(base_urls=("http://127.0.0.1/v1",)))
    setups = [asyncio.run(said(each)) for each in (launched, vllm_engine(checkpoint), transformers_engine(checkpoint))]
    engines = [setup.engines[0] for setup in setups]
    assert [each.name for each in engines] == ["vLLM", "vLLM", "transformers"] and all(each.version for each in engines)
    assert engines[0].version == engines[1].version and engines[2].attention
    assert {(each.dtype, each.quantization, each.pixels, each.chat_template) for each in engines} == {
        ("float32", "none", engines[2].pixels, engines[2].chat_template)
    }
    assert engines[2].pixels is not None and engines[2].chat_template is not None
    assert setups[0].fingerprints[0].startswith(f"vllm-{engines[0].version}")


def completion(server: VLLMServer, request: Request, **fields: Any) -> dict[str, Any]:
    """The server's whole answer to the body that the engine sends, with further fields."""
    body = json.loads(chat_body(request, served_name(server.model, server.settings)))
    answer = httpx.post(f"{server.base_url}/chat/completions", json={**body, **fields}, timeout=60)
    assert answer.status_code == 200, answer.text
    whole: dict[str, Any] = answer.json()
    return whole
