"""The OCR baseline: a GUI agent that runs in this process without a GPU, the floor that every trained model has to beat.

It reads the last screenshot with RapidOCR and acts by the rules in :mod:`._ocr_agent`. It goes through the same two doors
as a model on a server: all it knows is the text of its prompt and the pixels of the screenshot, and it answers with
text that is parsed again. This file has the wire format (ours, JSON both ways) and the reading of screens.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

from pydantic import BaseModel, ValidationError

from guieval.actions import BUTTONS, Action, ActionSpace, Box, Click, LongPress, Scroll, Unsupported
from guieval.data.screenshots import picture
from guieval.errors import ParseError, ScreenshotError, UsageError
from guieval.frames import Normalised, Size
from guieval.history import HistoryEntry
from guieval.models import ABCModel, Family, ImageRef, ModelInput, Options, ParsedResponse, Request, chat
from guieval.steps import StepTaskModel

from ._ocr_agent import PastStep, Prompt, ScreenText, decide

FRAME = Normalised(1000.0, digits=2)
SYSTEM = (
    "You operate a device. The user sends a JSON object (goal, step or target, and the history) and a screenshot. Answer with "
    'a JSON object: {"thought": "...", "conclusion": "...", "action": {"type": "CLICK", "point": [x, y]}}; x and y go from '
    "0 to 1000, to the right and down."
)
LONGEST_SIDE = 1280
"""Screens are shrunk to this many pixels before they are read: on 2560 x 1440 that takes little more than half the time of
RapidOCR's own limit (2000), and finds no fewer targets of ScreenSpot."""
REMEMBERED_SCREENS = 512
MISSING = "the OCR baseline needs RapidOCR: pip install 'guieval[baseline]'"


class _Reply(BaseModel, frozen=True, extra="forbid"):
    thought: str | None = None
    conclusion: str | None = None
    action: Action


