"""What is known of a checkpoint: its family, its server, its sampling and its options."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from guieval.settings.sampling import check_sampling


class ModelConfig(BaseModel):
    """A checkpoint: one YAML file in ``configs/models/``."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    name: str = Field(min_length=1, description="as users type it")
    adapter: str = Field(min_length=1, description="registered adapter, i.e. the module's name in model_adapters/")
    hf_id: str | None = Field(None, description="Hugging Face id, also the name requested from a server that serves several")
    served_as: str | None = Field(None, description="name by which a hosted API knows it, where that is not its own")
    folder: str | None = Field(None, description="folder of its weights in configs/checkpoints/, where they are shipped")
    engine: Literal["openai", "openai-responses", "anthropic", "gemini", "local"] = Field(
        "openai", description="default engine"
    )
    sampling: Annotated[dict[str, Any], AfterValidator(check_sampling)] = Field(
        default_factory=dict, description="request parameters its authors recommend"
    )
    options: dict[str, Any] = Field(default_factory=dict, description="adapter options, e.g. image limits")
    thinking: bool | None = Field(None, description="default of the thinking switch; null where the family has none")
    frame: str | None = Field(None, description="coordinate frame of its replies, in the words of the adapter's frame")
    context_length: int | None = Field(None, ge=1, description="tokens of prompt and reply together")
    vllm: dict[str, Any] = Field(default_factory=dict, description="arguments of `vllm serve` that it needs")
    licence: str | None = None
    notes: str = ""
