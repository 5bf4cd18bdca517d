"""What is known of a checkpoint: its family, its server, its scaffold and its options."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from guieval.models.scaffold import Scaffold


class ModelConfig(BaseModel):
    """A checkpoint: one YAML file in ``configs/models/``."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    name: str = Field(min_length=1, description="as users type it")
    adapter: str = Field(min_length=1, description="registered adapter, i.e. the module's name in model_adapters/")
    hf_id: str | None = Field(None, description="Hugging Face id, also the name requested from a server that serves several")
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
