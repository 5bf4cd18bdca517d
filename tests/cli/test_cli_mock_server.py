"""``guieval mock-server``: its options reach the server, and a mistake in one is reported by the option's name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.command_line import CommandLine
from tests.programs import started
from tests.waiting import PATIENCE

KEY = "mock-key-0123456789"


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """The address of the server while it runs."""
    words = [sys.executable, "-m", "guieval", "mock-server", "--port", "0", "--policy", "fixed", "--reply", "hi", *options]
    with started(words, stdout=subprocess.PIPE, env={**os.environ, "MOCK_KEY": KEY}) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_what_a_server_refuses_and_when_it_fails_can_be_chosen() -> None:
    options = "--served-model a --served-model b --check-model --api-key-env MOCK_KEY --longest-body 400"
    with serving(*options.split(), "--first-fault", "503", "--first-fault", "html", "--faults-after", "1") as url:
        headers = {"Authorization": f"Bearer {KEY}"}

        def ask(name: str, model: str = "a", **more: str) -> httpx.Response:
            body = {"model": model, "messages": [], **more}
            return httpx.post(f"{url}/chat/completions", json=body, headers={**headers, "X-Request-Id": name})

        listed = httpx.get(f"{url}/models", headers=headers).json()["data"]
        assert [entry["id"] for entry in listed] == ["a", "b"]
        assert httpx.get(f"{url}/models").status_code == 401
        assert ask("first").status_code == 200, "no fault comes before the second request"
        assert ask("second").status_code == 503
        assert ask("second").text.startswith("<html>")
        assert ask("second", "b").json()["choices"][0]["message"]["content"] == "hi"
        assert ask("other", "c").status_code == 404
        assert ask("long", user="x" * 400).status_code == 400


def test_mistakes_name_the_option(guieval: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    for words, printed in (
        (("--slots", "0"), "--slots is 0"),
        (("--malformed-kind", "odd"), "--malformed-kind is 'odd'"),
        (("--first-fault", "odd"), "unknown fault 'odd'"),
        (("--api-key-env", "NO_SUCH_KEY"), "--api-key-env is 'NO_SUCH_KEY'"),
        (("--longest-body", "0"), "--longest-body is 0"),
    ):
        assert printed in guieval.sentence("mock-server", *words)
