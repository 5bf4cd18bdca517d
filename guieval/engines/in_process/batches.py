"""Several prompts as one batch of transformers: which are computed together, how they are padded, and each row's own draws.

A row of a batch has the tokens that it has alone, except for the rounding of floating-point numbers: its random numbers and
penalties do not depend on the other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from guieval.settings.sampling import Draw


class PromptRow(NamedTuple):
    """A request as the model reads it.

    ``inputs`` are the tensors of its processor, ``limit`` is the greatest number of new tokens, and ``seconds`` is how long
    reading took.
    """

    inputs: Mapping[str, Any]
    values: Mapping[str, Any]
    seed: int
    limit: int
    seconds: float = 0.0

    @property
    def length(self) -> int:
        return int(self.inputs["input_ids"].shape[1])

    def fits(self, other: PromptRow) -> bool:
        """Whether both can be in one batch: their parameters differ at most in the seed and in the number of new tokens."""
        return {**self.values, "seed": 0, "max_tokens": 0} == {**other.values, "seed": 0, "max_tokens": 0}


def alike(waiting: Sequence[PromptRow], most: int) -> list[int]:
    """The places of the rows that are computed next: the first one, and those that fit it and are nearest to it in length.

    So little of a batch is padding, and no row waits for more batches than there were rows before it.
    """
    first = waiting[0]
    places = (place for place, row in enumerate(waiting) if row.fits(first))
    return sorted(places, key=lambda place: abs(waiting[place].length - first.length))[:most]


def padded(rows: Sequence[PromptRow], pad: int) -> dict[str, Any]:
    """The inputs of single prompts as one batch: values of tokens are padded on the left, others follow each other."""
    import torch
    from torch.nn.functional import pad as extended

    longest = max(row.length for row in rows)
    batch = {}
    for name in {name: None for row in rows for name in row.inputs}:
        parts = []
        for row in rows:
            if (value := row.inputs.get(name)) is None:
                continue
            if value.ndim == 2 and value.shape == row.inputs["input_ids"].shape:
                value = extended(value, (longest - row.length, 0), value=pad if name == "input_ids" else 0)
            parts.append(value)
        batch[name] = torch.cat(parts)
    return batch


def own_tokens(
    tokens: list[int], ends: Sequence[int], pad: int, stops: Sequence[str], decode: Callable[[list[int]], str]
) -> list[int]:
    """The tokens of a row up to its end, without those that fill the batch after it."""
    for place, token in enumerate(tokens):
        if token == pad and stops and any(stop in decode(tokens[:place]) for stop in stops):
            return tokens[:place]
        if token in ends:
            return tokens[: place + 1]
    return tokens


def processors(values: Mapping[str, Any], seeds: Sequence[int], mask: Any) -> Any:
    """Penalties of tokens and, unless decoding is greedy, draws: with Gumbel noise, the largest is one from the distribution.

    ``mask`` (rows, prompt) is 0 if a prompt is padded. Each row has random numbers of its own. The penalties are OpenAI's:
    ``logit - frequency * count - presence * (count > 0)``.
    """
    import torch
    from transformers import LogitsProcessorList, MinPLogitsWarper, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

    repetition, presence, frequency = (values[f"{name}_penalty"] for name in ("repetition", "presence", "frequency"))
    made: list[Any] = []

    def penalised(ids: Any, scores: Any) -> Any:
        width = mask.shape[1]
        written = torch.zeros_like(scores).scatter_add(1, ids[:, width:], torch.ones_like(ids[:, width:], dtype=scores.dtype))
        seen = written.scatter_add(1, ids[:, :width], mask.to(scores.dtype)) > 0
        scores = torch.where(seen, torch.where(scores < 0, scores * repetition, scores / repetition), scores)
        return scores - frequency * written - presence * (written > 0)

    if (repetition, presence, frequency) != (1.0, 0.0, 0.0):
        made.append(penalised)
    if (draw := Draw.of(values)) is not None:
        divisor, top_k, top_p, min_p = draw
        made.append(TemperatureLogitsWarper(divisor))
        if top_k > 0:
            made.append(TopKLogitsWarper(top_k))
        if top_p < 1:
            made.append(TopPLogitsWarper(top_p))
        if min_p:
            made.append(MinPLogitsWarper(min_p))
        dice = [torch.Generator(mask.device).manual_seed(seed) for seed in seeds]

        def drawn(ids: Any, scores: Any) -> Any:
            noise = torch.stack([torch.empty_like(scores[0]).exponential_(generator=each) for each in dice])
            return scores - noise.log()

        made.append(drawn)
    return LogitsProcessorList(made)
