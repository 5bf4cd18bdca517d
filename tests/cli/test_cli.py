"""The command line as a user meets it: what it prints, and one clear sentence with exit code 2 for every mistake."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from guieval.journal import STEPS, Records
from guieval.registry import load_benchmark
from guieval.testing.mock_server import MockServer, MockSettings
from tests.command_line import CommandLine

SMALL = ("--set", "bench_options.episodes=5", "--set", "bench_options.seed=4")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


def test_unknown_names_answer_with_the_nearest(guieval: CommandLine) -> None:
    assert "did you mean 'ui-tars-7b'?" in guieval.sentence(
        "run", "--model", "ui-tars-7", "--bench", "demo", "--base-url", "http://x/v1"
    )
    assert "did you mean 'androidcontrol'?" in guieval.sentence("run", "--model", "ui-tars-7b", "--bench", "android-control")
    assert "did you mean 'soeval'?" in guieval.sentence(
        "run", "--model", "ocr-baseline", "--bench", "demo", "--mode", "so-eval"
    )
    assert "did you mean 'ui-s1-sop'?" in guieval.sentence(
        "run", "--model", "ocr-baseline", "--bench", "demo", "--protocol", "ui-s1-so", "--limit", "1"
    )
    assert "did you mean 'sampling'?" in guieval.sentence(
        "run", "--model", "ocr-baseline", "--bench", "demo", "--set", "sampling_=1"
    )
    assert "did you mean 'ui-s1-sop'?" in guieval.sentence("protocols", "ui-s1-so")
    assert "did you mean 'qwen2.5-vl-7b'?" in guieval.sentence("models", "qwen2.5vl-7b")
    assert "unknown adapter 'ui_tar'" in guieval.sentence("run", "--model", "x", "--adapter", "ui_tar", "--bench", "demo")


def test_what_is_missing_gives_one_sentence(tmp_path: Path, demo: Path, guieval: CommandLine) -> None:
    assert "'model' is required (--model)" in guieval.sentence("run", "--bench", "demo")
    assert "needs its data folder: add --data DIR" in guieval.sentence(
        "run", "--model", "ui-tars-7b", "--bench", "androidcontrol"
    )
    assert "does not exist" in guieval.sentence(
        "run", "--model", "ui-tars-7b", "--bench", "androidcontrol", "--data", tmp_path / "none"
    )
    assert str(tmp_path) in guieval.sentence("run", "--model", "ui-tars-7b", "--bench", "androidcontrol", "--data", tmp_path)
    assert "add --base-url URL" in guieval.sentence("run", "--model", "ui-tars-7b", "--bench", "demo", "--data", demo)
    assert "no thinking switch" in guieval.sentence("run", "--model", "qwen2.5-vl-7b", "--bench", "demo", "--thinking")
    assert "nothing to resume" in guieval.sentence("run", "--resume", tmp_path / "none")
    assert "expected a run directory or a predictions file" in guieval.sentence("score", tmp_path / "none")
    assert "not a run directory" in guieval.sentence("score", tmp_path)
    assert "cannot be read" in guieval.sentence("run", "--config", tmp_path / "none.yaml")
    assert "concurrency" in guieval.sentence("run", "--model", "ocr-baseline", "--bench", "demo", "--concurrency", "0")
    (tmp_path / "broken.py").write_text("import nothing_of_this_name")
    assert "cannot be imported: ModuleNotFoundError" in guieval.sentence(
        "run", "--model", "x", "--adapter", tmp_path / "broken.py", "--bench", "demo"
    )


def test_no_server_is_one_sentence(tmp_path: Path, demo: Path, guieval: CommandLine) -> None:
    result = guieval.sentence(
        *("run", "--model", "ui-tars-7b", "--bench", "demo", "--data", demo, "--base-url", "http://127.0.0.1:9/v1"),
        *("--out", tmp_path / "run", "--max-attempts", "1", *SMALL),
    )
    assert "127.0.0.1:9" in result


def test_a_wrong_key_stops_at_once_and_is_written_nowhere(
    tmp_path: Path, demo: Path, guieval: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = MockSettings(
        model="ui-tars-7b", error_rate=1.0, error_status=401, echo_key=True, served_models=("ui-tars-7b",), keep=1
    )
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-key-0123456789")
    with MockServer(settings) as server:
        done = guieval(
            *("run", "--model", "ui-tars-7b", "--bench", "demo", "--data", demo, "--base-url", server.base_url),
            *("--out", tmp_path / "run", *SMALL),
        )
        assert "sk-very-secret-key-0123456789" in server.requests[-1].headers["authorization"]
    assert done.code == 2 and "401" in done.err
    left = b"".join(path.read_bytes() for path in (tmp_path / "run").iterdir())
    assert b"very-secret" not in left and "very-secret" not in done.out + done.err


def test_a_run_ends_with_the_table_the_place_and_the_commands(tmp_path: Path, demo: Path, guieval: CommandLine) -> None:
    settings = MockSettings(model="ui-tars-7b", policy="reference", accuracy=0.5, served_models=("ui-tars-7b",))
    with MockServer(settings, benchmark=load_benchmark("demo", demo, episodes=5, seed=4)) as server:
        run = tmp_path / "run"
        done = guieval(
            *("run", "--model", "ui-tars-7b", "--bench", "demo", "--data", demo, "--base-url", server.base_url, "--out", run),
            *("--mode", "offline", "--mode", "soeval", "--mode", "sop", *SMALL),
        )
        assert done.code == 0, done.err
        for expected in ("offline", "soeval", "sop", "exact match", "unparseable", "coverage", f"run:      {run}"):
            assert expected in done.out, expected
        assert f"guieval score {run / 'sop'} --protocol" in done.out
        unlike = guieval.sentence("run", "--resume", run / "sop", "--set", "sampling.temperature=0.7")
        assert "cannot be resumed, because it differs in sampling.temperature (was None, now 0.7)" in unlike
        assert "already holds a run" in guieval.sentence(
            *("run", "--model", "ui-tars-7b", "--bench", "demo", "--data", demo, "--base-url", server.base_url),
            *("--out", run / "sop"),
        )
    scored = guieval("score", run / "offline", "--protocol", "ui-s1-sop", "--protocol", "guievalkit")
    assert scored.code == 0 and "ui-s1-sop" in scored.out and "guievalkit" in scored.out


def test_a_replay_equals_the_run_it_replays(tmp_path: Path, demo: Path, guieval: CommandLine) -> None:
    settings = MockSettings(model="ui-tars-7b", policy="reference", accuracy=0.5, served_models=("ui-tars-7b",))
    common = ("run", "--model", "ui-tars-7b", "--bench", "demo", "--data", demo, *SMALL)
    with MockServer(settings, benchmark=load_benchmark("demo", demo, episodes=5, seed=4)) as server:
        assert guieval(*common, "--base-url", server.base_url, "--out", tmp_path / "one").code == 0
    assert guieval(*common, "--replay", tmp_path / "one", "--out", tmp_path / "two").code == 0
    replies = [
        {str(record.task.key): (record.sample.raw_response, record.sample.outcome) for record in Records(tmp_path / name)}
        for name in ("one", "two")
    ]
    assert replies[0] == replies[1]


def test_predictions_files_are_scored(tmp_path: Path, demo: Path, guieval: CommandLine) -> None:
    benchmark = load_benchmark("demo", demo, episodes=3)
    data = ("--bench", "demo", "--data", demo, "--set", "episodes=3")
    rows = [
        {"episode_id": task.episode_id, "step_index": task.step_index, "action": task.action.model_dump(mode="json")}
        for episode in benchmark
        for task in episode.steps
    ]
    file = tmp_path / "predictions.jsonl"
    file.write_text("".join(json.dumps({**row, "subset": benchmark.index()[0].key.subset}) + "\n" for row in rows[:-1]))
    done = guieval("score", file, *data)
    assert done.code == 0 and f"{len(rows) - 1} predictions for {len(rows)} steps" in done.err
    file.write_text("\ufeff" + json.dumps(rows[0]) + "\r\n" + json.dumps(rows[0]) + "\r\n")
    assert "is answered twice" in guieval.sentence("score", file, *data)
    file.write_text('{"episode_id": "no such episode", "step_index": 0, "action": null}\n')
    assert "does not have" in guieval.sentence("score", file, *data)
    file.write_text('{"episode_id": "1"}\n')
    assert "line 1, field step_index" in guieval.sentence("score", file, *data)


def test_lists_and_doctor(tmp_path: Path, demo: Path, guieval: CommandLine) -> None:
    assert (
        "ui-tars-1.5-7b" in guieval("models").out and "ByteDance-Seed/UI-TARS-1.5-7B" in guieval("models", "ui-tars-1.5-7b").out
    )
    assert "screenspot-v2" in guieval("benchmarks").out
    assert "ui-s1-reward-match" in guieval("protocols").out
    assert "1.2" in guieval("protocols", "guievalkit").out
    assert "(extra baseline)" in guieval("doctor").out
    whole = guieval("doctor", "demo", "--data", demo)
    assert whole.code == 0 and "no errors, no warnings" in whole.out


def test_a_benchmark_is_reported_whole(guieval: CommandLine) -> None:
    result = guieval("benchmarks", "ui-r1").out
    for line in ("paper:    arXiv 2503.21620", "setting:  low", "options:  none", "1,543 episodes, 7,868 steps: CLICK 5,074"):
        assert line in result
    assert "guieval doctor ui-r1 --data DIR" in result and "Layout: one JSON list" in result
    assert "screen_size=None" in guieval("benchmarks", "androidcontrol").out
    assert "did you mean 'ui-r1'?" in guieval.sentence("benchmarks", "ui-r2")


def test_plug_ins_are_checked_by_name(tmp_path: Path, guieval: CommandLine) -> None:
    done = guieval("check", "ui-r1", "ocr-baseline", "qwen3_vl")
    assert done.code == 0 and done.err == ""
    assert done.out.split("\n")[:3] == [
        "benchmark ui-r1: conforms",
        "model ocr-baseline: conforms",
        "adapter qwen3_vl: conforms",
    ]
    assert "did you mean 'qwen3_vl'?" in guieval.sentence("check", "qwen3_vll")
    mute = tmp_path / "mute.py"
    mute.write_text(MUTE)
    done = guieval("check", mute)
    assert done.code == 1 and "round trip:" in done.out and "in all: " in done.out


MUTE = """
from guieval.actions import ActionSpace, Wait
from guieval.frames import PER_1000
from guieval.models import ABCModel, ImageRef, Message, ModelInput, ParsedResponse


class Mute(ABCModel):
    action_space = ActionSpace(types=frozenset({"CLICK"}))

    def frame(self, task):
        return PER_1000

    def prepare_input(self, task, history):
        return ModelInput((Message("user", (ImageRef(task), task.instruction)),))

    def parse_response(self, task, text):
        return ParsedResponse(Wait())

    def render(self, task, action, thought=None, conclusion=None):
        return ""
"""


def test_a_second_writer_gets_an_error_that_names_the_holder(tmp_path: Path, demo: Path, guieval: CommandLine) -> None:
    from guieval.journal import Journal

    with MockServer(MockSettings(model="ui-tars-7b", served_models=("ui-tars-7b",))) as server, Journal(tmp_path / "run"):
        done = guieval(
            *("run", "--model", "ui-tars-7b", "--bench", "demo", "--data", demo, "--base-url", server.base_url),
            *("--out", tmp_path / "run", *SMALL),
        )
    assert done.code == 1 and f"is being written by process {os.getpid()}" in done.err
    assert (tmp_path / "run" / STEPS).read_bytes() == b""
