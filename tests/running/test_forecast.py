"""What a run would send: counted and estimated without a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guieval.history import reference_entry
from guieval.models import ModelInput
from guieval.registry import load_benchmark, load_model
from guieval.running.costs import Price
from guieval.running.engine_choice import open_server
from guieval.running.forecast import Forecast, forecast
from guieval.running.resolve import resolve
from guieval.settings import RunConfig
from tests.command_line import CommandLine

PRICE = Price(models=("m",), currency="EUR", input=2.0, output=10.0, source="here", as_of="2026-11")
NOWHERE = "http://127.0.0.1:9/v1"


def of(tmp_path: Path, **settings: object) -> Forecast:
    given = {"model": "gpt-4o", "bench": "demo", "bench_options": {"episodes": 2}, "split": "all", "data": str(tmp_path)}
    config = RunConfig.model_validate({**given, "base_urls": (NOWHERE,), **settings})
    return forecast(resolve(config, open_server(config, tmp_path / "log")))


def tokens(prepared: ModelInput) -> float:
    """Of a prompt with a screen of 360 x 800 pixels: 13 x 29 squares of 28 pixels."""
    return (len(prepared.text) + len(json.dumps(prepared.extra))) / 4 + 13 * 29


def test_requests_are_steps_times_samples_and_a_bound_where_a_mode_stops_early(tmp_path: Path) -> None:
    steps = sum(len(episode) for episode in load_benchmark("demo", tmp_path, episodes=2))
    assert (of(tmp_path).requests, of(tmp_path).at_most) == (steps, False)
    bounded = of(tmp_path, mode="sop", samples=3, sampling={"temperature": 1.0})
    assert (bounded.requests, bounded.at_most) == (3 * steps, True)


def test_tokens_are_the_mean_of_the_prompts(tmp_path: Path) -> None:
    model = load_model("gpt-4o")
    sizes = []
    for episode in load_benchmark("demo", tmp_path, episodes=2):
        past = tuple(map(reference_entry, episode.steps))
        sizes += [tokens(model.prepare_input(step, past[: step.step_index])) for step in episode.steps]
    assert len(sizes) <= 20, "so all are measured"
    found = of(tmp_path)
    assert found.prompt_tokens == pytest.approx(sum(sizes) / len(sizes))
    assert found.reply_tokens == 1024 and found.price is not None


def test_the_sentences_name_what_is_not_known() -> None:
    lines = dict(Forecast("sop", 1234, True, 1500.4, 100, PRICE).lines())
    assert lines["requests"] == "at most 1,234 in mode sop"
    estimated = "estimated at one token per 4 characters or per 28 x 28 pixels"
    assert lines["tokens"] == f"about 1,900,000 in, 1,500 a request ({estimated})"
    added = dict(Forecast("sop", 1234, True, 1500.4, 100, PRICE, 400).lines())["tokens"]
    assert added.endswith(f"({estimated}, plus 400 for the service's own tool)"), "they are part of the sum"
    assert lines["replies"] == "at most 123,400 tokens, 100 each"
    assert lines["cost"] == "about 3.70 EUR for the prompts, at most 1.23 EUR for the responses (prices as of 2026-11)"
    assert "not known" in dict(Forecast("offline", 5, False, 10.0, None, None).lines())["cost"]
    others = {"tokens": "not known, since they depend on the screens", "at worst": "1 request a step"}
    online = dict(Forecast("online", 5, True, None, 7, PRICE).lines())
    assert online == {"requests": "at most 5 in mode online", **others}


def test_the_worst_case_is_every_attempt_with_every_look(tmp_path: Path) -> None:
    one = Forecast("offline", 20, False, 1000.0, 100, PRICE, steps=10, attempts=5, looks=3, screen_tokens=400.0, thoughts=1)
    assert one.worst_requests == 5 * (2 * 4 + 1)
    prompts = 5 * (2 * (1000 + 1500 + 2000 + 2500) + 1000)  # each look's call and screenshot are sent with the next request
    assert one.worst_cost() == pytest.approx((prompts * 2.0 + 45 * 100 * 10.0) / 1e6)
    assert dict(one.lines())["at worst"] == (
        "45 requests a step (2 samples x 5 attempts x 4 responses, and 5 for its patch), 0.2000 EUR each, 1.90 EUR in all"
    )
    unlimited = Forecast("offline", 20, False, 1000.0, None, PRICE, steps=20, attempts=5)
    assert "5 requests a step" in dict(unlimited.lines())["at worst"] and "no limit" in dict(unlimited.lines())["at worst"]
    assert (of(tmp_path).attempts, of(tmp_path, max_attempts=2).worst_requests) == (5, 2)
    computer = of(tmp_path, model="claude-opus-4-7-computer")
    assert (computer.looks, computer.reply_tokens, computer.worst_requests) == (3, 4096, 20)


def test_the_makers_tool_is_counted_where_its_size_is_published() -> None:
    sizes = {name: load_model(name).tool_tokens for name in ("claude-opus-5-computer", "claude-opus-4-7-computer", "gpt-4o")}
    assert sizes == {"claude-opus-5-computer": 4520, "claude-opus-4-7-computer": 1234, "gpt-4o": 0}


def test_the_command_sends_nothing_and_writes_nothing(tmp_path: Path, guieval: CommandLine) -> None:
    out = tmp_path / "run"
    words: list[str | Path] = ["--bench", "demo", "--data", tmp_path / "demo", "--out", out, "--dry-run"]
    model = ["--model", "claude-opus-4-7-computer", "--base-url", NOWHERE]
    done = guieval("run", *model, *words, "--mode", "sop", "--mode", "online")
    assert "at most" in done.out and "USD" in done.out and "nothing was sent" in done.out
    assert not out.exists()
    for alone in ("gpt-4o", "gemini-2.5-computer-use"):  # needs neither a server nor a key
        assert "requests:" in guieval("run", "--model", alone, *words).out
    assert "requests: none: ocr-baseline" in guieval("run", "--model", "ocr-baseline", *words).out
