"""Screenshots that real vLLM reads from the disk, or holds under an id: the same answers, and the words of its refusals."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from guieval.data.screenshots import Screenshot
from guieval.engines.http.chat_body import chat_body
from guieval.engines.http.chat_completions import OpenAIEngine, OpenAISettings
from guieval.engines.vllm.command import served_name
from guieval.engines.vllm.server import VLLMServer
from guieval.models import ABCModel, Request, Response

from .asking import counts, texts
from .conftest import MakeRequest
from .test_runs import answered, clean, command, run_unreadable

__all__ = ["clean"]  # the fixture


class Unsent(Screenshot):
    """A screenshot whose bytes must not be sent."""

    @property
    def base64(self) -> bytes:
        raise AssertionError("the bytes were to be sent")


def unsent(request: Request, *, named: bool) -> Request:
    """The request with screenshots that can be referred to only; not even by their files unless ``named``."""
    images = [Unsent(each.data, each.format, each.size, each.path if named else None) for each in request.images]
    return replace(request, images=tuple(images))


def replies(server: VLLMServer, requests: Sequence[Request], **settings: Any) -> list[Response]:
    """Asked one after the other; none may need a second try."""

    async def main() -> list[Response]:
        fields = {"base_urls": (server.base_url,), "model": served_name(server.model, server.settings), "max_attempts": 1}
        engine = OpenAIEngine(OpenAISettings.model_validate({**fields, **settings}))
        try:
            return [await engine.generate(request) for request in requests]
        finally:
            await engine.close()

    return asyncio.run(main())


@pytest.fixture
def asked(make_request: MakeRequest) -> list[Request]:
    """Steps with one, two and three screenshots, in their files' sizes."""
    found = [make_request(0, step, temperature=0, max_tokens=30) for step in (0, 1, 2)]
    assert [len(request.images) for request in found] == [1, 2, 3]
    assert all(image.path is not None for request in found for image in request.images)
    return found


@pytest.fixture
def in_bytes(server: VLLMServer, asked: list[Request]) -> list[Response]:
    return replies(server, asked)


def same(these: Sequence[Response], those: Sequence[Response]) -> bool:
    return texts(these) == texts(those) and [counts(each) for each in these] == [counts(each) for each in those]


def test_files_are_read_by_the_server(
    server: VLLMServer, screens: Path, asked: list[Request], in_bytes: list[Response], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        read = replies(server, [unsent(request, named=True) for request in asked], local_images=screens)
    assert same(read, in_bytes) and not caplog.records


def test_what_was_sent_once_is_held(
    server: VLLMServer, asked: list[Request], in_bytes: list[Response], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        again = [unsent(request, named=False) for request in reversed(asked)]
        held = replies(server, [*asked, *again], image_uuids=True)
    assert same(held, [*in_bytes, *reversed(in_bytes)]) and not caplog.records


def test_files_and_ids_together(server: VLLMServer, screens: Path, asked: list[Request], in_bytes: list[Response]) -> None:
    first = [unsent(request, named=True) for request in asked]
    again = [unsent(request, named=False) for request in asked]
    both = replies(server, [*first, *again], local_images=screens, image_uuids=True)
    assert same(both, [*in_bytes, *in_bytes])


def test_a_file_that_the_server_may_not_read_is_sent(
    server: VLLMServer, tmp_path: Path, asked: list[Request], in_bytes: list[Response], caplog: pytest.LogCaptureFixture
) -> None:
    moved = []
    for number, request in enumerate(asked):
        copies = []
        for index, image in enumerate(request.images):
            path = tmp_path / f"{number}-{index}.png"
            path.write_bytes(image.data)
            copies.append(replace(image, path=path))
        moved.append(replace(request, images=tuple(copies)))
    with caplog.at_level(logging.WARNING):
        sent = replies(server, moved, local_images=tmp_path)
    assert same(sent, in_bytes)
    assert len(caplog.records) == 1 and "does not read local files" in caplog.text


def test_the_words_for_what_is_held_no_longer(server: VLLMServer, model: ABCModel, asked: list[Request]) -> None:
    """What guieval knows a forgotten image by."""
    body = json.loads(chat_body(asked[0], served_name(server.model, server.settings)))
    for message in body["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else ():
            if part["type"] == "image_url":
                part.update(image_url=None, uuid="never seen")
    answer = httpx.post(f"{server.base_url}/chat/completions", json=body, timeout=60)
    assert answer.status_code == 400 and "Cache miss for image at index 0" in answer.text


def test_a_run_is_the_same_with_references(tmp_path: Path, screens: Path, server: VLLMServer, clean: Path) -> None:
    where = ("--base-url", server.base_url, "--served-model", served_name(server.model, server.settings))
    references = ("--set", "local_images=true", "--set", "image_uuids=true")
    errors = run_unreadable(command(screens, None, tmp_path / "run", *where, *references, "--mode", "soeval"))
    assert "bytes" not in errors, errors[-3000:]
    assert answered(tmp_path / "run") == answered(clean / "soeval")
