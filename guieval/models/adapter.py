"""The one base of all model adapters: what a family states, what it must define, and what it may change.

A family is a table of calls, a coordinate frame and prompts; ``guieval dev new-adapter`` writes a whole one in forty lines.
All else is optional: options of a checkpoint, the size of screenshots, thoughts that are given to the model, the past as turns.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, get_type_hints

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from guieval.actions import Action, ActionSpace, Click, LongPress, Point, Unsupported
from guieval.errors import ScreenshotError, UsageError, first_problem, nearest
from guieval.frames import PER_999, PER_1000, Frame, ResizedPixels, smart_resize
from guieval.history import HistoryEntry, describe
from guieval.models.config import ModelConfig
from guieval.models.families import Family
from guieval.models.messages import Engine, ImageRef, Message, ModelInput, Part, Request, Role, begun
from guieval.models.parsing import CallTable, ScrollWords, clicked
from guieval.models.prompts import fill, load_template
from guieval.models.response import Response
from guieval.models.screen_texts import with_screen_texts
from guieval.steps import StepTaskModel

PATCH = 28
"""Side of the square of pixels that one image token covers in models of the Qwen2-VL and Qwen2.5-VL kind."""
UNBOUND = 2**62
"""Larger than any image: for a limit that is not set."""
QWEN_PIXELS = 4 * PATCH**2, 16384 * PATCH**2
"""The limits of Qwen2.5-VL's own image processor."""
SCALES: dict[int, Frame] = {999: PER_999, 1000: PER_1000}


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class Options(BaseModel, frozen=True, extra="forbid"):
    """Base class of the options that a family's checkpoints may set, and the options of a family that has none of its own."""

    screen_texts: Annotated[tuple[str, ...], BeforeValidator(_one_or_more)] = Field(
        (),
        exclude_if=lambda names: not names,
        description="further data of a step (its extras) to give to the model as text, e.g. observation or tree",
    )
    zoom: float | None = Field(
        None, gt=1, le=10, exclude_if=lambda factor: factor is None, description="query a click again on the screen enlarged so"
    )
    grounder: str | None = Field(
        None, min_length=1, exclude_if=lambda name: name is None, description="model that places each click"
    )


class ImageLimits(Options):
    """Options of families that resize screenshots: limits in pixels of the image the model sees."""

    min_pixels: int | None = Field(None, ge=1, description="smaller screenshots are enlarged to this many pixels")
    max_pixels: int | None = Field(None, ge=1, description="larger screenshots are shrunk to this many pixels")


class DisputedScale(Options):
    """The option of families of which public sources state both 0 to 999 and 0 to 1000; a family sets its own default."""

    scale: Literal[999, 1000] = Field(1000, description="extent of the screen in the model's answers, 999 or 1000")


@dataclass(frozen=True)
class ParsedResponse:
    """A response read: the action in the unified space, and the response's thought and conclusion without tags.

    ``batch`` has all actions of a response with several, in order: mode online carries them out, and ``action`` is scored.
    ``stage`` is the stage of a composition whose place counts (:mod:`guieval.models.composition`).
    """

    action: Action
    thought: str | None = None
    conclusion: str | None = None
    batch: tuple[Action, ...] = ()
    stage: str = ""


class Surface(NamedTuple):
    """The calls of a prompt for one kind of device, and the unified actions that they express."""

    table: CallTable
    action_space: ActionSpace


