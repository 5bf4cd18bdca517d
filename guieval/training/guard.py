"""Checks the environment of a training: the extra is installed, and TRL is a supported version.

TRL has no public hook for semi-online rollouts or dynamic sampling (its ``rollout_func`` keeps one row per prompt, and its
environments cannot rewrite the policy's own turns), so private methods are overridden or called. Before a training begins,
their parameters are checked here, and their behaviour on tiny inputs in :mod:`.trainers.behaviour`. A release that changes
them is refused with a sentence that names the change. :mod:`.verl.guard` does the same for verl.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from inspect import signature
from typing import Any, NamedTuple

from guieval.errors import UsageError

SUPPORTED = "trl>=1.16,<1.17"
PACKAGES = ("torch", "transformers", "trl", "accelerate", "peft", "datasets", "torchvision")
PRIVATE: dict[str, tuple[str, ...]] = {
    "training_step": ("self", "model", "inputs", "num_items_in_batch"),
    "compute_loss": ("self", "model", "inputs", "return_outputs", "num_items_in_batch"),
    "_prepare_inputs": ("self", "generation_batch"),
    "_get_train_sampler": ("self", "dataset"),
    "_save_checkpoint": ("self", "model", "trial"),
    "_load_optimizer_and_scheduler": ("self", "checkpoint"),
    "_compute_loss": ("self", "model", "inputs"),
    "_tokenize_prompts": ("self", "prompts"),
    "_generate_single_turn": (
        "self",
        "prompt_ids",
        "images",
        "multimodal_fields",
        "num_generations",
        "has_tool_images",
    ),
    "_get_per_token_logps_and_entropies": (
        "self",
        "model",
        "input_ids",
        "attention_mask",
        "logits_to_keep",
        "batch_size",
        "compute_entropy",
        "compute_aux_loss",
        "pixel_values",
        "image_grid_thw",
        "num_images",
        "pixel_attention_mask",
        "spatial_shapes",
        "num_tiles",
        "image_sizes",
        "token_type_ids",
        "mm_token_type_ids",
        "image_position_ids",
    ),
}
"""Private methods of GRPOTrainer that are overridden (the first six) or called; their parameters in the supported versions."""

INTERNAL: dict[str, tuple[str, ...]] = {
    "trl.trainer.utils": ("RepeatSampler", "use_adapter"),
    "trl.models.utils": ("disable_gradient_checkpointing",),
    "accelerate.utils": ("DistributedType", "gather_object"),
}
"""Names imported from modules that are not TRL's or accelerate's public interface."""


class Behaviour(NamedTuple):
    """A behaviour of another package's internals that is relied on.

    ``name`` is the class and the method, ``does`` completes the sentence "NAME no longer ...", and ``holds`` tests it.
    """

    name: str
    does: str
    holds: Callable[..., bool]


def require_extra() -> None:
    """:class:`UsageError` with the pip line unless all packages of the extra are installed; none of them is imported."""
    require_packages("training", PACKAGES, "train")


def require_trl() -> None:
    """:class:`UsageError` naming the supported versions unless TRL has the internals that are relied on."""
    for module, names in INTERNAL.items():
        for name in names:
            if not _has(module, name):
                raise _unsupported(f"{module}.{name} does not exist", "trl", SUPPORTED)
    from trl import GRPOTrainer

    check_trainer(GRPOTrainer)


def check_trainer(trainer: Any) -> None:
    """:class:`UsageError` naming the supported versions unless ``trainer``, TRL's GRPOTrainer, is as this package knows it."""
    check_methods(trainer, PRIVATE, "trl", SUPPORTED)


def require_packages(purpose: str, packages: Iterable[str], extra: str) -> None:
    """:class:`UsageError` with the pip line of ``extra`` unless all ``packages`` are installed; none of them is imported."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"{purpose} needs the package {missing[0]!r}: pip install 'guieval[{extra}]'")


def check_methods(kind: Any, methods: Mapping[str, tuple[str, ...]], package: str, supported: str) -> None:
    """:class:`UsageError` unless the class ``kind`` of ``package`` has the methods, with these parameters in this order."""
    for name, expected in methods.items():
        method = getattr(kind, name, None)
        parameters = None if method is None else tuple(signature(method).parameters)
        if parameters == expected:
            continue
        change = "does not exist" if parameters is None else f"takes ({', '.join(parameters)})"
        raise _unsupported(f"{kind.__name__}.{name} {change}", package, supported)


def check_behaviours(behaviours: Iterable[Behaviour], package: str, supported: str, *arguments: Any) -> None:
    """:class:`UsageError` that names the first behaviour of ``package`` that does not hold; ``arguments`` are passed on."""
    for behaviour in behaviours:
        try:
            holds = behaviour.holds(*arguments)
        except Exception as error:  # a changed release may raise anything
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            raise _unsupported(f"{behaviour.name} no longer {behaviour.does} ({reason})", package, supported) from error
        if not holds:
            raise _unsupported(f"{behaviour.name} no longer {behaviour.does}", package, supported)


def require_behaviour(holds: bool, name: str, does: str) -> None:
    """:class:`UsageError` that names TRL's change if a result of its internals is not as this package knows it."""
    if not holds:
        raise _unsupported(f"{name} no longer {does}", "trl", SUPPORTED)


def _unsupported(change: str, package: str, supported: str) -> UsageError:
    try:
        installed = version(package)
    except PackageNotFoundError:
        installed = "of an unknown version"
    return UsageError(
        f"{change} in the installed {package} {installed}; guieval relies on it as it is in {supported}: "
        f"pip install '{supported}'"
    )


def _has(module: str, name: str) -> bool:
    try:
        return hasattr(import_module(module), name)
    except ImportError:
        return False
