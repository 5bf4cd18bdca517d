"""Options of environments that cannot be meant: one sentence each, before anything is opened."""

from __future__ import annotations

from typing import Any

import pytest

from guieval.errors import UsageError
from guieval.online.find import load_environment
from tests.command_line import CommandLine
from tests.rows import every_row


@every_row(
    ("name", "options", "sentence"),
    [
        ("androidworld", {}, "environment 'androidworld' needs the address of its server: --set bench_options.url=http://"),
        ("androidworld", {"url": "127.0.0.1:5000"}, "option url is '127.0.0.1:5000'; expected an address such as http://"),
        ("androidworld", {"url": "http://a,http://a/"}, "option url names 'http://a' twice"),
        ("androidworld", {"url": "http://a", "combinations": -1}, "option combinations is -1; expected at least 0"),
        ("browsergym", {"benchmark": "a-b"}, "option benchmark is 'a-b'; expected the name of a package"),
        ("browsergym", {"python": "no-such-python"}, "option python is 'no-such-python', which is not a program"),
        *(("browsergym", {"max_steps": 0}, "option max_steps is 0"), ("demo", {"episodes": 0}, "option episodes is 0")),
        ("demo", {"width": 100, "height": 100}, "100 x 100 pixels cannot be drawn"),
        *(("demo-icons", {"episodes": 0}, "at least 1"), ("demo-icons", {"split": "tset"}, "did you mean 'test'")),
        ("miniwob", {"max_steps": 0}, "option max_steps is 0"),
        ("miniwob", {"scale": 9}, "option scale is 9; expected 1 to 8"),
        ("mobileworld", {"url": "http://a", "max_steps": 0}, "option max_steps is 0; expected at least 1"),
        ("mobileworld", {"url": "http://a", "wait": -1.0}, "option wait is -1; expected 0 to 60 seconds"),
        ("openenv", {}, "needs the address of its server: --set bench_options.url=ws://127.0.0.1:8000"),
        ("openenv", {"url": "localhost:8000"}, "option url is 'localhost:8000'; expected an address such as ws://127.0."),
        ("openenv", {"url": "ws://a:99999"}, "option url is 'ws://a:99999'"),
        ("openenv", {"url": "ws://a", "seeds": 0}, "option seeds is 0; expected at least 1"),
    ],
)
def test_an_option_that_cannot_be_meant_is_a_sentence(name: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        load_environment(name, **options)
    assert sentence in str(refused.value)


@every_row(
    ("words", "name", "meant"),
    [
        (("doctor",), "androidwrld", "androidworld"),
        (("data", "download"), "webvoyagr", "webvoyager"),
        (("doctor",), "demoo", "demo"),
    ],
)
def test_a_misspelled_environment_is_not_taken_for_a_benchmark(
    words: tuple[str, ...], name: str, meant: str, guieval: CommandLine
) -> None:
    """The nearest benchmark was named, ``androidcontrol`` for ``androidwrld``."""
    assert f"unknown benchmark or environment {name!r} (did you mean {meant!r}?)" in guieval.sentence(*words, name)
