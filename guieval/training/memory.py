"""The memory that one process of a training needs, computed from the shape of the model. Needs no torch.

Weights, gradients and optimiser states are exact for the three ways of distributing them. Activations are the tensors that
PyTorch saves for the backward pass of a Qwen-VL layer with fused attention. CUDA's context and what the allocator cannot use
again are shares that were measured on one H100 (docs/gpu.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from guieval.training.speed import KEPT_BYTES

Sharding: TypeAlias = Literal["ddp", "zero3", "fsdp2"]
Phase: TypeAlias = Literal["training", "generation", "evaluation"]
PHASES: tuple[Phase, ...] = get_args(Phase)
When: TypeAlias = Literal["always"] | Phase
ALWAYS: tuple[When, ...] = ("always",)
WAKES: tuple[When, ...] = ("generation", "evaluation")
"""The phases in which a vLLM that sleeps is awake; the second one if it answers an evaluation inside the training."""
GIB = 1 << 30
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
CONTEXT = 1.4 * GIB
"""CUDA's context with the kernels and workspaces of torch, as measured on an H100."""
FRAGMENTS = {False: 0.35, True: 0.05}
"""Share of what comes and goes that the allocator cannot use again, by whether its segments can be expanded.

The first is fitted to the two trainings that were measured on an H100; the second is an estimate until one is measured.
"""
LIVE, BUCKET = 10**9, 5 * 10**8
"""DeepSpeed's stage3_max_live_parameters and reduce_bucket_size, in elements."""
TILE = (4096, 32768)
"""Tokens and vocabulary entries whose logits TRL 1.16 has in memory at a time."""


@dataclass(frozen=True)
class Layer:
    """One block of a transformer: widths of the residual stream, of queries, of keys (or values) and of the MLP."""

    hidden: int
    queries: int
    keys: int
    intermediate: int
    heads: int

    def saved(self, compute: int, residual: int, *, vision: bool) -> int:
        """Bytes per token that the backward pass needs, with ``compute`` and ``residual`` bytes per value.

        Both norms save their input in float32 and the normalised values; under autocast (``residual`` > ``compute``) each
        linear layer saves a copy of its own. The vision tower saves values with the storage of queries and keys, and the
        attention's output before and after its parts are joined.
        """
        inputs = 2 if residual == compute else 3 if vision else 5  # vision has one layer for queries, keys and values
        attention = 7 * self.hidden if vision else 2 * (self.queries + self.keys)
        values = inputs * self.hidden + attention + 4 * self.intermediate
        return 2 * self.hidden * (4 + residual) + compute * values + 8 + 4 * self.heads


@dataclass(frozen=True)
class ModelSize:
    """The sizes of a model (language model and vision tower) on which memory depends.

    ``parameters`` are the checkpoint's and ``trained`` those that change; with LoRA, ``adapters`` are trained and not among
    ``parameters``. ``unit`` is the largest layer and ``head`` the output layer, in parameters. ``patch`` is the number of
    values of an image patch, of which ``patches`` make a token.
    """

    parameters: int
    trained: int
    adapters: int
    unit: int
    head: int
    layers: int
    text: Layer
    vocabulary: int
    blocks: int
    vision: Layer
    vision_trained: bool
    patch: int
    patches: int

    @property
    def cached(self) -> int:
        """Values of one token in the key-value cache."""
        return 2 * self.layers * self.text.keys


@dataclass(frozen=True)
class Rows:
    """The batch of one process at a time: ``rows`` of ``tokens``, of which ``image`` and ``completion`` at most."""

    rows: int
    tokens: int
    image: int
    completion: int


@dataclass(frozen=True)
class Method:
    """How a model is trained: types of values, copies of the model, and what generates responses.

    ``generated`` prompts are answered at once by the trained model itself (0: none, or vLLM does it), and ``evaluated`` ones in
    an evaluation inside the training (0: none, or vLLM answers them). ``vllm`` is the share of the GPU that a colocated vLLM
    takes, ``sleeps`` says whether it frees that share while the model is trained, and ``evaluates`` whether it answers
    evaluations too. ``expandable`` is PYTORCH_CUDA_ALLOC_CONF's setting of segments.
    """

    dtype: str
    mixed: bool
    checkpointing: bool
    reference: bool
    generated: int = 0
    evaluated: int = 0
    vllm: float = 0.0
    sleeps: bool = False
    evaluates: bool = False
    expandable: bool = True


