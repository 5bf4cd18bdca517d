"""vLLM without vLLM: TRL's own VLLMGeneration over weights of transformers, which are gone while they sleep."""

from __future__ import annotations

from itertools import groupby
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from guieval.training import arguments

AWAKE = frozenset({"weights", "kv_cache"})


class StandIn:
    """In this process as ``vllm.LLM``, which repeats the tokens of pictures; of a server as TRL's client, which does not."""

    colocated = True
    bent = 0
    """Tokens too many that it reads in a picture."""

    def __init__(self, model: Any = None, **settings: Any) -> None:
        from transformers import AutoModelForImageTextToText, AutoProcessor

        folder = model or settings["base_url"].removeprefix("http://")
        self.model = AutoModelForImageTextToText.from_pretrained(folder, dtype=torch.float32).eval()
        self.processor = AutoProcessor.from_pretrained(folder)
        self.awake, self.events, self.asked = AWAKE, list[str](), list[Any]()
        runner = SimpleNamespace(model_runner=SimpleNamespace(model=self))
        executor = SimpleNamespace(driver_worker=runner)
        limits = SimpleNamespace(max_model_len=settings.get("max_model_len"))
        self.llm_engine = SimpleNamespace(model_executor=executor, model_config=limits)

    # vllm.LLM

    def sleep(self, level: int) -> None:
        self.awake = frozenset()
        self.events.append("sleep")
        for weight in self.model.parameters():
            weight.data.zero_()

    def wake_up(self, tags: list[str]) -> None:
        self.awake |= set(tags)

    def load_weights(self, pairs: Any) -> None:
        assert "weights" in self.awake
        own = dict(self.model.named_parameters())
        for name, value in pairs:
            own[name].data.copy_(value)

    def reset_prefix_cache(self) -> None:
        self.events.append("load")

    def generate(self, prompts: Any, sampling_params: Any = None, features: Any = None, **given: Any) -> Any:
        assert self.awake == AWAKE, "it generates while it sleeps"
        self.events.append("generate")
        if self.colocated:
            shown = [row.get("multi_modal_data", {}).get("image", []) for row in prompts]
            images = [each if isinstance(each, list) else [each] for each in shown]
            pairs = [(row["prompt_token_ids"], each) for row, each in zip(prompts, images, strict=True)]
            return [self._answer(*self._repeated(*each), vars(sampling_params)) for each in self._seen(pairs)]
        pairs = [(row, each["images"]) for row, each in zip(prompts, features, strict=True)]
        values = {**given, **given["generation_kwargs"]}
        made = [self._answer(prompt, shown, values) for prompt, shown in self._seen(pairs)]
        logprobs = [[[each.logprob for each in step.values()] for step in one.outputs[0].logprobs] for one in made]
        tokens = [one.outputs[0].token_ids for one in made]
        return {"prompt_ids": [one.prompt_token_ids for one in made], "completion_ids": tokens, "logprobs": logprobs}

    def _seen(self, pairs: list[Any]) -> list[Any]:
        self.asked.append(pairs)
        return pairs

    def _repeated(self, prompt: list[int], images: list[Any]) -> tuple[list[int], list[Any]]:
        rest, image = iter(images), self.processor.image_token_id
        assert all(len(list(run)) == 1 for token, run in groupby(prompt) if token == image), "they would be repeated twice"
        counts = [int(self._grid([each]).prod()) // 4 + self.bent for each in images]
        repeats = iter(counts)
        assert prompt.count(image) == len(list(rest))
        return [each for token in prompt for each in [token] * (next(repeats) if token == image else 1)], images

    def _grid(self, images: list[Any]) -> Any:
        return self.processor.image_processor(images=images, return_tensors="pt")["image_grid_thw"]

    def _answer(self, prompt: list[int], images: list[Any], values: dict[str, Any]) -> Any:
        ids, greedy = torch.tensor([prompt]), values["temperature"] == 0
        shown = self.processor.image_processor(images=images, return_tensors="pt")
        marks = (ids == self.processor.image_token_id).int()
        made = [5, 6] if self.bent else self._tokens(ids, dict(shown), marks, values, greedy)
        sampled = [{token: SimpleNamespace(logprob=-0.1 * place, rank=1)} for place, token in enumerate(made, 1)]
        return SimpleNamespace(prompt_token_ids=prompt, outputs=[SimpleNamespace(token_ids=made, logprobs=sampled)])

    def _tokens(self, ids: Any, shown: dict[str, Any], marks: Any, values: dict[str, Any], greedy: bool) -> list[int]:
        ends = values.get("stop_token_ids") or self.model.generation_config.eos_token_id
        draw = {"do_sample": False} if greedy else {"do_sample": True, "temperature": values["temperature"]}
        how = {"max_new_tokens": values["max_tokens"], "eos_token_id": ends, **draw}
        how["repetition_penalty"] = values["repetition_penalty"]
        with torch.no_grad():
            out = self.model.generate(input_ids=ids, mm_token_type_ids=marks, **shown, **how)
        return [int(token) for token in out[0, ids.shape[1] :]]


class ServedStandIn(StandIn):
    """As TRL's client of a server."""

    colocated = False

    def init_communicator(self, device: Any) -> None: ...

    def get_server_info(self) -> Any:
        return {"model_config": {"logprobs_mode": "processed_logprobs"}}

    def update_named_params(self, metadata: Any, pairs: Any) -> None:
        self.load_weights(pairs)

    def image_features(self, images: Any) -> Any:
        return [{"images": each, "mm_placeholders": {"image": each}} for each in images]


def install(patch: pytest.MonkeyPatch) -> None:
    """Let TRL and guieval find it in place of vLLM."""
    from trl.generation import vllm_generation

    patch.setattr(arguments, "find_spec", lambda name: True)
    given = {"is_vllm_available": lambda: True, "LLM": StandIn, "SamplingParams": SimpleNamespace, "VLLMClient": ServedStandIn}
    for name, value in given.items():
        patch.setattr(vllm_generation, name, value, raising=False)


def engine_of(trainer: Any) -> StandIn:
    generation = trainer.vllm_generation
    found: StandIn = generation.llm if generation.mode == "colocate" else generation.vllm_client
    return found
