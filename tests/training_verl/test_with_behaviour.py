"""What the plug-in relies on in verl: it holds as installed, and a change is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from verl.experimental.agent_loop.agent_loop import AgentLoopBase
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync
from verl.trainer.ppo.v1.trainer_base import PPOTrainer

from guieval.errors import UsageError
from guieval.training.guard import VERL_SUPPORTED, check_behaviours
from guieval.training.verl.behaviour import BEHAVIOURS

Changed = Callable[[Callable[..., Any]], Callable[..., Any]]


def test_the_installed_verl_behaves_as_relied_on() -> None:
    check_behaviours(BEHAVIOURS, "verl", VERL_SUPPORTED)


def masked(original: Callable[..., Any]) -> Callable[..., Any]:
    """The reply's last token is not trained on."""

    async def merge(self: Any, *given: Any, **named: Any) -> Any:
        result, mask, logprobs = await original(self, *given, **named)
        return result, [*mask[:-1], 0], logprobs

    return merge


def nothing(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **named: None


def empty(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, **named: {}


def unsorted(original: Callable[..., Any]) -> Callable[..., Any]:
    """Finished groups are among the running ones."""

    def synchronise(self: Any) -> None:
        original(self)
        self.running_keys["train"] |= self.finished_keys.pop("train", set())

    return synchronise


def nothing_dropped(original: Callable[..., Any]) -> Callable[..., Any]:
    def reasons(self: Any, *given: Any) -> Any:
        stale, _, failed, counts = original(self, *given)
        return stale, set(), failed, counts

    return reasons


def uncounted(original: Callable[..., Any]) -> Callable[..., Any]:
    """Dropped groups are not told apart by the reason."""

    def evict(self: Any, *given: Any) -> Any:
        removed, stale, unfit, metrics = original(self, *given)
        return removed, stale + unfit, 0, metrics

    return evict


def half(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, dp_size: original(self, dp_size) // 2


def in_rows(original: Callable[..., Any]) -> Callable[..., Any]:
    def update(self: Any, batch: Any, metrics: Any) -> Any:
        size = self.config.actor_rollout_ref.rollout.n
        self.config.actor_rollout_ref.rollout.n = 1
        try:
            return original(self, batch, metrics)
        finally:
            self.config.actor_rollout_ref.rollout.n = size

    return update


def stores_rows(original: Callable[..., Any]) -> Callable[..., Any]:
    def submit(self: Any, batch: Any) -> Any:
        self.trainer_mode = "colocate_async"
        return original(self, batch)

    return submit


def unequal_in_a_reply(original: Callable[..., Any]) -> Callable[..., Any]:
    def compute(self: Any, batch: Any, metrics: Any) -> Any:
        from verl.trainer.ppo.v1 import trainer_base

        result = original(self, batch, metrics)
        fields = trainer_base.tq.written["fields"]
        fields["advantages"] = torch.nested.as_nested_tensor(
            [torch.arange(len(value), dtype=torch.float32) for value in fields["advantages"].unbind()], layout=torch.jagged
        )
        return result

    return compute


@pytest.mark.parametrize(
    ("kind", "method", "change", "sentence"),
    [
        (AgentLoopBase, "ct_merge_assistant_token", masked, "ct_merge_assistant_token no longer appends a reply to its prompt"),
        (AgentLoopBase, "_get_mm_processor_kwargs", empty, "_get_mm_processor_kwargs no longer returns data."),
        (AgentLoopBase, "_assert_mm_supported", nothing, "_assert_mm_supported no longer refuses images"),
        (ReplayBuffer, "_sync_metadata_from_transfer_queue", unsorted, "ReplayBuffer no longer keeps groups in finished_keys"),
        (ReplayBuffer, "_terminal_eviction_reasons", nothing_dropped, "ReplayBuffer.sample no longer replaces the groups"),
        (ReplayBufferAsync, "_evict_terminal_groups", uncounted, "ReplayBufferAsync.sample no longer replaces each group"),
        (PPOTrainer, "_get_required_batch_multiple", half, "_get_required_batch_multiple no longer fills up to whole"),
        (PPOTrainer, "_update_actor", in_rows, "_update_actor no longer counts ppo_mini_batch_size in prompts"),
        (PPOTrainer, "_submit_batch_to_rollout", stores_rows, "no longer requests single prompts in the mode 'sync'"),
        (PPOTrainer, "_compute_advantage", unequal_in_a_reply, "_compute_advantage no longer writes one advantage"),
    ],
)
def test_a_changed_behaviour_is_refused_by_name(
    kind: Any, method: str, change: Changed, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kind, method, change(getattr(kind, method)))
    with pytest.raises(UsageError) as caught:
        check_behaviours(BEHAVIOURS, "verl", VERL_SUPPORTED)
    assert sentence in str(caught.value) and "pip install 'verl>=0.9.1,<0.10'" in str(caught.value)


def test_a_buffer_that_waits_for_ever_is_refused_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReplayBuffer, "_sampleable_terminal_keys", lambda self, *given: set())
    with pytest.raises(UsageError, match=r"ReplayBuffer\.sample no longer .* \(TimeoutError: no batch after 20 looks"):
        check_behaviours(BEHAVIOURS, "verl", VERL_SUPPORTED)
