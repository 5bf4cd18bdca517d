"""verl's agent loop of a GUI task: a rollout along the reference trajectory, or one step of it, with one output per step.

Prompts, screenshots and the reading of responses are the adapter's, as in an evaluation. Rollouts of whole episodes are UI-S1's
(section 3.2): the history has the policy's own outputs, and mismatches are patched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput, register
from verl.utils.profiler import simple_timer

from guieval.errors import UsageError
from guieval.history import HistoryEntry, reference_history
from guieval.history.modes import NO_PATCH
from guieval.models import ABCModel, ModelInput
from guieval.models.patch_thoughts import on_policy_input, read_thought
from guieval.rewards.adapters.rows import metrics
from guieval.rewards.response import ResponseScorer, ScoredResponse
from guieval.rewards.rollout import SemiOnlineRollout
from guieval.steps import StepTaskModel
from guieval.training.data.examples import PromptBuilder, images_of
from guieval.training.data.thoughts import ServedThoughts, read_thoughts_file
from guieval.training.reward_watch import RewardWatch, Sum
from guieval.training.settings import RolloutSettings
from guieval.training.verl.records import RowRecord
from guieval.training.verl.rows import RowTask, read_place
from guieval.training.verl.settings import GROUP, VerlSettings, read_settings


class LoopResponse(NamedTuple):
    """A response, and verl's output for it."""

    text: str
    output: AgentLoopOutput


class TooLong(Exception):
    """A prompt has more tokens than ``rollout.prompt_length``. verl cannot train on it, since images cannot be cut."""


class PolicyLoop(AgentLoopBase):
    """The base of both loops: the settings, the adapter, and the policy's answers to its prompts."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._settings = read_settings(self.config)
        self._model = _adapter(self._settings.model_dump_json())

    async def _ask(self, prompts: PromptBuilder, sampling: dict[str, Any], request: str, prepared: ModelInput) -> LoopResponse:
        """The policy's sampled answer. All prompts of a session go to one server, which has their prefix in its cache."""
        self._check_template(prepared)
        running = asyncio.get_running_loop()
        messages = await running.run_in_executor(None, prompts.of, prepared)  # reads screenshots
        images = images_of(messages) or None
        self._assert_mm_supported(images is not None)
        build = partial(self.continuous_token_builder.build_initial_tokens, messages, images=images)
        prompt_ids = await running.run_in_executor(None, build)
        if len(prompt_ids) > self.rollout_config.prompt_length:
            raise TooLong(
                f"its prompt has {len(prompt_ids)} tokens and {len(images or ())} screenshots, data.max_prompt_length is "
                f"{self.rollout_config.prompt_length}: raise it, or let the prompt show fewer (guieval.model_options)"
            )
        metrics: dict[str, Any] = {}
        with simple_timer("generate_sequences", metrics):
            generated = await self.server_manager.generate(
                request_id=request,
                prompt_ids=prompt_ids,
                sampling_params=sampling,
                image_data=images,
                mm_processor_kwargs=self._get_mm_processor_kwargs(),
            )
        metrics["num_preempted"] = -1 if generated.num_preempted is None else generated.num_preempted
        logprobs = generated.log_probs or None
        merged, mask, logprobs = await self.ct_merge_assistant_token(
            prompt_ids, generated.token_ids, [], None if logprobs is None else [], assistant_logprobs=logprobs
        )
        start, most = len(merged.token_ids) - len(mask), self.rollout_config.response_length
        experts = generated.routed_experts
        output = AgentLoopOutput(
            prompt_ids=merged.token_ids[:start],
            response_ids=merged.token_ids[start:][:most],
            response_mask=mask[:most],
            response_logprobs=logprobs[:most] if logprobs else None,
            routed_experts=None if experts is None else experts[: start + most],
            multi_modal_data={"images": images} if images else {},
            num_turns=2,
            metrics=metrics,
            # includes verl's own fields, e.g. the version of the weights
            extra_fields={**generated.extra_fields, "turn_scores": [], "tool_rewards": []},
        )
        skip = bool(self._model.config.scaffold.sampling.get("skip_special_tokens", True))
        return LoopResponse(self.tokenizer.decode(generated.token_ids[:most], skip_special_tokens=skip), output)

    def _check_template(self, prepared: ModelInput) -> None:
        """verl gives all prompts the same ``data.apply_chat_template_kwargs``; check that they are the model's."""
        if prepared.prefill:
            raise UsageError(
                f"model {self._model.config.name!r} begins the answer in its prompt, which verl cannot train; another "
                "setting of thinking may leave it open"
            )
        wanted = prepared.extra.get("chat_template_kwargs") or {}
        given: Mapping[str, Any] = self.apply_chat_template_kwargs
        for name, value in wanted.items():
            if given.get(name) != value:
                raise UsageError(
                    f"model {self._model.config.name!r} needs {name}={value!r} in its chat template: "
                    f"add ++data.apply_chat_template_kwargs.{name}={value}"
                )