@dataclass(frozen=True)
class MemoryPart:
    """One part of a process's memory. ``when`` is the phase in which it is there; ``exact`` ones are counted."""

    name: str
    bytes: float
    when: When
    exact: bool


def items(
    size: ModelSize, method: Method, rows: Rows, *, sharding: Sharding, processes: int, gpu: float | None = None
) -> list[MemoryPart]:
    """All parts of a process's memory; ``gpu`` is that of its GPU, of which a colocated vLLM takes its share."""
    shared = processes if sharding != "ddp" else 1
    stored = BYTES[method.dtype]
    compute = 2 if method.mixed else stored
    found = [*_states(size, method, sharding, shared, processes > 1)]
    found += _gathered(size, method, sharding, compute)
    found += _activations(size, method, rows, compute, residual=stored if sharding == "ddp" else compute)
    found += _answering("generation", method.generated, size, rows, sharding, compute)
    found += _answering("evaluation", method.evaluated, size, rows, sharding, compute)
    if method.vllm and gpu is not None:
        name, awake = f"vLLM ({method.vllm:.0%} of the GPU)", ALWAYS
        if method.sleeps:
            awake = WAKES if method.evaluates else WAKES[:1]
        found += [MemoryPart(name, method.vllm * gpu, when, exact=True) for when in awake]
    if once(size, sharding):
        found.append(MemoryPart("outputs of the frozen vision tower", KEPT_BYTES, "always", exact=False))
    found.append(MemoryPart("CUDA's context", CONTEXT, "always", exact=False))
    passing = sum(item.bytes for item in found if item.when != "always" and not item.name.startswith("vLLM"))
    found.append(MemoryPart("fragments", FRAGMENTS[method.expandable] * passing, "always", exact=False))
    return [item for item in found if item.bytes]


def once(size: ModelSize, sharding: Sharding) -> bool:
    """Whether the vision tower runs once a picture (:func:`guieval.training.speed.frozen_vision`)."""
    return not size.vision_trained and sharding == "ddp"


def _answering(
    when: Literal["generation", "evaluation"], prompts: int, size: ModelSize, rows: Rows, sharding: Sharding, compute: int
) -> Iterator[MemoryPart]:
    """What it takes the model in training to answer ``prompts`` at once: the cache, and the largest layer of their prefill.

    A frozen tower that is not sharded computes one picture at a time.
    """
    if not prompts:
        return
    what = "responses" if when == "generation" else "evaluated steps"
    tokens = prompts * rows.tokens
    yield MemoryPart(f"key-value cache of the {what}", tokens * size.cached * compute, when, exact=False)
    text = tokens * (2 * size.text.intermediate + 4 * size.text.hidden + size.text.queries + 2 * size.text.keys) * compute
    patches = (1 if once(size, sharding) else prompts) * rows.image * size.patches
    tower = patches * ((2 * size.vision.intermediate + 8 * size.vision.hidden) * compute + 4 * size.patch)
    yield MemoryPart(f"the largest layer of the {what}' prompts", max(text, tower), when, exact=False)
    if sharding == "zero3":
        yield MemoryPart(f"all weights, gathered for the {what}", size.parameters * compute, when, exact=False)


