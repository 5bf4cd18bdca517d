"""``guieval dev prompt`` and ``guieval models``: what would be sent, before anything is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from guieval.cli.models.models import models
from guieval.registry import list_models, load_benchmark
from guieval.steps import Episode
from tests.checkpoints import of_each_kind
from tests.cli.demo_runs import MODEL, OPTIONS, command, reference
from tests.command_line import CommandLine

SETTINGS = [item for name, value in OPTIONS.items() for item in ("--set", f"{name}={value}")]


@pytest.fixture(scope="module")
def episode(demo: Path) -> Episode:
    return max(load_benchmark("demo", demo, **OPTIONS), key=len)


def prompt(demo: Path, episode: Episode, *more: str | Path, model: str = MODEL) -> tuple[str | Path, ...]:
    name = episode.key.episode_id
    return ("dev", "prompt", "--model", model, "--bench", "demo", "--data", demo, "--episode", name, *SETTINGS, *more)


def test_a_prompt_is_printed_whole(demo: Path, episode: Episode, guieval: CommandLine) -> None:
    result = guieval(*prompt(demo, episode, "--step", "1")).out
    first, second = episode.steps[:2]
    width, height = first.screenshot_size
    assert result.startswith("=== system\nYou are a helpful assistant.\n=== user\nYou are a GUI agent.")
    shown = [f"=== user\n[image {task.screenshot}: {width} x {height}]\n" for task in (first, second)]
    assert f"\n{first.instruction}\n{shown[0]}=== assistant\nThought: " in result and result.endswith(shown[1])
    silent = guieval(*prompt(demo, episode, "--step", "1", "--no-thinking")).out
    assert "Thought:" not in silent and "Thought:" in result
    given = guieval(*prompt(demo, episode, "--step", "0", "--thought", "I tap it.")).out
    assert "=== assistant, to be continued\nThought: I tap it.\nAction:\n=== request fields\n" in given


def test_the_past_of_a_sequential_mode_is_a_runs(demo: Path, episode: Episode, tmp_path: Path, guieval: CommandLine) -> None:
    directory = tmp_path / "run"
    with reference(demo, accuracy=1.0) as server:
        done = guieval(*command(server, demo, directory, "--quiet", "--mode", "soeval"))
        assert done.code == 0, done
    offline = guieval(*prompt(demo, episode, "--step", "1")).out
    own = guieval(*prompt(demo, episode, "--step", "1", "--mode", "soeval", "--run", directory)).out
    assert own.count("=== assistant") == offline.count("=== assistant") == 1
    assert "Action: " in own
    other = ("--step", "1", "--mode", "soeval", "--run", tmp_path)
    assert "not a run directory" in guieval.sentence(*prompt(demo, episode, *other))


def test_mistakes_are_one_sentence(demo: Path, episode: Episode, tmp_path: Path, guieval: CommandLine) -> None:
    last, name = len(episode) - 1, episode.key.episode_id
    for wrong in (last + 1, -1):
        assert f"has the steps 0 to {last}, not {wrong}" in guieval.sentence(*prompt(demo, episode, "--step", str(wrong)))
    assert "the model's own responses: add --run" in guieval.sentence(*prompt(demo, episode, "--step", "0", "--mode", "soeval"))
    assert "--run is for the modes" in guieval.sentence(*prompt(demo, episode, "--step", "0", "--run", tmp_path))
    told = guieval.sentence(*prompt(demo, episode, "--step", "0", "--thinking", model="qwen3-vl-8b-instruct"))
    assert "no thinking switch" in told
    assert "'ui-tars-7b'" in guieval.sentence(*prompt(demo, episode, "--step", "0", model="ui-tars-7"))
    told = guieval.sentence(*("none" if word == name else word for word in prompt(demo, episode, "--step", "0")))
    assert "benchmark 'demo' has no episode 'none'; it has 5, the first is " in told


def test_models_are_listed_by_size_and_reported_whole(guieval: CommandLine) -> None:
    names = [line.split()[0] for line in guieval("models", "qwen2_5_vl").out.splitlines() if line.startswith("qwen")]
    sizes = [name for name in names if "ui-" not in name]
    assert sizes == ["qwen2.5-vl-3b", "qwen2.5-vl-7b", "qwen2.5-vl-32b", "qwen2.5-vl-72b"]
    result = guieval("models", "qwen3-vl-8b-thinking").out
    assert "\nhf_id: Qwen/Qwen3-VL-8B-Thinking\n" in result and "\ncontext_length: 262144\n" in result
    assert 'vllm serve Qwen/Qwen3-VL-8B-Thinking --limit-mm-per-prompt \'{"image": 1, "video": 0}\' --chat-template /' in result
    assert "=== user\nThe user query: Turn on Wi-Fi" in result and "[image 1.png: 1080 x 2400]" in result
    assert result.endswith("</tool_call>\n") and '"action": "swipe"' in result
    assert "thinking: --thinking/--no-thinking (default on)" in guieval("models", "ui-tars-1.5-7b").out


@pytest.mark.parametrize("names", [of_each_kind, pytest.param(list_models, marks=pytest.mark.full)])
def test_checkpoints_have_a_prompt_and_a_reply(names: Callable[[], Sequence[str]], capsys: pytest.CaptureFixture[str]) -> None:
    for name in names():
        models(name)
        result = capsys.readouterr().out
        shown = result.partition("an example prompt, the second step of an episode:\n")[2]
        prompt, _, reply = shown.partition("an example response to it, as the model would write it:\n")
        assert result.startswith(f"name: {name}\n") and "=== user" in prompt and "[image 1.png: 1080 x 2400" in prompt
        assert reply.strip(), name