@register(GROUP)
class GuiLoop(PolicyLoop):
    """One session of a row written by :func:`guieval.training.verl.rows.write_rows`.

    A row of an episode gives one output per step; its score is the mean reward over the episode's counted steps, and the reward
    of each step is in ``extra_fields["guieval"]``. A row of one step gives one output and its reward. verl calls no reward
    function.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._scorer = _scorer(self._settings.model_dump_json(), self.rollout_config.response_length)

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput | list[AgentLoopOutput]:
        """Run the session; verl passes the row's columns, ``uid`` and ``session_id``."""
        place = read_place(row.get("extra_info"))
        asking = partial(self._ask, _prompts(self._settings.model_dump_json(), place.root), sampling_params, uuid4().hex)
        if place.step is not None:
            return await self._one_step(asking, place, place.step)
        return await self._episode(asking, place, str(row.get("uid")), int(row.get("session_id") or 0))

    async def _one_step(self, asking: Any, place: RowTask, step: int) -> AgentLoopOutput:
        past = reference_history(place.episode.steps[:step]) if self._settings.history == "reference" else ()
        task = place.episode.steps[step]
        try:
            answer: LoopResponse = await asking(self._model.prepare_input(task, past))
        except TooLong as error:
            raise UsageError(f"step {task.key}: {error}") from None
        scored = self._scorer.score(task, answer.text, tokens=len(answer.output.response_ids))
        answer.output.reward_score = scored.reward.total
        answer.output.extra_fields["reward_extra_info"] = {"score": scored.reward.total, **metrics(scored)}
        return answer.output

    async def _episode(self, asking: Any, place: RowTask, uid: str, session: int) -> list[AgentLoopOutput]:
        policy = NO_PATCH if place.validation else self._settings.rollout.policy()
        rollout = SemiOnlineRollout(place.episode, policy, counted=place.counted)
        watched: list[Mapping[str, Sum]] = []
        cut = False
        try:
            while rollout.state != "over":
                task, past = rollout.task, rollout.history
                if rollout.state == "patch":
                    rollout.patch(await self._thought(asking, task, past, place.root))
                    continue
                answer: LoopResponse = await asking(self._model.prepare_input(task, past))
                scored = self._scorer.score(task, answer.text, tokens=len(answer.output.response_ids))
                rollout.tell(scored.sample, reward=scored.reward.total, payload=answer.output)
                watched.append(self._watched(place, task, scored))
        except TooLong as error:
            if not rollout.steps:
                raise UsageError(f"the first step of {place.episode.key}: {error}") from None
            cut = True  # the steps so far can be trained on
        outputs = []
        for number, (step, sums) in enumerate(zip(rollout.steps, watched, strict=True), 1):
            output: AgentLoopOutput = step.payload
            output.num_turns = 2 * number
            output.extra_fields[GROUP] = asdict(RowRecord.of(uid, session, step, protocol=place.protocol, watched=sums))
            outputs.append(output)
        _score(outputs[-1], rollout, len(place.counted), cut=cut)
        return outputs

    def _watched(self, place: RowTask, task: StepTaskModel, scored: ScoredResponse) -> Mapping[str, Sum]:
        """The sums of one response for the watch over the reward, which the trainer adds up."""
        if self._settings.reward_watch is None or place.validation:
            return {}
        settings, longest = self._settings.model_dump_json(), self.rollout_config.response_length
        watch = _watch(settings, longest, task.benchmark, place.protocol)
        watch.saw(task, scored)
        return watch.sums()

    async def _thought(self, asking: Any, task: StepTaskModel, past: Sequence[HistoryEntry], root: Path) -> str | None:
        """The thought of a patch, the policy's own or another model's; it is not trained on."""
        if self._settings.rollout.patch == "off-policy":
            return await _off_policy(self._settings.rollout.model_dump_json())(task, root)
        answer: LoopResponse = await asking(on_policy_input(self._model, task, past))
        return read_thought(answer.text, model=self._model, task=task)


def _score(last: AgentLoopOutput, rollout: SemiOnlineRollout, counted: int, *, cut: bool) -> None:
    """The session's metrics; verl copies them from the last output to the others.

    ``progress`` is the share of steps before the first mismatch, ``success`` whether all matched: UI-S1's SOP (its appendix C)
    if rollouts are made without patches.
    """
    last.reward_score = sum(step.reward for step in rollout.steps) / counted
    last.extra_fields["reward_extra_info"] = {
        "score": last.reward_score,
        "progress": rollout.progress,
        "success": float(rollout.succeeded),
        "patches": float(rollout.patches_used),
        "prompt_too_long": float(cut),
    }


@lru_cache(maxsize=8)
def _off_policy(settings: str) -> Callable[[StepTaskModel, Path], Awaitable[str | None]]:
    """The thoughts of off-policy patches, from their server or their file."""
    rollout = RolloutSettings.model_validate_json(settings)
    if rollout.server is not None:
        return ServedThoughts(rollout.server, {}).thought
    written = read_thoughts_file(Path(rollout.thoughts or ""))

    async def read(task: StepTaskModel, root: Path) -> str | None:
        return written.get(str(task.key))

    return read


@lru_cache(maxsize=8)
def _adapter(settings: str) -> ABCModel:
    """The adapter, cached because verl creates a loop for every session."""
    return VerlSettings.model_validate_json(settings).open_adapter()


@lru_cache(maxsize=8)
def _scorer(settings: str, longest: int) -> ResponseScorer:
    """The scorer of responses with at most ``longest`` tokens."""
    return VerlSettings.model_validate_json(settings).reward.open_scorer(_adapter(settings), longest)


@lru_cache(maxsize=8)
def _watch(settings: str, longest: int, benchmark: str, protocol: str) -> RewardWatch:
    """Judges exact match under the benchmark's protocol, and looks for signs of a gamed reward."""
    watch = VerlSettings.model_validate_json(settings).reward_watch
    assert watch is not None
    return RewardWatch(watch, _scorer(settings, longest), {benchmark: protocol})


@lru_cache(maxsize=8)
def _prompts(settings: str, root: Path) -> PromptBuilder:
    """Builds prompts; cached to keep decoded screenshots for the sessions of a group."""
    return PromptBuilder(_adapter(settings), root)
