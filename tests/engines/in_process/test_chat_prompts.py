"""A request as a chat template and a sampler see it, and what of its images reaches the model."""

from __future__ import annotations

import io
from typing import Any

import pytest
from PIL import Image

from guieval.data.screenshots import Screenshot
from guieval.engines.in_process.chat_prompts import chat_messages, chat_options, pictures, prompt_text
from guieval.engines.in_process.transformers import refuse_second_resize
from guieval.errors import UsageError
from tests.engines.asking import make_request
from tests.rows import every_row


def shot(colour: str, size: tuple[int, int] = (4, 6), mode: str = "RGBA") -> Screenshot:
    buffer = io.BytesIO()
    Image.new(mode, size, colour).save(buffer, format="PNG")
    return Screenshot(buffer.getvalue(), "png", size)


def test_messages_are_texts_or_lists_of_parts() -> None:
    assert chat_messages(make_request("a", "b", images=[shot("red"), shot("blue")])) == [
        {"role": "system", "content": "You are an agent."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, *[{"type": "image"}] * 2]},
    ]
    assert chat_messages(make_request("a", "b"))[1]["content"] == "ab"


@pytest.mark.parametrize("prefill", [None, "Thought: I"])
def test_a_begun_turn_is_continued_and_no_new_one_opened(prefill: str | None) -> None:
    options = chat_options(make_request("a", prefill=prefill, extra={"chat_template_kwargs": {"enable_thinking": False}}))
    begun = prefill is not None
    assert options.template == {"add_generation_prompt": not begun, "continue_final_message": begun, "enable_thinking": False}


def test_sampling_parameters_are_distinguished() -> None:
    request = make_request(
        "a",
        sampling={"temperature": 0.5, "top_k": 3, "stop": None, "max_completion_tokens": 9},
        extra={"extra_body": {"top_k": 4, "min_p": 0.1}, "skip_special_tokens": False},
    )
    assert chat_options(request).sampling == {
        "temperature": 0.5,
        "top_k": 4,
        "max_tokens": 9,
        "min_p": 0.1,
        "skip_special_tokens": False,
    }
    for name in ("n", "stream", "messages", "model"):
        with pytest.raises(UsageError, match=f"{name!r} is set by the engine"):
            chat_options(make_request("a", sampling={name: 1}))


class Refusing:
    """A tokenizer whose template wants none of it."""

    def apply_chat_template(self, messages: Any, **options: Any) -> str:
        from jinja2 import TemplateError

        raise TemplateError("no system role")


def test_what_a_template_refuses_is_reported() -> None:
    with pytest.raises(ValueError, match="the chat template refuses the messages: no system role"):
        prompt_text(Refusing(), "", make_request("a"), {})


def test_pictures_are_decoded_in_order() -> None:
    found = pictures(make_request("a", images=[shot("red"), shot("blue", (8, 2))]))
    assert [(image.mode, image.size, image.getpixel((0, 0))) for image in found] == [
        ("RGB", (4, 6), (255, 0, 0)),
        ("RGB", (8, 2), (0, 0, 255)),
    ]
    whole = shot("red")
    with pytest.raises(ValueError, match="an image cannot be decoded"):
        pictures(make_request("a", images=[Screenshot(whole.data[:-30], "png", whole.size)]))


@every_row(
    ("size", "rows", "columns", "fits"),
    [
        ((364, 812), 58, 26, True),  # 26 * 14 = 364 and 58 * 14 = 812: as sent
        ((360, 800), 58, 26, True),  # rounded to the next multiple of 28, by less than one
        ((1080, 2400), 58, 26, False),
        ((360, 800), 60, 26, False),  # 840 rows: more than rounding
    ],
)
def test_a_second_resize_is_noticed(size: tuple[int, int], rows: int, columns: int, fits: bool) -> None:
    if fits:
        refuse_second_resize([size], [[1, rows, columns]], 14, 2)
        return
    with pytest.raises(ValueError, match=f"{columns * 14}x{rows * 14} of an image of {size[0]}x{size[1]} pixels"):
        refuse_second_resize([size], [[1, rows, columns]], 14, 2)