class ABCModel(ABC):
    """A model family's adapter. Stateless, so one instance may serve any number of steps at once.

    Subclasses state ``action_space`` and a coordinate frame (``fixed_frame``, ``pixels`` or :meth:`frame`), and define
    :meth:`prepare_input`, :meth:`parse_response` and, to write responses as the model does, :meth:`write`.
    """

    action_space: ActionSpace
    """Which unified actions the family's format can express."""
    table: CallTable = CallTable()
    """The calls of the family's responses, which :meth:`read_call` and :meth:`write_call` use."""
    surfaces: ClassVar[Mapping[str, Surface]] = {}
    """``table`` and ``action_space`` by the option ``prompt``, in families with prompts for several kinds of devices."""
    options: Options
    """A checkpoint's options. A subclass annotates it with its own class, or with ``Options`` if it has none, and other names
    are refused; without an annotation any name is taken, and is found in ``config.options``."""
    fixed_frame: ClassVar[Frame | None] = None
    """The frame of a family that answers in the same one on every step and with all options."""
    pixels: ClassVar[tuple[int, int] | None] = None
    """Least and most pixels of an image if the options set no limit. A family with limits and no other frame answers in
    pixels of the resized screenshot."""
    grounding_pixels: ClassVar[tuple[int, int] | None] = None
    """The same on steps of grounding, if they differ."""
    patch: ClassVar[int] = PATCH
    """Of what both sides of a resized screenshot are multiples, in pixels."""
    thinking_switch: ClassVar[bool] = False
    """Whether thinking can be turned on and off for this family."""
    thinking_argument: ClassVar[str | None] = None
    """The argument of the chat template that every request has, as :meth:`fields` writes it: whether the model thinks."""
    fixes_thought: bool = False
    """Whether a response can be begun with a given thought (:meth:`prepare_fixed_thought`), as ``thought_form`` or
    :meth:`opening` says."""
    thought_form: ClassVar[str | None] = None
    """The beginning of a response with a thought, up to where its action begins, with ``{thought}`` in it."""
    grounds_silently: ClassVar[bool] = False
    """Whether its grounding prompt asks for no thought."""
    family: ClassVar[Family | None] = None
    """What lists of checkpoints say of the family; a subclass does not inherit it."""
    source: ClassVar[str] = ""
    """Where the wire format is published, in one line."""
    frame_source: ClassVar[str] = ""
    """Where the coordinate frame is published, in one line."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.family = vars(cls).get("family")
        if "fixes_thought" not in vars(cls) and {"opening", "thought_form"} & vars(cls).keys():
            cls.fixes_thought = cls.thought_form is not None or cls.opening is not ABCModel.opening
        if "prepare_input" in vars(cls):  # so that no family and no caller has to see to what all share
            setattr(cls, "prepare_input", _whole(cls.prepare_input))  # noqa: B010  # mypy refuses an assignment

    def __init__(self, config: ModelConfig, *, thinking: bool | None = None) -> None:
        if thinking is not None and not self.thinking_switch:
            raise UsageError(f"model {config.name!r} has no thinking switch; leave out --thinking/--no-thinking")
        self.config = config
        self.thinking = thinking if thinking is not None else config.scaffold.thinking
        self.options = self._read_options()
        if self.surfaces:
            self.table, self.action_space = self.surfaces[getattr(self.options, "prompt")]  # noqa: B009  # a family's option
        if not isinstance(getattr(self, "action_space", None), ActionSpace):
            name = type(self).__name__
            raise UsageError(f"adapter {config.adapter!r} must set action_space, an ActionSpace: the actions {name} can output")
        framed = self.fixed_frame or self.pixels or isinstance(self.options, DisputedScale)
        if not framed and type(self).frame is ABCModel.frame:
            raise UsageError(
                f"the adapter of model {config.name!r} states no coordinate frame: set fixed_frame of {type(self).__name__}, "
                "e.g. to guieval.frames.PER_1000, or define its method frame"
            )

    def _read_options(self) -> Options:
        declaring = next(kind for kind in type(self).__mro__ if "options" in inspect.get_annotations(kind))
        if declaring is ABCModel:
            return Options(**{name: self.config.options[name] for name in Options.model_fields if name in self.config.options})
        kind: type[Options] = get_type_hints(declaring)["options"]
        try:
            return kind.model_validate(self.config.options)
        except ValidationError as error:
            problem, known = first_problem(error), kind.model_fields
            message = f"cannot use {problem.value!r} as option {problem.field!r}: {problem.message}"
            if problem.kind == "extra_forbidden":
                message = f"has no option {problem.field!r}{nearest(problem.field, known)}; known: {', '.join(known) or 'none'}"
            raise UsageError(f"model {self.config.name!r} {message}") from None

    @property
    def resolved_options(self) -> Mapping[str, Any]:
        """The checkpoint's options together with the family's defaults, as a run's manifest records them."""
        return self.options.model_dump(mode="json") or self.config.options

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

    # --- the coordinate frame and the screenshot --------------------------------------------------------------------------

    def frame(self, task: StepTaskModel) -> Frame:
        """The coordinate frame of the model's responses to this step: that of the option ``scale``, else ``fixed_frame``, else
        pixels of the resized screenshot."""
        if isinstance(self.options, DisputedScale):
            return SCALES[self.options.scale]
        return self.fixed_frame or self.resize(task)

    def place_frame(self, task: StepTaskModel) -> Frame:
        """The frame of places that a response gives without a call, in families that write those in a frame of their own."""
        return self.frame(task)

    @property
    def disputed_frames(self) -> Sequence[Frame]:
        """The frames that other public sources give for this checkpoint: further candidates of ``guieval dev audit``."""
        return tuple(SCALES.values()) if isinstance(self.options, DisputedScale) else ()

    @property
    def first_resize(self) -> ResizedPixels | None:
        """A resize that goes before the limits."""
        return None

    def resize(self, task: StepTaskModel) -> ResizedPixels:
        """The processing of the step's screenshot before the model sees it, which is also a frame: pixels of the result."""
        least, most = (self.grounding_pixels if task.setting == "grounding" else None) or self.pixels or (1, UNBOUND)
        if isinstance(self.options, ImageLimits):
            least, most = self.options.min_pixels or least, self.options.max_pixels or most
        return ResizedPixels(self.patch, least, most, self.first_resize)

    def processor(self, task: StepTaskModel) -> ResizedPixels | None:
        """How the checkpoint's own processor resizes the step's screenshot, in families whose makers publish it.

        One image token is a square of its ``factor``. ``None``: it is of another kind than Qwen's, or its limits are not known.
        """
        resize = self.resize(task)
        return None if resize.max_pixels == UNBOUND else resize

    def image(self, task: StepTaskModel) -> ImageRef:
        """The step's screenshot in the size in which it is sent; :class:`ScreenshotError` if it cannot be resized.

        Rounding to multiples of ``patch`` is left to the server, which does it anyway. Only if a limit binds is the image
        resized on this side, so the frame of the response does not depend on how the server was started.
        """
        if self.pixels is None and not isinstance(self.options, ImageLimits):
            return ImageRef(task)
        with _of_a_usable_size(task):
            resized = self.resize(task).resized(task.screenshot_size)
            rounded = smart_resize(task.screenshot_size, self.patch, 1, UNBOUND)
        return ImageRef(task, None if resized == rounded else resized)

    def screen(self, task: StepTaskModel) -> dict[str, str]:
        """The ``width`` and ``height`` of the screen in the frame's coordinates, for a prompt that states them."""
        with _of_a_usable_size(task):
            width, height = self.frame(task).extent(task.screenshot_size)
        return {"width": f"{width:.0f}", "height": f"{height:.0f}"}

    # --- the request ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        """The messages for one step, given its past oldest first. Pure: same arguments, same input.

        A grounding query comes without a past, and :meth:`fields` and the texts of option ``screen_texts`` are added to what a
        family returns.
        """

    def thinks(self, task: StepTaskModel) -> bool:
        """Whether the model thinks before it answers, in families with a switch for it."""
        return self.thinking_switch and self.why_silent(task) is None

    def fields(self, task: StepTaskModel) -> Mapping[str, Any]:
        """Further fields of the request for a step: by default :attr:`thinking_argument`."""
        return {"chat_template_kwargs": {self.thinking_argument: self.thinks(task)}} if self.thinking_argument else {}

    def own_past(self, history: Sequence[HistoryEntry]) -> Sequence[HistoryEntry]:
        """The past with the responses that the family itself wrote; of a composition, those of its first stage."""
        return history

    @classmethod
    def prompt(cls, name: str, **values: str) -> str:
        """The text of ``prompts/NAME.txt`` next to the family's module, without its first line, which states the origin; each
        ``{placeholder}`` of ``values`` is filled in (:func:`guieval.models.fill`)."""
        return fill(_template(cls, name), **values)

    def sentence(self, entry: HistoryEntry) -> str:
        """A past step in words: its conclusion, which is the step instruction if the benchmark has one.

        A plain description gives its place in the family's frame, so no prompt has places in two frames.
        """
        if entry.conclusion and entry.conclusion != describe(entry.action):
            return entry.conclusion
        match entry.action:
            case Click() | LongPress():
                x, y = self.frame(entry.task).quantise(entry.action.point, entry.task.screenshot_size)
                return f"{'Click' if entry.action.type == 'CLICK' else 'Long press'} at ({x:g}, {y:g})."
        return describe(entry.action)

    def conversation(
        self,
        task: StepTaskModel,
        history: Sequence[HistoryEntry],
        max_images: int,
        turns: Sequence[tuple[Part, ...]] = (),
        *,
        hidden: str = "",
        first: Role = "user",
        later: Role = "user",
    ) -> Iterator[Message]:
        """Each step as a turn and the response to it (:meth:`past_response`): the texts that ``turns`` has for it, then its
        screenshot from :meth:`first_shown` on, and before that ``hidden`` in its place. ``first`` is the role of the first
        turn, ``later`` that of the others."""
        first_with_image = self.first_shown(history, max_images)
        for index, step in enumerate((*(entry.task for entry in history), task)):
            texts = turns[index] if index < len(turns) else ()
            seen = (self.image(step),) if index >= first_with_image else (hidden,) if hidden else ()
            if parts := (*texts, *seen):
                yield Message(later if index else first, parts)
            if index < len(history):
                yield Message("assistant", (self.past_response(history[index]),))

    def first_shown(self, history: Sequence[HistoryEntry], max_images: int) -> int:
        """Index of the first step whose screenshot is in the request, the current one being ``len(history)``: the last
        ``max_images`` steps are shown, fewer if the scaffold drops several at once."""
        return self.config.scaffold.unshown(len(history) + 1, max_images)

    def past_response(self, entry: HistoryEntry) -> str:
        """A past step as the assistant's turn, for families that show their past in turns."""
        raise NotImplementedError

    def prepare_fixed_thought(self, task: StepTaskModel, history: Sequence[HistoryEntry], thought: str) -> ModelInput:
        """The input of fixed-thought inference: as :meth:`prepare_input`, but the response's thought is already written.

        The last message is the assistant's turn up to where the action begins, marked as prefill, in the family's own form
        (:meth:`opening`); :meth:`parse_response` reads what the model adds to it. Raises :class:`UsageError` if the family or
        the step takes no thought. Source: GUIEvalKit paper, appendix E.
        """
        if not self.fixes_thought:
            raise UsageError(f"model {self.config.name!r} cannot be given a thought")
        if reason := self.why_silent(task):
            raise UsageError(f"model {self.config.name!r} cannot be given a thought: {reason}")
        if not thought.strip():
            # the answer would count as one with a thought
            raise UsageError("the thought to be given is empty")
        # without line breaks around it (GUIEvalKit paper, appendix E)
        return begun(self.prepare_input(task, history), self.opening(task, thought.strip("\n")))

    def opening(self, task: StepTaskModel, thought: str) -> str:
        """The beginning of a response with this thought, up to where its action begins: by default :attr:`thought_form`."""
        return fill(self.thought_form or "", thought=thought)

    def why_silent(self, task: StepTaskModel) -> str | None:
        """Why the model writes no thought on this step; ``None`` if it may write one."""
        if self.grounds_silently and task.setting == "grounding":
            return "the grounding prompt asks for no thought"
        return "thinking is turned off" if self.thinking is False else None

    # --- the response -----------------------------------------------------------------------------------------------------

    async def generate(self, request: Request, engine: Engine) -> Response:
        """Answer a prepared request: by default the run's engine does."""
        return await engine.generate(request)

    def respond(self, request: Request) -> str:
        """Answer in this process (``engine: local``); families that need a server leave it as it is. May block."""
        raise UsageError(f"model {self.config.name!r} cannot answer by itself; give --base-url of a server that serves it")

    def check_installed(self) -> None:  # noqa: B027  # most families need nothing
        """Raise :class:`UsageError` if a package is missing that :meth:`respond` needs; called before a run is begun."""

    @abstractmethod
    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        """Read a response to ``task``; raises :class:`guieval.errors.ParseError`, and nothing else, if it has no action.

        The text is whole (:func:`guieval.errors.whole_text`), and what is read of it is made so; a family sees to neither.
        """

    @property
    def scroll_words(self) -> ScrollWords:
        """What a scroll's direction names in the family's calls: the option ``scroll_words``, else the finger's way."""
        words: ScrollWords | None = getattr(self.options, "scroll_words", None)
        return words or "finger"

    def read_call(self, task: StepTaskModel, name: str, arguments: Mapping[str, Any]) -> Action:
        """The action that a call of :attr:`table` means, its places read in the step's frame. Raises :class:`ParseError`."""
        return self.table.read(name, arguments, self.frame(task), task.screenshot_size, self.scroll_words)

    def read_click(self, task: StepTaskModel, place: object) -> Click | Unsupported:
        """A click on the middle of a place that is given alone: two or four numbers, in a list or a text. Raises
        :class:`ParseError`; outside of the screen it is a click without a known place."""
        return clicked(place, self.frame(task), task.screenshot_size)

    def render(self, task: StepTaskModel, action: Action, thought: str | None = None, conclusion: str | None = None) -> str:
        """Write an action as the model would: the inverse of :meth:`parse_response`, up to the frame's resolution.

        Raises ``ValueError`` for an action outside ``action_space``.
        """
        if action not in self.action_space:
            raise ValueError(f"model {self.config.name!r} has no word for {action!r}")
        return self.write(task, action, thought, conclusion)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        """:meth:`render` for an action of the family's space. The mock server, trainings and some prompts need it."""
        raise ValueError(f"the adapter of model {self.config.name!r} cannot write responses: it defines no method write")

    def write_call(self, task: StepTaskModel, action: Action) -> tuple[str, dict[str, Any]]:
        """The name and the arguments of the first call of :attr:`table` that means an action, also of one outside of
        ``action_space``, which the past may hold; ``ValueError`` if there is none."""
        return self.table.write(action, lambda point: self.write_place(task, point), self.scroll_words)

    def write_place(self, task: StepTaskModel, point: Point) -> Any:
        """A place as an argument of a call: ``[x, y]`` in the step's frame, as precise as the model writes it."""
        return list(self.frame(task).quantise(point, task.screenshot_size))


def _whole(prepare: Callable[..., ModelInput]) -> Callable[..., ModelInput]:
    """A family's :meth:`ABCModel.prepare_input` with what is the same in all families."""

    @wraps(prepare)
    def prepare_input(self: ABCModel, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        prepared = prepare(self, task, () if task.setting == "grounding" else self.own_past(history))
        prepared = replace(prepared, extra={**self.fields(task), **prepared.extra})
        names = self.options.screen_texts
        return with_screen_texts(prepared, task, names, self.frame(task)) if names else prepared

    return prepare_input


@cache
def _template(kind: type[ABCModel], name: str) -> str:
    families = kind.__mro__[: kind.__mro__.index(ABCModel)]
    files = [Path(inspect.getfile(family)).parent / "prompts" / f"{name}.txt" for family in families]
    return load_template(next(filter(Path.is_file, files), files[0]))


@contextmanager
def _of_a_usable_size(task: StepTaskModel) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise ScreenshotError(f"the screenshot of step {task.key} cannot be shown: {error}") from None