def _states(size: ModelSize, method: Method, sharding: Sharding, shared: int, several: bool) -> Iterator[MemoryPart]:
    """Weights, gradients, optimiser and reference: the parts that are counted."""
    stored = BYTES[method.dtype]
    frozen = size.parameters - (0 if size.adapters else size.trained)
    reference = stored
    match sharding:
        case "ddp":
            kept = 4 if size.adapters else stored  # peft makes adapters in float32
            weights, gradients, states = frozen * stored + size.trained * kept, kept, 2 * kept
        case "zero3":  # DeepSpeed's weights are of the type in which it computes; it has copies in float32 of trained ones
            reference = 2 if method.mixed else stored
            weights, gradients, states = (frozen + size.trained) * reference, 4, 12
        case "fsdp2":
            kept = 4 if method.mixed else stored
            weights, gradients, states = frozen * stored + size.trained * kept, kept, 2 * kept
    yield MemoryPart("weights", weights / shared, "always", exact=True)
    # DeepSpeed keeps its partition of them between the steps
    when: Literal["always", "training"] = "always" if sharding == "zero3" else "training"
    yield MemoryPart("gradients", size.trained * gradients / shared, when, exact=True)
    yield MemoryPart("optimiser (two AdamW states)", size.trained * states / shared, "always", exact=True)
    if method.reference and not size.adapters:
        yield MemoryPart("reference model", size.parameters * reference / shared, "always", exact=True)
    if sharding == "ddp" and several:
        yield MemoryPart("buckets of DDP's gradients", size.trained * gradients, "always", exact=True)


def _gathered(size: ModelSize, method: Method, sharding: Sharding, compute: int) -> Iterator[MemoryPart]:
    """Copies of weights and gradients in the type of the computation."""
    if sharding == "ddp" and method.mixed and method.dtype == "float32" and not size.adapters:
        yield MemoryPart("autocast's copy of the weights", size.trained * compute, "training", exact=False)
    elif sharding == "zero3":
        live = min(size.parameters, LIVE) + min(size.trained, BUCKET)
        yield MemoryPart("gathered layers and their gradients", live * compute, "training", exact=False)
    elif sharding == "fsdp2":
        copies = 2 if size.trained > size.adapters else 1
        yield MemoryPart(
            "gathered layers and their gradients", copies * (2 * size.unit + size.head) * compute, "training", exact=False
        )


def _activations(size: ModelSize, method: Method, rows: Rows, compute: int, residual: int) -> Iterator[MemoryPart]:
    tokens, patches = rows.rows * rows.tokens, rows.rows * rows.image * size.patches
    layer = size.text.saved(compute, residual, vision=False)
    text = tokens * (size.layers * size.text.hidden * residual + layer if method.checkpointing else size.layers * layer)
    yield MemoryPart("activations of the language model", text, "training", exact=False)
    block = size.vision.saved(compute, residual, vision=True)
    tower = block  # a frozen tower saves nothing, and needs the memory of the block that is computed
    if size.vision_trained:
        inputs = size.blocks * size.vision.hidden * residual
        tower = inputs + block if method.checkpointing else size.blocks * block
    yield MemoryPart("activations of the vision tower", patches * tower, "training", exact=False)
    tile = min(rows.rows * rows.completion, TILE[0]) * min(size.vocabulary, TILE[1]) * compute
    gradient = 0 if size.adapters else size.head * 4
    yield MemoryPart("logits of a tile, and the gradient of the output layer", tile + gradient, "training", exact=False)
    yield MemoryPart("pixels", patches * size.patch * 4, "training", exact=False)


def peak(parts: list[MemoryPart], when: Phase) -> float:
    """Bytes that are in memory at the same time in one phase."""
    return sum(item.bytes for item in parts if item.when in ("always", when))


def counted(parts: list[MemoryPart]) -> float:
    """The largest sum over a phase of what is counted and not estimated: less than this cannot suffice."""
    exact = [item for item in parts if item.exact]
    return max(peak(exact, phase) for phase in PHASES)


def checkpoint_bytes(size: ModelSize, method: Method, sharding: Sharding) -> float:
    """What one checkpoint takes on the disk: weights and both states of AdamW, by all processes together.

    DeepSpeed writes its weights in 16 bits twice (its own parts, and the whole model) and its float32 copies of trained ones.
    """
    stored = BYTES[method.dtype]
    if size.adapters:
        return 12.0 * size.adapters
    match sharding:
        case "zero3":
            return 2.0 * (2 if method.mixed else stored) * size.parameters + 12.0 * size.trained
        case "fsdp2":
            stored = 4 if method.mixed else stored
    return float(stored * (size.parameters + 2 * size.trained))
