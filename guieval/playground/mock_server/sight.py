"""What the mock server sees of a request's picture, right or with a fault of real servers, and what follows from it.

A model writes places of the picture that it sees, a server counts the tokens of that picture, and a log-probability changes
with its pixels. No picture is understood: the place is the reference's, taken into the picture as it is seen.
"""

from __future__ import annotations

import io
import json
from base64 import b64decode
from typing import TYPE_CHECKING, Any

import numpy as np

from guieval.actions import Action, Click, LongPress, Point, Scroll
from guieval.data.orientations import unturned, unturned_point
from guieval.data.screenshots import header, picture
from guieval.frames import smart_resize
from guieval.playground.mock_server.answers import PolicyResponse
from guieval.playground.mock_server.settings import MockSettings
from guieval.steps import StepTaskModel

if TYPE_CHECKING:
    from guieval.models import ABCModel

FACTOR = 28
"""Side in pixels of an image token's square if the model's adapter declares none."""
_QUALITY = 50
_CHARACTERS = 4
_ANY = 2**62


def answer_seen(
    settings: MockSettings, model: ABCModel, task: StepTaskModel, action: Action, thought: str, body: bytes
) -> PolicyResponse:
    """The answer of a model that means ``action``, its place as in the last picture of the request's body as it is seen."""
    parts = [] if settings.sees == "nothing" else _parts(body)
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    if not urls:
        return PolicyResponse(model.render(task, action, thought))
    data = b64decode(urls[-1].partition(",")[2])
    image = picture(data)
    if settings.sees == "unturned":
        orientation = header(io.BytesIO(data)).orientation
        image = unturned(image, orientation)
        if isinstance(action, Click | LongPress | Scroll):
            action = action.model_copy(update={"point": Point(*unturned_point(*action.point, orientation))})
    if settings.sees == "lossy":
        coded = io.BytesIO()
        image.save(coded, "JPEG", quality=_QUALITY)
        image = picture(coded.getvalue())
    processor = model.processor(task)
    factor = FACTOR if processor is None else processor.factor
    size = smart_resize(image.size, factor, 1, settings.seen_pixels if settings.sees == "shrunk" else _ANY)
    grey = np.asarray(image.resize(size).convert("L"), dtype=np.float64)
    edges = sum(weight * float(np.abs(np.diff(grey, axis=axis)).mean()) for axis, weight in ((0, 2.0), (1, 1.0)))
    text = sum(len(part["text"]) for part in parts if part["type"] == "text")
    return PolicyResponse(
        model.render(task.model_copy(update={"screenshot_size": size}), action, thought),
        prompt_tokens=text // _CHARACTERS + size[0] * size[1] // factor**2,
        logprob=-edges / 100.0,
    )


def _parts(body: bytes) -> list[dict[str, Any]]:
    """The parts of all messages; a content that is a text alone is one of them."""
    contents = [message["content"] for message in json.loads(body)["messages"]]
    lists = ([{"type": "text", "text": content}] if isinstance(content, str) else content for content in contents)
    return [part for content in lists for part in content]
