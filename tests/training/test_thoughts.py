"""Thoughts for references: who writes them, what judges them, and what is trained on with them and without."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("aiohttp")

from guieval.errors import EngineError, UsageError
from guieval.models import ModelConfig
from guieval.registry import load_benchmark, load_model
from guieval.rewards.response import ResponseScorer, open_scorer
from guieval.rewards.shapes import weighed
from guieval.training.building import TrainerParts, _supervised
from guieval.training.config import SFTTraining, parse_config
from guieval.training.data.thoughts import KEPT, ServedThoughts, judged, read_thoughts_file, thoughts_of_runs, writes_thoughts
from guieval.training.settings import ThoughtServer
from tests.command_line import CommandLine
from tests.rows import every_row
from tests.running.runner.test_patched_runs import ran
from tests.scripted import ScriptedModel

from .thought_server import Server

UI_S1 = "qwen2.5-vl-7b-ui-s1"
DEMO = ("--model", UI_S1, "--bench", "demo", "--split", "all")
STEPS = list(load_benchmark("demo").load(next(iter(load_benchmark("demo").index()))).steps)


@pytest.fixture
def server() -> Iterator[Server]:
    served = Server("<think>It is the next step.</think>")
    yield served
    served.stop()


def test_a_thought_is_kept_if_the_reply_with_it_has_the_rewards_form() -> None:
    scorer = open_scorer(UI_S1, "ui-s1")
    assert judged(scorer, STEPS[0], "The icon is there.") == (STEPS[0].key, "The icon is there.", KEPT)
    assert "does not have the form that the reward requires" in judged(scorer, STEPS[0], "I write </think> here.").outcome
    assert judged(scorer, STEPS[0], None).outcome == "no thought in the answer"
    # a family that writes no thoughts is not warned about
    assert writes_thoughts(load_model(UI_S1), STEPS[0]) and not writes_thoughts(load_model("os-atlas-base-7b"), STEPS[0])


@pytest.mark.parametrize("by", ["self", "auxiliary"])
def test_the_command_asks_a_server_each_step_once(by: str, server: Server, guieval: CommandLine, tmp_path: Path) -> None:
    out = tmp_path / "thoughts.jsonl"
    given: list[str | Path] = ["study", "thoughts", out, "--by", by, *DEMO, "--limit", "2"]
    asked: list[str | Path] = [*given, "--base-url", server.url, "--served-model", "other-model"]
    done = guieval(*asked)
    assert done.code == 0, done.err
    thoughts = read_thoughts_file(out)
    assert len(thoughts) == len(server.asked) and set(thoughts.values()) == {"It is the next step."}
    texts = json.dumps(server.asked[0]["messages"])
    assert "Next Action Hint" in texts and ("<action>" in texts) == (by == "self")  # the family's form, or plain words
    before = len(server.asked)
    again = guieval(*asked)
    assert again.code == 0 and len(server.asked) == before and f"{len(thoughts):,} steps were in" in again.out


def test_a_thought_of_the_wrong_form_is_asked_for_again(guieval: CommandLine, tmp_path: Path) -> None:
    server = Server("<think>Bad <action> form</think>", "<think>Good.</think>")
    given = [*DEMO, "--limit", "1", "--concurrency", "1"]
    sampled = ["--base-url", server.url, "--set", "sampling.temperature=1.0"]
    done = guieval("study", "thoughts", tmp_path / "a.jsonl", *given, *sampled)
    once = guieval("study", "thoughts", tmp_path / "b.jsonl", *given, *sampled, "--tries", "1")
    server.stop()
    assert done.code == 0 and set(read_thoughts_file(tmp_path / "a.jsonl").values()) == {"Good."}
    assert "without: with the thought, the response does not have the form that the reward requires" in once.out


def test_own_thoughts_are_those_of_exact_replies_and_a_file_without_any_is_one_sentence(tmp_path: Path) -> None:
    model = ScriptedModel(ModelConfig(name="scripted", adapter="scripted"))
    ran(tmp_path / "run", mode="offline")
    found = thoughts_of_runs([tmp_path / "run"], ResponseScorer(model, weighed("hypertrack", None, {})))
    kept = {each.key.step_index: each.thought for each in found if each.outcome == KEPT}
    assert kept and all(thought == f"own {index}" for index, thought in kept.items())
    assert {each.outcome for each in found} == {KEPT, "no exact response in the runs"}
    (tmp_path / "t.jsonl").write_text('{"step": "a#0"}\n')
    with pytest.raises(UsageError, match=r'expected \{"step": ..., "thought": ...\} on each line, got \'\{"step": "a#0"\}\''):
        read_thoughts_file(tmp_path / "t.jsonl")
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_thoughts_file(tmp_path / "none.jsonl")


def sft(**given: Any) -> SFTTraining:
    values = {"kind": "sft", "model": UI_S1, "bench": "demo", "split": "all", "limit": 2}
    config = parse_config({**values, **given})
    assert isinstance(config, SFTTraining)
    return config


def test_references_have_their_thoughts_in_reply_and_history(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    parts = TrainerParts(sft())
    count, example = _supervised(parts, sft())
    assert parts.thought_share == 0.0 and f"{count} of {count} references have no thought" in caplog.text
    keys = [str(example(number).task.key) for number in range(count)]
    file = tmp_path / "thoughts.jsonl"
    file.write_text("".join(json.dumps({"step": key, "thought": f"Since {key}."}) + "\n" for key in keys[:-1]))
    config = sft(thoughts=str(file))
    parts = TrainerParts(config)
    _, example = _supervised(parts, config)
    assert parts.thought_share == pytest.approx(1 - 1 / count)
    second = example(1)
    assert f"Since {keys[1]}." in (second.completion or "") and second.history[0].thought == f"Since {keys[0]}."
    assert "Since" not in (example(count - 1).completion or "")
    file.write_text(json.dumps({"step": "other#0", "thought": "x"}) + "\n")
    with pytest.raises(UsageError, match=r"none of the .* steps has a thought in the file that 'thoughts' names"):
        _supervised(TrainerParts(config), config)


def test_patches_during_training_ask_a_server_once_for_each_step(server: Server) -> None:
    roots = {"demo": load_benchmark("demo").root}
    served = ServedThoughts(ThoughtServer(base_urls=(server.url,), model="other-model"), roots)
    assert served([STEPS[0], STEPS[0], STEPS[1]]) == ["It is the next step."] * 3 and len(server.asked) == 2
    assert served([STEPS[1]]) == ["It is the next step."] and len(server.asked) == 2
    assert {body["model"] for body in server.asked} == {"other-model"}
    server.stop()
    away = ServedThoughts(ThoughtServer(base_urls=(server.url,), model="other-model", patience=0, max_attempts=1), roots)
    with pytest.raises(EngineError, match=r"127\.0\.0\.1"):
        away([STEPS[0]])


@every_row(
    ("arguments", "message"),
    [
        (["--by", "auxilary"], "--by is 'auxilary' (did you mean 'auxiliary'?); expected one of self, auxiliary, responses"),
        (["--by", "responses"], "--by responses needs --run RUN"),
        (["--by", "auxiliary"], "--by auxiliary needs --served-model NAME"),
        (["--run", "x"], "--run is for --by responses; --by self asks a server"),
        (["--reward", "ui-s2"], "did you mean 'ui-s1'"),
        ([], "is answered by a server: add --base-url URL"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: list[str], message: str, guieval: CommandLine, tmp_path: Path) -> None:
    given = ["--model", UI_S1, "--bench", "demo"]
    assert message in guieval.sentence("study", "thoughts", tmp_path / "t.jsonl", *given, *arguments)
