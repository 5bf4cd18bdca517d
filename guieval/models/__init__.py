"""The model side's contracts: what an adapter turns a step into, who answers it, and how the answer is read.

An adapter (:class:`ABCModel` subclass, one module in ``model_adapters/`` per family) knows a family's wire format: the exact
prompt, the coordinate frame, how the history is written and how a reply is parsed. It holds no image bytes: messages refer to
screenshots, which the runner reads and encodes when they are sent. Who generates is an :class:`Engine`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from guieval.actions import Action, ActionSpace
from guieval.data.files import read_text
from guieval.data.screenshots import Screenshot
from guieval.errors import UsageError
from guieval.frames import Frame, Size
from guieval.history import HistoryEntry
from guieval.models.bill import Bill as Bill
from guieval.models.response import Response as Response
from guieval.settings.sampling import check_sampling
from guieval.steps import StepTaskModel

ImageForm: TypeAlias = Literal["none", "bytes", "base64", "file"]
Role: TypeAlias = Literal["system", "user", "assistant"]


LOOKS = frozenset({"screenshot", "take_screenshot", "zoom", "cursor_position", "list_apps", "open_web_browser"})
"""Calls of computer-use APIs that only look: the engine answers them and asks again, and no adapter reads an action in them."""

END_TURN = "<end_turn/>"
"""The text added after the words of a computer-use model that ended its turn without a call, which ends the task."""


@dataclass(frozen=True)
class ImageRef:
    """A screenshot inside a message: the step it belongs to and the (width, height) it must be sent in.

    ``resize`` is ``None`` when the original file is sent as it is.
    """

    task: StepTaskModel
    resize: Size | None = None


Part: TypeAlias = str | ImageRef


@dataclass(frozen=True)
class Message:
    """One chat message; ``parts`` are texts and images in the order the model reads them."""

    role: Role
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class ModelInput:
    """A whole request but for its images' bytes.

    ``prefill`` means that the last message is an assistant's unfinished turn, which the model continues; ``extra`` are
    further request fields the family needs (e.g. ``chat_template_kwargs``).
    """

    messages: tuple[Message, ...]
    prefill: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def images(self) -> tuple[ImageRef, ...]:
        """Every image in order of appearance."""
        return tuple(part for message in self.messages for part in message.parts if isinstance(part, ImageRef))

    @property
    def text(self) -> str:
        """All text of the request, for searching and showing."""
        return "\n".join(part for message in self.messages for part in message.parts if isinstance(part, str))


@dataclass(frozen=True)
class Request:
    """A request to an engine: the input, its images' bytes in order, sampling parameters, and an id naming the step and try.

    The engine puts on the ``bill`` what it received and did not return.
    """

    input: ModelInput
    images: tuple[Screenshot, ...]
    sampling: Mapping[str, Any]
    request_id: str
    task: StepTaskModel
    bill: Bill = field(default_factory=Bill, compare=False, repr=False)


class Engine(Protocol):
    """A source of answers: a server, a local model or a replay."""

    images: ImageForm
    """The form in which it needs a request's images: nothing (a replay), the files' bytes, or these in base64 as well.

    With ``file`` it names an original's file (:attr:`guieval.data.screenshots.Screenshot.path`) and needs base64 of the others.
    """

    async def generate(self, request: Request) -> Response:
        """Answer one request; raises :class:`guieval.errors.EngineError` after its own retries are spent."""

    async def close(self) -> None:
        """Free connections; called once, after the last request."""


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


@dataclass(frozen=True)
class ParsedResponse:
    """A reply read: the action in the unified space, and the reply's thought and conclusion without tags.

    ``batch`` holds all actions of a reply with several, in order: mode online carries them out, and ``action`` is scored.
    """

    action: Action
    thought: str | None = None
    conclusion: str | None = None
    batch: tuple[Action, ...] = ()


class ABCModel(ABC):
    """A model family's adapter. Stateless, so one instance may serve any number of steps at once.

    Subclasses set ``action_space`` and ``thinking_switch`` and implement :meth:`frame`, :meth:`prepare_input`,
    :meth:`parse_response` and :meth:`render`. What a checkpoint may set is in ``config.options``.
    """

    action_space: ClassVar[ActionSpace]
    """Which unified actions the family's format can express."""
    thinking_switch: ClassVar[bool] = False
    """Whether thinking can be turned on and off for this family."""
    fixes_thought: ClassVar[bool] = False
    """Whether a reply can be begun with a given thought (:meth:`prepare_fixed_thought`)."""
    source: ClassVar[str] = ""
    """Where the wire format is published, in one line."""
    frame_source: ClassVar[str] = ""
    """Where the coordinate frame is published, in one line."""

    def __init__(self, config: ModelConfig, *, thinking: bool | None = None) -> None:
        if thinking is not None and not self.thinking_switch:
            raise UsageError(f"model {config.name!r} has no thinking switch; leave out --thinking/--no-thinking")
        self.config = config
        self.thinking = thinking if thinking is not None else config.thinking

    @property
    def resolved_options(self) -> Mapping[str, Any]:
        """The checkpoint's options together with the family's defaults, as a run's manifest records them."""
        return self.config.options

    @property
    def reply_rules(self) -> Mapping[str, str]:
        """Rules beyond one request and one action a step, by name, as a run's manifest records them."""
        return {}

    @property
    def looks(self) -> int:
        """How often a model of a native API may look at the screen again before it answers."""
        return 0

    @property
    def tool_tokens(self) -> int:
        """Tokens that a service adds to every request for a tool of its own, for estimates of a cost."""
        return 0

    @abstractmethod
    def frame(self, task: StepTaskModel) -> Frame:
        """The coordinate frame the model's replies to this step are in."""

    def place_frame(self, task: StepTaskModel) -> Frame:
        """The frame of places that a reply gives without a call, in families that write those in a frame of their own."""
        return self.frame(task)

    @property
    def disputed_frames(self) -> Sequence[Frame]:
        """The frames that other public sources give for this checkpoint: further candidates of ``guieval audit``."""
        return ()

    @abstractmethod
    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        """The messages for one step, given its past oldest first. Pure: same arguments, same input."""

    def prepare_fixed_thought(self, task: StepTaskModel, history: Sequence[HistoryEntry], thought: str) -> ModelInput:
        """The input of fixed-thought inference: as :meth:`prepare_input`, but the reply's thought is already written.

        The last message is the assistant's turn up to where the action begins, marked as prefill, in the family's own form;
        :meth:`parse_response` reads what the model adds to it. Source: GUIEvalKit paper, appendix E.
        """
        raise UsageError(f"model {self.config.name!r} cannot be given a thought")

    @abstractmethod
    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        """Read a reply to ``task``; raises :class:`guieval.errors.ParseError`, and nothing else, when it holds no action."""

    @abstractmethod
    def render(self, task: StepTaskModel, action: Action, thought: str | None = None, conclusion: str | None = None) -> str:
        """Write an action as the model would: the inverse of :meth:`parse_response`, up to the frame's resolution.

        Raises ``ValueError`` for an action outside ``action_space``.
        """

    async def generate(self, request: Request, engine: Engine) -> Response:
        """Answer a prepared request: by default the run's engine does."""
        return await engine.generate(request)

    def respond(self, request: Request) -> str:
        """Answer in this process (``engine: local``); families that need a server leave it as it is. May block."""
        raise UsageError(f"model {self.config.name!r} cannot answer by itself; give --base-url of a server that serves it")


def load_template(path: Path) -> str:
    """A prompt file's text: everything after its first line, which is a comment with the text's origin."""
    head, _, body = read_text(path).partition("\n")
    if not head.startswith("#"):
        raise ValueError(f"{path} must begin with a comment line naming the prompt's origin")
    return body


def fill(template: str, **values: str) -> str:
    """Replace each ``{name}`` literally, all others stay: prompts are full of braces that are not placeholders.

    Every name given must occur, so a renamed placeholder is an error (``ValueError``) and not a silent omission; a value
    that happens to contain another placeholder is left as it is.
    """
    for name in values:
        if "{" + name + "}" not in template:
            raise ValueError(f"the template has no placeholder {{{name}}}")
    if not values:
        return template
    pattern = re.compile("|".join(re.escape("{" + name + "}") for name in values))
    return pattern.sub(lambda match: values[match.group()[1:-1]], template)
