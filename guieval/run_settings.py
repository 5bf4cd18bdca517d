"""What follows from a run's settings: the request parameters of each sample, and how mismatches are patched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guieval.config import RunConfig
from guieval.errors import UsageError
from guieval.models import ModelConfig
from guieval.modes import PatchPolicy


def sample_parameters(config: RunConfig, model: ModelConfig) -> list[dict[str, Any]]:
    """The request parameters of each sample of a step.

    The first is asked as one alone would be. Of several, each that is not greedy gets the seed ``seed`` + its number: that of
    ``sampling``, else the run's. The further ones have ``resampling`` over the parameters of the first. Raises
    :class:`UsageError` when a server would be asked the same greedy question more than once.
    """
    first = {**model.sampling, **config.sampling}
    if config.samples == 1:
        if config.resampling:
            raise UsageError("setting 'resampling' is for further samples, and there are none: add --samples N")
        return [first]
    further = {**first, **config.resampling}
    asks_a_server = (model.engine if config.engine == "auto" else config.engine) not in ("local", "replay")
    if asks_a_server and is_greedy(further):
        raise UsageError(
            f"{config.samples} samples of greedy decoding (temperature 0) would be {config.samples} times the same answer: "
            "add --set resampling.temperature=0.7, which leaves the first one greedy, or --set sampling.temperature=0.7"
        )
    seed = further.get("seed", config.seed)
    if type(seed) is not int:
        raise UsageError(f"setting 'sampling.seed' is {seed!r}: expected a whole number")
    each = [first, *(dict(further) for _ in range(config.samples - 1))]
    return [given if is_greedy(given) else {**given, "seed": seed + number} for number, given in enumerate(each)]


def is_greedy(sampling: Mapping[str, Any]) -> bool:
    """Whether request parameters ask for the likeliest token each time; those not given are the server's, and not greedy."""
    return sampling.get("temperature") == 0 or sampling.get("top_k") == 1


def patch_policy(config: RunConfig) -> PatchPolicy:
    """How a run patches mismatches. Raises :class:`UsageError` for settings of patches that do not go together."""
    given = {"patch_budget": config.patch_budget, "patch_model": config.patch_model, "patch_base_urls": config.patch_base_urls}
    flags = {"patch_budget": "--patch-budget", "patch_model": "--patch-model", "patch_base_urls": "--patch-base-url"}
    if config.patch == "none":
        for name, value in given.items():
            if value:  # a budget of 0 is no patch
                raise UsageError(f"{flags[name]} is for patches, and there are none: add --patch thought-free, say")
        return PatchPolicy()
    budget = None if config.patch_budget == "unlimited" else config.patch_budget
    policy = PatchPolicy(config.patch, 1 if config.patch_budget is None else budget)  # type: ignore[arg-type]  # it checks
    for name in ("patch_model", "patch_base_urls"):
        if policy.method == "off-policy" and not given[name]:
            raise UsageError(
                "off-policy patches are written by an auxiliary model: add --patch-base-url URL of an OpenAI-compatible "
                "endpoint and --patch-model NAME, as it is called there"
            )
        if policy.method != "off-policy" and given[name]:
            raise UsageError(f"{flags[name]} is for --patch off-policy; {policy.method} patches ask no auxiliary model")
    return policy
