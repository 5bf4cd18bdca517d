"""The model side: the adapter contract, messages, prompts, reading of replies, and the audit of coordinate frames."""

from guieval.models.contract import (
    ABCModel,
    Engine,
    ImageForm,
    ImageRef,
    Message,
    ModelConfig,
    ModelInput,
    ParsedResponse,
    Part,
    Reply,
    Request,
    Role,
    fill,
    load_template,
)

__all__ = [
    "ABCModel",
    "Engine",
    "ImageForm",
    "ImageRef",
    "Message",
    "ModelConfig",
    "ModelInput",
    "ParsedResponse",
    "Part",
    "Reply",
    "Request",
    "Role",
    "fill",
    "load_template",
]
