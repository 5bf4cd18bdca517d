"""Evaluations with weights in training, by several processes in lockstep: the replies are those of one process."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from guieval.data.screenshots import read_screenshot
from guieval.engines.in_process.batches import processors
from guieval.errors import EngineError, FatalEngineError
from guieval.journal import RunFolder
from guieval.models import Request, Response
from guieval.training.building import TrainerParts
from guieval.training.config import TrainingConfig
from guieval.training.evaluation import Evaluator
from guieval.training.lockstep import LiveModel, LockstepEngine

from .conftest import Configured, by_torchrun, evaluations, launched, log, written

NEUTRAL = {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
NEUTRAL |= {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}


def answers(folder: Path) -> dict[str, str | None]:
    return {str(record.task.key): record.sample.raw_response for record in RunFolder(folder).records}


def evaluated(config: TrainingConfig, *, batch: int) -> list[dict[str, Any]]:
    """The evaluation of the initial weights in this process."""
    parts = TrainerParts(config)
    assert config.evaluation is not None
    engine = LockstepEngine(parts.weights.checkpoint, batch=batch, seed=config.seed)
    Evaluator(config, config.evaluation, parts.model, engine).evaluate(0, parts.weights.model, parts.weights.processor)
    return evaluations(config)


def by_processes(config: TrainingConfig, wrapper: str, *options: str) -> None:
    """The same by two processes."""
    script = str(Path(__file__).with_name("sharded_evaluation.py"))
    done = by_torchrun([script, wrapper, written(config), "3", *options], processes=2)
    assert done.returncode == 0, done.stderr[:6000]


def requests(parts: TrainerParts, screens: Path, sampling: dict[str, Any], count: int = 5) -> list[Request]:
    """First steps, whose prompts differ in length because their instructions do."""
    made = []
    for number, place in enumerate(parts.data.episodes[:count]):
        task = parts.data.episode(place)[0].steps[0]
        prepared = parts.model.prepare_input(task, ())
        (image,) = prepared.images
        shot = read_screenshot(screens, task.screenshot, task.screenshot_size, image.resize)
        made.append(Request(prepared, (shot,), sampling, f"request-{number}", task))
    return made


def live(parts: TrainerParts) -> LiveModel:
    return LiveModel(parts.weights.model.eval(), parts.weights.processor, parts.weights.checkpoint)


@pytest.mark.parametrize("wrapper", ["whole", "whole sampled", "fsdp1", "fsdp2"])
def test_the_figures_are_those_of_one_process(wrapper: str, configured: Configured, tmp_path: Path) -> None:
    """15 requests by two processes with batches of three, so the last round leaves one process idle."""
    sampling = {"temperature": 1.5, "top_p": 0.9} if "sampled" in wrapper else {"temperature": 0.0}
    evaluation = {"every": 1, "bench_options": {"split": "test"}, "limit": 5, "sampling": sampling}
    one = configured("sft", evaluation=evaluation, out=str(tmp_path / "one"))
    several = configured("sft", evaluation=evaluation, out=str(tmp_path / "several"))
    by_processes(several, wrapper.split()[0])
    (expected,) = evaluated(one, batch=1)
    assert evaluations(several) == [expected, {**expected, "step": 1}]
    folders = [Path(config.out) / "evaluations" / "step-0" for config in (one, several)]
    assert answers(folders[0]) == answers(folders[1])


def test_no_process_gives_up_while_screenshots_take_long(configured: Configured) -> None:
    """Each screenshot takes until there have been rounds for as long as a process waits for another one."""
    config = configured("sft", evaluation={"every": 1, "bench_options": {"split": "test"}, "limit": 2})
    by_processes(config, "whole", "slow")
    assert [row["steps"] for row in evaluations(config)] == [evaluations(config)[0]["steps"]] * 2


def test_fsdp_trains_and_evaluates(configured: Configured, tmp_path: Path) -> None:
    """The whole trainer under FSDP 2: its losses and evaluations are those of DDP, also after a resume."""
    logs = []
    for name in ("ddp", "fsdp"):
        config = configured(
            "semi-online",
            out=str(tmp_path / name),
            evaluation={"every": 2, "bench_options": {"split": "test"}, "limit": 3},
            trainer={"max_steps": 2, "save_steps": 1, "per_device_train_batch_size": 4},
        )
        faults, environment = "", {}
        if name == "fsdp":
            faults = "fsdp kill:1:0"
            environment = {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"}
            environment |= {"FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP"}
            assert launched(config, faults=faults, processes=2, **environment).returncode
            faults = "fsdp"
        options = ["--resume"] if name == "fsdp" else []
        done = launched(config, *options, faults=faults, processes=2, **environment)
        assert done.returncode == 0, done.stderr[:6000]
        logs.append([[line[key] for key in line if key in ("loss", "reward", "grad_norm", "eval/pg")] for line in log(config)])
    assert [pytest.approx(line, rel=1e-4) for line in logs[0]] == logs[1]


@pytest.mark.parametrize(
    "sampling",
    [
        {"temperature": 0.0},
        {"temperature": 0.0, "repetition_penalty": 3.0, "presence_penalty": 0.5, "frequency_penalty": 0.5},
        {"temperature": 2.0, "top_k": 20, "min_p": 0.01},
        {"temperature": 2.0, "seed": 7},
        {"temperature": 0.0, "stop": ["click"], "logprobs": True},
        {"temperature": 0.0, "max_tokens": 4},
    ],
    ids=str,
)
def test_a_batch_answers_as_its_requests_alone(sampling: dict[str, Any], configured: Configured, screens: Path) -> None:
    parts = TrainerParts(configured("sft"))
    asked, model = requests(parts, screens, sampling), live(parts)
    together = model.answers(asked)
    alone = [reply for request in asked for reply in model.answers([request])]
    assert len({reply.usage.prompt_tokens for reply in together if isinstance(reply, Response) and reply.usage}) > 1
    for one, other in zip(together, alone, strict=True):
        assert isinstance(one, Response) and isinstance(other, Response)
        assert (one.text, one.usage, one.finish_reason) == (other.text, other.usage, other.finish_reason)
        assert one.logprob == (None if other.logprob is None else pytest.approx(other.logprob, abs=1e-4))
    if "seed" not in sampling and sampling["temperature"]:
        assert len({reply.text for reply in together if isinstance(reply, Response)}) > 1


@pytest.mark.parametrize("logits", [[0.0, 1.0, 2.0, -1.0], [5.0, 0.0, 0.0, 0.0]])
@pytest.mark.parametrize("settings", [{}, {"temperature": 2.0}, {"top_k": 2}, {"top_p": 0.7}, {"min_p": 0.5}], ids=str)
def test_draws_follow_the_distribution(settings: dict[str, float], logits: Sequence[float]) -> None:
    """Of 4,000 draws each token's share is within four standard errors of its probability."""
    values, count = {**NEUTRAL, **settings}, 4000
    scores = torch.tensor([logits] * count)
    ids = torch.zeros((count, 1), dtype=torch.long)
    drawn = Counter(processors(values, range(count), torch.ones_like(ids))(ids, scores).argmax(-1).tolist())
    chances = (torch.tensor(logits) / values["temperature"]).softmax(-1)
    order = chances.argsort(descending=True, stable=True).tolist()
    kept = order
    if "top_k" in settings:  # ties with the last one are kept
        kept = [token for token in order if chances[token] >= chances[order[1]]]
    elif "top_p" in settings:
        kept = [token for place, token in enumerate(order) if chances[order[:place]].sum() < values["top_p"]]
    elif "min_p" in settings:
        kept = [token for token in order if chances[token] >= values["min_p"] * chances.max()]
    whole = float(chances[kept].sum())
    for token in range(len(logits)):
        share = float(chances[token]) / whole if token in kept else 0.0
        assert abs(drawn[token] / count - share) <= 4 * math.sqrt(share * (1 - share) / count)


