"""What the mock server sees of a request's picture, right or with a fault of real servers, and what follows from it.

A model writes places of the picture that it sees, a server counts the tokens of that picture, and a log-probability changes
with its pixels. No picture is understood: the place is the reference's, taken into the picture as it is seen.
"""

from __future__ import annotations

import io
import json
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from guieval.actions import Action, Click, LongPress, Point, Scroll
from guieval.data.screenshots import header, picture, unturned
from guieval.frames import Size, smart_resize
from guieval.steps import StepTaskModel
from guieval.testing.mock_server.app import Answer
from guieval.testing.mock_server.settings import MockSettings

if TYPE_CHECKING:
    from guieval.models import ABCModel

FACTOR = 28
"""Side of an image token's square where the model's adapter declares none."""
_QUALITY = 50
_CHARACTERS = 4


@dataclass(frozen=True)
class Seen:
    """The picture: its (width, height) in pixels, the orientation that was not undone (1: none), and tokens of the prompt."""

    size: Size
    orientation: int
    prompt_tokens: int
    logprob: float

    def place(self, point: Point) -> Point:
        """Where a point of the upright screen is in the picture, both in thousandths."""
        x, y = point
        places = {3: (1000.0 - x, 1000.0 - y), 6: (y, 1000.0 - x), 8: (1000.0 - y, x)}
        return Point(*places.get(self.orientation, (x, y)))


def look(settings: MockSettings, model: ABCModel, task: StepTaskModel, body: bytes) -> Seen | None:
    """What is seen of the last picture in a request's body; ``None`` without one."""
    messages = json.loads(body)["messages"]
    parts = [part for message in messages if isinstance(message["content"], list) for part in message["content"]]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    if not urls:
        return None
    data = b64decode(urls[-1].partition(",")[2])
    image, orientation = picture(data), 1
    if settings.sees == "unturned":
        orientation = header(io.BytesIO(data)).orientation
        image = unturned(image, orientation)
    if settings.sees == "lossy":
        coded = io.BytesIO()
        image.save(coded, "JPEG", quality=_QUALITY)
        image = picture(coded.getvalue())
    processor = model.processor(task)
    factor = FACTOR if processor is None else processor.factor
    size = smart_resize(image.size, factor, 1, settings.seen_pixels if settings.sees == "shrunk" else 2**62)
    text = sum(len(part) for part in _texts(messages))
    grey = np.asarray(image.resize(size).convert("L"), dtype=np.float64)
    edges = float(np.abs(np.diff(grey, axis=1)).mean() + 2.0 * np.abs(np.diff(grey, axis=0)).mean())
    return Seen(size, orientation, text // _CHARACTERS + size[0] * size[1] // factor**2, -edges / 100.0)


def _texts(messages: Any) -> Iterator[str]:
    for message in messages:
        content = message["content"]
        yield from [content] if isinstance(content, str) else [part["text"] for part in content if part["type"] == "text"]


def answer_seen(
    settings: MockSettings, model: ABCModel, task: StepTaskModel, action: Action, thought: str, body: bytes
) -> Answer:
    """The answer of a model that means ``action``, its place written as in the picture that it sees."""
    seen = None if settings.sees == "nothing" else look(settings, model, task, body)
    if seen is None:
        return Answer(model.render(task, action, thought))
    if isinstance(action, Click | LongPress | Scroll):
        action = action.model_copy(update={"point": seen.place(action.point)})
    written = model.render(task.model_copy(update={"screenshot_size": seen.size}), action, thought)
    return Answer(written, prompt_tokens=seen.prompt_tokens, logprob=seen.logprob)
