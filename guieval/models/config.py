"""What is known of a checkpoint: its family, its server, its scaffold and its options."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from guieval.models.scaffold import Scaffold


class Marks(BaseModel):
    """What a checkpoint that is not listed must have to be run as this one (:mod:`guieval.models.unlisted`).

    A pattern of the name that begins with ``^`` is that of a base model: that others are trained from it says nothing of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    name: str = Field(min_length=1, description="regular expression of the words in its name, in lower case with hyphens")
    model_type: tuple[str, ...] = Field((), description="those that its config.json may have; empty: any, as it is not known")
    template: str | None = Field(None, description="text in its chat template")


class ModelConfig(BaseModel):
    """A checkpoint: one YAML file in ``configs/models/``, or an unlisted one with what was ``resolved``."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    name: str = Field(min_length=1, description="as users type it")
    adapter: str = Field(min_length=1, description="registered adapter, i.e. the module's name in model_adapters/")
    hf_id: str | None = Field(
        None, description="Hugging Face id, or folder, also the name requested from a server that serves several"
    )
    served_as: str | None = Field(None, description="name by which a hosted API knows it, if that is not its own")
    folder: str | None = Field(None, description="folder of its weights in configs/checkpoints/, if they are shipped")
    engine: Literal["openai", "openai-responses", "anthropic", "gemini", "local"] = Field(
        "openai", description="default engine"
    )
    scaffold: Scaffold = Field(Scaffold(), description="settings in which it is run; its file names the default ones")
    options: dict[str, Any] = Field(
        default_factory=dict, description="adapter options: in its file those that the weights fix, e.g. image limits"
    )
    frame: str | None = Field(None, description="coordinate frame of its responses, in the words of the adapter's frame")
    context_length: int | None = Field(None, ge=1, description="tokens of prompt and response together")
    vllm: dict[str, Any] = Field(default_factory=dict, description="arguments of `vllm serve` that it needs")
    licence: str | None = None
    notes: str = ""
    marks: Marks | None = Field(None, exclude=True, description="what shows that an unlisted checkpoint is like it")
    resolved: dict[str, str] = Field(
        default_factory=dict,
        exclude_if=lambda chosen: not chosen,
        description="of an unlisted checkpoint: family, frame, limits and scaffold that were chosen, each with the reason",
    )