def test_penalties_count_no_padding() -> None:
    values = {**NEUTRAL, "temperature": 0.0, "repetition_penalty": 2.0, "presence_penalty": 0.5, "frequency_penalty": 0.25}
    ids = torch.tensor([[0, 0, 1, 2, 2]])  # two padded places, a prompt of 1, and 2 written twice
    mask = torch.tensor([[0, 0, 1]])
    scores = processors(values, [0], mask)(ids, torch.tensor([[4.0, 4.0, -4.0, 4.0]]))
    assert scores.tolist() == [[4.0, 2.0, -8.0 - 0.5 - 2 * 0.25, 4.0]]


def test_a_request_that_cannot_be_answered_fails_alone(configured: Configured, screens: Path) -> None:
    parts = TrainerParts(configured("sft"))
    model = live(parts)

    def length(request: Request) -> int:
        (reply,) = model.answers([request])
        assert isinstance(reply, Response) and reply.usage is not None and reply.usage.prompt_tokens
        return reply.usage.prompt_tokens

    good, *_, long = sorted(requests(parts, screens, {"temperature": 0.0, "max_tokens": 1}), key=length)
    blind = Request(good.input, (), good.sampling, good.request_id, good.task)
    model._longest = length(long)
    expected = model.answers([good])
    answered, *failed = model.answers([good, long, blind])
    assert [answered] == expected and isinstance(answered, Response)
    assert all(isinstance(each, EngineError) for each in failed)
    assert "the model's context length is" in str(failed[0]) and "0 images are given" in str(failed[1])
    assert all(isinstance(each, EngineError) for each in model.answers([long, blind]))
    (answer,) = model.answers(requests(parts, screens, {"temperatur": 0.0}, 1))  # a mistake of the settings ends all
    assert isinstance(answer, FatalEngineError) and "did you mean 'temperature'" in str(answer)


def test_too_little_memory_is_raised_as_it_is(configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner would take it for the failure of a step, and every further step would fail."""

    def full(*arguments: Any, **named: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    config = configured("sft", evaluation={"every": 1, "bench_options": {"split": "test"}, "limit": 2})
    parts = TrainerParts(config)
    monkeypatch.setattr(parts.weights.model, "generate", full)
    engine = LockstepEngine(parts.weights.checkpoint)
    assert config.evaluation is not None
    evaluator = Evaluator(config, config.evaluation, parts.model, engine)
    with pytest.raises(torch.OutOfMemoryError):
        evaluator.evaluate(0, parts.weights.model, parts.weights.processor)
    assert not (Path(config.out) / "evaluations.jsonl").exists()
    monkeypatch.undo()
    assert evaluator.evaluate(0, parts.weights.model, parts.weights.processor)


def test_a_round_takes_all_that_is_in_flight(configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are as large as the capacity allows, not as many as happen to be read from the disk."""
    sizes: list[int] = []
    original = LiveModel.answers

    def counted(self: LiveModel, asked: Sequence[Request]) -> Any:
        sizes.append(len(asked))
        return original(self, asked)

    monkeypatch.setattr(LiveModel, "answers", counted)
    config = configured("sft", evaluation={"every": 1, "bench_options": {"split": "test"}, "limit": 8, "mode": "offline"})
    (row,) = evaluated(config, batch=6)
    full, rest = divmod(int(row["steps"]), 6)
    assert sizes == [6] * full + [rest] * bool(rest)
    engine = LockstepEngine(None)  # type: ignore[arg-type]
    engine.dismiss()
    asyncio.run(engine.close())  # a second time, without harm
