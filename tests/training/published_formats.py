"""The formats of rows that ms-swift and LLaMA-Factory publish, as models; a key that a format does not have is an error.

Sources: ms-swift 4.6, docs "Custom dataset" and ``swift/dataset/preprocessor/core.py`` (roles and keys of a message);
LLaMA-Factory 0.9.5, ``data/README.md`` (the fields of ``dataset_info.json`` and the ShareGPT format).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

IMAGE = "<image>"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)


class SwiftMessage(_Strict):
    """A message of ms-swift."""

    role: Literal["system", "user", "assistant", "tool", "tool_call", "tool_response"]
    content: str
    loss: bool | None = None
    loss_scale: float | None = None


class SwiftRow(BaseModel):
    """A row of ms-swift: standard columns; all others are passed to reward functions."""

    model_config = ConfigDict(extra="allow", strict=True)

    messages: list[SwiftMessage] = Field(min_length=1)
    images: list[str]

    @model_validator(mode="after")
    def _fits(self) -> SwiftRow:
        roles = [message.role for message in self.messages]
        assert "system" not in roles[1:], "a system message is the first one"
        turns = roles[roles[0] == "system" :]
        assert turns and turns[0] == "user", "the first turn is the user's"
        assert sum(message.content.count(IMAGE) for message in self.messages) == len(self.images), "a path for each <image>"
        return self


class Turn(_Strict):
    """A turn of the ShareGPT format."""

    speaker: Literal["human", "gpt", "observation", "function_call"] = Field(alias="from")
    value: str


class ShareGPTRow(_Strict):
    """A row of the ShareGPT format as LLaMA-Factory reads it: human and observation in odd places, the others in even ones."""

    conversations: list[Turn] = Field(min_length=2)
    system: str = ""
    tools: str = ""
    images: list[str] = Field(default_factory=list)
    videos: list[str] = Field(default_factory=list)
    audios: list[str] = Field(default_factory=list)

    @model_validator(mode="after")
    def _fits(self) -> ShareGPTRow:
        assert len(self.conversations) % 2 == 0, "turns come in pairs"
        for number, turn in enumerate(self.conversations):
            allowed = ("gpt", "function_call") if number % 2 else ("human", "observation")
            assert turn.speaker in allowed, f"turn {number} is of {turn.speaker}"
        texts = [self.system, *(turn.value for turn in self.conversations)]
        assert sum(text.count(IMAGE) for text in texts) == len(self.images), "a path for each <image>"
        return self


class Columns(_Strict):
    """The columns of a data set in the ShareGPT format."""

    messages: str = "conversations"
    system: str | None = None
    tools: str | None = None
    images: str | None = None
    videos: str | None = None
    audios: str | None = None
    chosen: str | None = None
    rejected: str | None = None
    kto_tag: str | None = None


class Tags(_Strict):
    """The tags of turns in the ShareGPT format."""

    role_tag: str = "from"
    content_tag: str = "value"
    user_tag: str = "human"
    assistant_tag: str = "gpt"
    observation_tag: str = "observation"
    function_tag: str = "function_call"
    system_tag: str = "system"


class DatasetInfo(_Strict):
    """An entry of ``dataset_info.json`` with a local file."""

    file_name: Annotated[str, Field(min_length=1)]
    formatting: Literal["sharegpt"]
    ranking: bool = False
    subset: str | None = None
    split: str = "train"
    folder: str | None = None
    num_samples: int | None = None
    columns: Columns = Columns()
    tags: Tags = Tags()
