"""Second stage: the language model learns to answer, over features of screens that are computed once.

A batch has a few screens, and of each one several conversations in one row: the image comes first, and every conversation
sees the image and itself, at the positions it would have alone. That is the policy's own input, at a fraction of the cost.
Prompts and responses are the adapter's own. The history takes every form that it has in an evaluation or a rollout: the model's
own answers, the reference's steps, or bare actions.

With the loss of the response alone, the model soon names the right icon but guesses its position, because attention goes to the
goal's words and not to the image. So the attention of one layer is trained directly while a position is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from guieval.actions import Click, Point
from guieval.history import HistoryEntry, reference_entry
from guieval.models import ABCModel
from guieval.playground.icons.screens import SIZE, Icon, IconScreen, PlacedIcon, draw_goal, draw_screen, goal_text
from guieval.playground.phone.dice import Dice
from guieval.playground.tiny_policy.building import COLUMNS, ROWS, TOKENS, Policy, tokens_of
from guieval.playground.tiny_policy.optimiser import Optimiser
from guieval.playground.tiny_policy.tokens import END_OF_TURN, IMAGE, TURN, VISION_END, VISION_START
from guieval.steps import StepTaskModel
from guieval.training.speed import Watched, autocast

if TYPE_CHECKING:
    import torch

BATCH = 8
"""Screens a step."""
CONVERSATIONS = 6
"""Conversations a screen."""
_CHUNK = 16
_RATE = 1e-3
_PAD_LABEL = -100

_HEAD = f"{TURN}user\n{VISION_START}"
_TURN_END = f"{END_OF_TURN}\n{TURN}assistant\n"

_DIGIT_WEIGHTS = (2.0, 0.9, 0.1)
"""Loss weights of a coordinate's digits: the third is noise to a model whose image tokens are 28 pixels wide."""
_FORM_WEIGHT = 0.1
_LOOKING_LAYER, _LOOKING_HEADS, _LOOKING_WEIGHT = 2, 2, 0.3
"""The layer (of four) whose attention is trained, how many of its first heads (they share their keys), and the loss weight."""


@dataclass(frozen=True)
class Seen:
    """A screen and the vision model's output: the merged features and those of its shortcuts, (tokens, hidden)."""

    screen: IconScreen
    features: torch.Tensor
    shortcuts: tuple[torch.Tensor, ...]


def look_at(policy: Policy, *, screens: int, seed: int) -> list[Seen]:
    """``screens`` drawn screens with their features; the vision model is no longer trained."""
    import torch

    found: list[Seen] = []
    for start in range(0, screens, _CHUNK):
        drawn = [draw_screen(Dice("tiny language", seed, number)) for number in range(start, min(start + _CHUNK, screens))]
        with torch.no_grad(), autocast():
            output = policy.look_at(drawn)
        features = output.pooler_output.float().split(TOKENS)
        shortcuts = zip(*(layer.float().split(TOKENS) for layer in output.deepstack_features), strict=True)
        found += [Seen(*item) for item in zip(drawn, features, shortcuts, strict=True)]
    return found


class Conversation(NamedTuple):
    """The user's text after the image, the policy's response, and what it taps."""

    question: str
    answer: str
    target: PlacedIcon


def draw_conversation(dice: Dice, screen: IconScreen, adapter: ABCModel) -> Conversation:
    """A step of a goal of the split ``train`` over some of the screen's icons; the points of past taps are random."""
    shown = [placed.icon for placed in screen.icons]
    goal = None
    while goal is None:
        goal = draw_goal(dice, "train", shown, dice.between(1, 4))
    index = dice.below(len(goal))
    own = dice.chance(0.5)
    bare = dice.chance(0.1)
    history = []
    for past in range(index):
        task = _task(goal, past, Point(dice.uniform(100, 900), dice.uniform(100, 950)))
        entry = reference_entry(task)
        if own:
            entry = HistoryEntry(task, task.action, goal[past].name, None, adapter.render(task, task.action), "model")
        if bare:
            entry = HistoryEntry(task, task.action, None, None, None, entry.origin)
        history.append(entry)
    target = screen.find(goal[index])
    task = _task(goal, index, target.centre)
    prompt = adapter.prepare_input(task, history)
    return Conversation(prompt.text, adapter.render(task, task.action, goal[index].name), target)