class OcrBaseline(ABCModel):
    """Text matching on OCR results as an agent; needs the extra ``baseline``."""

    options: Options
    fixed_frame = FRAME
    action_space = ActionSpace(buttons=frozenset(BUTTONS))
    family = Family(2026, ("phone", "desktop", "web", "grounding"))
    source = "this project's own format: JSON objects, coordinates 0-1000 with two decimals"
    frame_source = "this project's own format"

    def prepare_input(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> ModelInput:
        """The instruction and each past step (its sentence and action) as one JSON object, then the screenshot as it is."""
        return chat(self._prompt(task, history).model_dump_json(exclude_none=True), ImageRef(task), system=SYSTEM)

    def _prompt(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> Prompt:
        past = tuple(PastStep(sentence=entry.conclusion or entry.thought, action=entry.action) for entry in history)
        if task.setting == "grounding":
            return Prompt(target=task.instruction, history=past)
        step = task.low_level_instruction if task.setting == "low" else None
        return Prompt(goal=task.instruction, step=step, history=past)

    def parse_response(self, task: StepTaskModel, text: str) -> ParsedResponse:
        """Read a response; raises :class:`ParseError` when it is not the JSON object of the format."""
        try:
            reply = _Reply.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"])) or "the response"
            raise ParseError(f"{where}: {first['msg']}") from None
        action = reply.action
        if isinstance(action, Unsupported):
            raise ParseError("action.type: the format knows no 'UNSUPPORTED'")
        if isinstance(action, Click | LongPress | Scroll):
            action = action.model_copy(update={"point": FRAME.decode(*action.point, task.screenshot_size)})
        return ParsedResponse(action, reply.thought, reply.conclusion)

    def write(self, task: StepTaskModel, action: Action, thought: str | None, conclusion: str | None) -> str:
        return write_reply(ParsedResponse(action, thought, conclusion), task.screenshot_size)

    def check_installed(self) -> None:
        if find_spec("rapidocr_onnxruntime") is None and find_spec("rapidocr") is None:
            raise UsageError(MISSING)

    def respond(self, request: Request) -> str:
        """Read the last screenshot and answer. Of the request, only ``input`` and ``images`` are looked at.

        Raises :class:`UsageError` when RapidOCR cannot be imported and :class:`ScreenshotError` for a damaged image.
        """
        screen = request.images[-1]
        text = next(part for part in request.input.messages[-1].parts if isinstance(part, str))
        return self.decide(text, read_screen(screen.data), screen.size)

    def decide(self, prompt: str, texts: Sequence[tuple[str, Box]], size: Size) -> str:
        """The response to a prompt (the user's JSON object) when ``texts`` with their boxes (unified coordinates) are what
        is on a screen of ``size`` (width, height) in pixels. Pure; raises ``ValueError`` for a text that is not a prompt.
        """
        decision = decide(Prompt.model_validate_json(prompt), [ScreenText(*line) for line in texts], size)
        return write_reply(decision, size)


def write_reply(reply: ParsedResponse, size: Size) -> str:
    """A response of the format; the action's point is in unified coordinates."""
    action = reply.action
    if isinstance(action, Click | LongPress | Scroll):
        action = action.model_copy(update={"point": FRAME.quantise(action.point, size)})
    return _Reply(thought=reply.thought, conclusion=reply.conclusion, action=action).model_dump_json(exclude_none=True)


_reading = threading.Lock()
_read: OrderedDict[bytes, tuple[ScreenText, ...]] = OrderedDict()


def read_screen(data: bytes) -> tuple[ScreenText, ...]:
    """The lines of text on a screenshot, given as an image file's bytes, with their boxes in unified coordinates.

    The same bytes are read once per process (the last 512 screens are remembered). One screen is read at a time, on half
    of the cores but at most four: RapidOCR keeps state between calls, and more threads cost more than they save. Raises
    :class:`UsageError` when RapidOCR cannot be imported and :class:`ScreenshotError` when the image is damaged.
    """
    key = hashlib.sha256(data).digest()
    with _reading:
        if key not in _read:
            _read[key] = _recognise(data)
            if len(_read) > REMEMBERED_SCREENS:
                _read.popitem(last=False)
        _read.move_to_end(key)
        return _read[key]


def _recognise(data: bytes) -> tuple[ScreenText, ...]:
    import numpy as np
    from PIL.Image import Resampling

    engine = _engine()
    try:
        image = picture(data)
    except ValueError as error:
        raise ScreenshotError(f"the screenshot {error}") from None
    longest = max(image.size)
    if longest > LONGEST_SIDE:
        width, height = (max(1, round(side * LONGEST_SIDE / longest)) for side in image.size)
        image = image.resize((width, height), Resampling.BILINEAR)
    pixels = np.ascontiguousarray(np.asarray(image)[:, :, ::-1])  # OpenCV's order is blue, green, red
    x, y = 1000.0 / image.width, 1000.0 / image.height
    read: list[ScreenText] = []
    for corners, text in engine(pixels):
        across, down = zip(*corners, strict=True)
        read.append(ScreenText(text, Box(min(across) * x, min(down) * y, max(across) * x, max(down) * y)))
    return tuple(read)


@cache
def _engine() -> Callable[[Any], list[tuple[Any, str]]]:
    """Reads the lines of an image, each with its four corners in pixels.

    The packages bring different networks (rapidocr-onnxruntime PP-OCRv4, rapidocr a newer one), so Python 3.13 and later, for
    which the first has no release, read some screens differently.
    """
    threads = max(1, min(4, (os.cpu_count() or 1) // 2))
    try:
        return _rapidocr_onnxruntime(threads)
    except ModuleNotFoundError:
        pass
    except ImportError as error:
        raise UsageError(
            f"RapidOCR cannot be loaded: {error}; if a system library is missing, "
            "`pip uninstall opencv-python` and `pip install opencv-python-headless` do without it"
        ) from None
    try:
        return _rapidocr(threads)
    except ImportError:
        raise UsageError(MISSING) from None


# Both ways: limit_type "max" never enlarges a small screen first, as RapidOCR does by default: that takes 1.6 times as long and
# helps no decision. The classifier finds upside-down text, which screens do not have.
def _rapidocr_onnxruntime(threads: int) -> Callable[[Any], list[tuple[Any, str]]]:
    from rapidocr_onnxruntime import RapidOCR

    engine = RapidOCR(det_limit_type="max", intra_op_num_threads=threads, inter_op_num_threads=1)
    return lambda pixels: [(corners, text) for corners, text, _ in engine(pixels, use_cls=False)[0] or ()]


def _rapidocr(threads: int) -> Callable[[Any], list[tuple[Any, str]]]:
    from rapidocr import RapidOCR

    onnx = "EngineConfig.onnxruntime"
    engine = RapidOCR(
        params={
            "Det.limit_type": "max",
            f"{onnx}.intra_op_num_threads": threads,
            f"{onnx}.inter_op_num_threads": 1,
            "Global.log_level": "error",
        }
    )

    def lines(pixels: Any) -> list[tuple[Any, str]]:
        read = engine(pixels, use_cls=False)
        return [] if read.boxes is None else list(zip(read.boxes.tolist(), read.txts, strict=True))

    return lines