def _task(goal: tuple[Icon, ...], index: int, place: Point) -> StepTaskModel:
    return StepTaskModel(
        benchmark="tiny",
        dataset="tiny",
        split="train",
        episode_id="made up",
        step_index=index,
        episode_length=len(goal),
        instruction=goal_text(goal),
        low_level_instruction=goal_text(goal[index : index + 1]),
        screenshot=f"{index}.png",
        screenshot_size=SIZE,
        action=Click(point=place),
    )


class TokenRow(NamedTuple):
    """One screen's conversations as tokens: ids, labels and their weights, positions, and each token's conversation (-1: all).

    ``looks`` are places in the row that predict a digit, each with the places of the image tokens that show the target.
    """

    ids: list[int]
    labels: list[int]
    weights: list[float]
    positions: list[int]
    owners: list[int]
    looks: list[tuple[int, list[int]]]


class RowWriter:
    """Turns conversations into rows of tokens; ``head`` are the tokens before the text of a first message with one image."""

    def __init__(self, policy: Policy) -> None:
        tokenizer = policy.processor.tokenizer
        self._encode: Callable[[str], list[int]] = lambda text: list(tokenizer(text, add_special_tokens=False).input_ids)
        self.pad: int = tokenizer.pad_token_id
        self.image: int = tokenizer.convert_tokens_to_ids(IMAGE)
        self._end: int = tokenizer.eos_token_id
        self._digits = set(self._encode("0123456789"))
        self._form = {*self._encode(" click(,)"), *self._encode(" ")}
        start = self._encode(_HEAD)
        self._first_image = len(start)
        self.head = [*start, *[self.image] * TOKENS, *self._encode(VISION_END)]
        # Qwen's positions: the image's tokens are a grid after the text before it, and the text after the image follows both
        self._after_image = len(start) + max(ROWS, COLUMNS)
        down = [len(start) + number // COLUMNS for number in range(TOKENS)]
        across = [len(start) + number % COLUMNS for number in range(TOKENS)]
        before = list(range(len(start)))
        self.head_positions = [[*before, *places, self._after_image] for places in ([len(start)] * TOKENS, down, across)]

    def row(self, conversations: Sequence[Conversation]) -> TokenRow:
        row = TokenRow([*self.head], [_PAD_LABEL] * len(self.head), [0.0] * len(self.head), [], [-1] * len(self.head), [])
        for number, (question, answer, target) in enumerate(conversations):
            question_ids = self._encode(question + _TURN_END)
            answered = [*self._encode(answer), self._end]
            before = len(row.ids) + len(question_ids) - 1
            shown = [self._first_image + token for token in tokens_of(target)]
            row.looks.extend((before + place, shown) for place, token in enumerate(answered) if token in self._digits)
            row.ids.extend([*question_ids, *answered])
            row.labels.extend([*[_PAD_LABEL] * len(question_ids), *answered])
            row.weights.extend([*[0.0] * len(question_ids), *self._weights(answered)])
            row.positions.extend(self._after_image + 1 + place for place in range(len(question_ids) + len(answered)))
            row.owners.extend([number] * (len(question_ids) + len(answered)))
        return row

    def _weights(self, answered: Sequence[int]) -> list[float]:
        weights, run = [], 0
        for token in answered:
            run = run + 1 if token in self._digits else 0
            if run:
                weights.append(_DIGIT_WEIGHTS[run - 1])
            else:
                weights.append(_FORM_WEIGHT if token in self._form or token == self._end else 1.0)
        return weights

    def batch(self, rows: Sequence[TokenRow]) -> dict[str, torch.Tensor]:
        """``input_ids``, ``labels``, ``weights`` (rows, length), ``position_ids`` (3, rows, length), ``attention_mask``."""
        import torch

        length = max(len(row.ids) for row in rows)

        def padded(values: Sequence[Any], filling: Any) -> list[Any]:
            return [*values, *[filling] * (length - len(values))]

        places = [[padded([*axis, *row.positions], 0) for row in rows] for axis in self.head_positions]
        owners = torch.tensor([padded(row.owners, -2) for row in rows])
        seen = (owners[:, None, :] == -1) | (owners[:, None, :] == owners[:, :, None])
        return {
            "input_ids": torch.tensor([padded(row.ids, self.pad) for row in rows]),
            "labels": torch.tensor([padded(row.labels, _PAD_LABEL) for row in rows]),
            "weights": torch.tensor([padded(row.weights, 0.0) for row in rows]),
            "position_ids": torch.tensor(places),
            "attention_mask": (seen & torch.ones(length, length, dtype=torch.bool).tril())[:, None],
        }


def train_language(
    policy: Policy,
    adapter: ABCModel,
    seen: Sequence[Seen],
    watched: Watched,
    *,
    steps: int,
    seed: int,
    say: Callable[[str], None],
) -> None:
    """Train everything but the vision model for ``steps`` steps of :data:`BATCH` screens."""
    import torch

    watched.layer = _LOOKING_LAYER
    writer = RowWriter(policy)
    model = policy.model
    optimiser = Optimiser([item for item in model.named_parameters() if ".visual." not in item[0]], _RATE)
    mean: torch.Tensor | None = None
    for step in range(steps):
        dice = Dice("tiny language", seed, "step", step)
        chosen = [dice.pick(seen) for _ in range(BATCH)]
        rows = [writer.row([draw_conversation(dice, item.screen, adapter) for _ in range(CONVERSATIONS)]) for item in chosen]
        batch = writer.batch(rows)
        losses, weights = token_losses(policy, batch, chosen)
        looking = _looking_loss(watched, rows, batch["attention_mask"])
        share = min(1.0, (step + 1) / 50) * (1 - 0.5 * step / steps)
        optimiser.step((losses * weights).sum() / weights.sum() + _LOOKING_WEIGHT * looking, share)
        parts = torch.stack([*(losses.detach()[weights == weight].mean() for weight in (1.0, 2.0)), looking.detach()])
        mean = parts if mean is None else 0.9 * mean + 0.1 * parts
        if (step + 1) % 25 == 0:
            named, placed, looked = mean.tolist()
            say(f"language {step + 1}/{steps}: names {named:.2f}, first digits {placed:.2f}, looking {looked:.2f}")
    watched.layer = None


def _looking_loss(watched: Watched, rows: Sequence[TokenRow], mask: torch.Tensor) -> torch.Tensor:
    """Minus the logarithm of the attention that falls on the target while its place is written, averaged."""
    import torch

    losses = []
    for number, row in enumerate(rows):
        places = [place for place, _ in row.looks]
        wanted = torch.zeros(len(places), mask.shape[-1], dtype=torch.bool)
        for look, (_, shown) in enumerate(row.looks):
            wanted[look, shown] = True
        queries = watched.queries[number, :_LOOKING_HEADS, places]
        scores = queries @ watched.keys[number, 0].T / queries.shape[-1] ** 0.5
        scores = scores.masked_fill(~mask[number, 0, places], -torch.inf)
        found = scores.masked_fill(~wanted, -torch.inf).logsumexp(-1) - scores.logsumexp(-1)
        losses.append(-found.mean())
    return torch.stack(losses).mean()


def token_losses(policy: Policy, batch: dict[str, torch.Tensor], seen: Sequence[Seen]) -> tuple[torch.Tensor, torch.Tensor]:
    """The cross-entropy of every labelled token and its weight, both (labelled tokens,)."""
    from torch.nn import functional
    from transformers.modeling_outputs import BaseModelOutputWithPooling

    labels, weights = batch["labels"][:, 1:], batch["weights"][:, 1:]
    output: Any = BaseModelOutputWithPooling(pooler_output=[item.features for item in seen])
    output.deepstack_features = [list(layer) for layer in zip(*(item.shortcuts for item in seen), strict=True)]
    inputs = {name: batch[name] for name in ("input_ids", "position_ids", "attention_mask")}
    with autocast():
        hidden = policy.model.model(**inputs, mm_encoder_outputs={"image": output}, use_cache=False).last_hidden_state
        counted = labels != _PAD_LABEL
        logits = policy.model.lm_head(hidden[:, :-1][counted])
    return functional.cross_entropy(logits.float(), labels[counted], reduction="none"), weights[counted]
