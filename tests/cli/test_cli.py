"""The command line as a user meets it: what it prints, and one clear sentence with exit code 2 for every mistake."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from guieval.conformance.commands.new_adapter import adapter_source
from guieval.journal import RunFolder
from guieval.online.find import environments
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import find_models, list_benchmarks
from guieval.scoring.score import evaluate_run
from tests.cli.demo_runs import MODEL, command, reference
from tests.command_line import CommandLine
from tests.rows import every_row


def test_a_run_ends_with_the_table_the_place_and_the_commands(tmp_path: Path, demo: Path, guieval: CommandLine) -> None:
    out = tmp_path / "run"
    with reference(demo) as server:
        done = guieval(*command(server, demo, out, "--mode", "offline", "--mode", "soeval", "--mode", "sop"))
        assert done.code == 0, done.err
        for expected in ("offline", "soeval", "sop", "exact match", "unparseable", "coverage", f"run:      {out}"):
            assert expected in done.out, expected
        assert f"guieval score {out} --protocol" in done.out
        unlike = guieval.sentence("run", "--resume", out / "sop", "--set", "sampling.temperature=0.7")
        assert "cannot be resumed, because it differs in sampling.temperature (was None, now 0.7)" in unlike
        assert "already has a run" in guieval.sentence(*command(server, demo, out / "sop"))
    scored = guieval("score", out / "offline", "--protocol", "ui-s1-sop", "--protocol", "guievalkit")
    assert scored.code == 0 and "ui-s1-sop" in scored.out and "guievalkit" in scored.out


def test_lists_doctor_and_a_benchmark_reported_whole(tmp_path: Path, demo: Path, guieval: CommandLine) -> None:
    assert "ui-tars-1.5-7b" in guieval("models").out
    assert "ByteDance-Seed/UI-TARS-1.5-7B" in guieval("models", "ui-tars-1.5-7b").out
    assert "screenspot-v2" in guieval("benchmarks").out
    assert "ui-s1-reward-match" in guieval("protocols").out
    assert "1.2" in guieval("protocols", "guievalkit").out
    names = [line.split()[0] for line in guieval("doctor").out.splitlines()[1:]]
    assert names.count("torch") == 1 and "guieval" not in names
    assert len({"rapidocr", "rapidocr-onnxruntime"} & {*names}) == 1, "the one that this Python needs"
    listed, every = guieval("models").out, guieval("models", "--all").out
    assert listed.index("\nqwen3.8-27b") < listed.index("\nqwen3.5-9b") < listed.index("\nqwen3-vl-8b-instruct")
    assert "\nuground-v1-7b" not in listed and every.index("\n2024 and before\n") < every.index("\nuground-v1-7b")
    printed = json.loads(guieval("models", "--task", "grounding", "--size", "30b", "ui-venus", "--json").out)["models"]
    assert [(each["name"], each["proof"]) for each in printed] == [("ui-venus-1.5-30b-a3b", "makers' reader")]
    assert [each.name for each in find_models("holo", size="8b")] == ["holo2-8b"]
    whole = guieval("doctor", "demo", "--data", demo)
    assert whole.code == 0 and "no errors, no warnings" in whole.out
    result = guieval("benchmarks", "ui-r1").out
    for line in ("paper:    arXiv 2503.21620", "setting:  low", "options:  none", "1,543 episodes, 7,868 steps: CLICK 5,074"):
        assert line in result
    assert "guieval doctor ui-r1 --data DIR" in result and "Layout: one JSON list" in result
    assert "screen_size=None" in guieval("benchmarks", "androidcontrol").out
    assert "did you mean 'ui-r1'?" in guieval.sentence("benchmarks", "ui-r2")
    # what has an option of its own is not listed among those for --set
    shown = guieval("benchmarks", "miniwob").out
    assert "options:  max_steps=20, scale=3, text=False, address_bar=False\n" in shown and "allow_network" not in shown
    assert "with --allow-network other hosts too" in shown
    assert "network" not in guieval("benchmarks", "androidworld").out


@every_row("name", [*list_benchmarks(), *(name for name in environments() if name not in list_benchmarks())])
def test_no_marks_of_docstrings_are_printed(guieval: CommandLine, name: str) -> None:
    shown = guieval("benchmarks", name).out
    assert shown.startswith(f"{name}: ") and not re.search(r"``|:[a-z]+:`", shown)


def test_plug_ins_are_checked_by_name_and_a_broken_import_is_one_sentence(tmp_path: Path, guieval: CommandLine) -> None:
    done = guieval("dev", "check", "ui-r1", "ocr-baseline", "qwen3_vl")
    assert done.code == 0 and done.err == ""
    named = ("benchmark ui-r1", "model ocr-baseline", "adapter qwen3_vl")
    assert done.out.split("\n")[:3] == [f"{name}: conforms" for name in named]
    assert "did you mean 'qwen3_vl'?" in guieval.sentence("dev", "check", "qwen3_vll")
    mute = tmp_path / "mute.py"
    silent = "    def render(self, task, action, thought=None, conclusion=None):\n        return ''\n"
    mute.write_text(f"{adapter_source('mute')}\n{silent}")
    done = guieval("dev", "check", mute)
    assert done.code == 1 and "round trip:" in done.out and "in all: " in done.out
    broken = tmp_path / "broken.py"
    broken.write_text("import nothing_of_this_name")
    message = guieval.sentence("run", "--model", "x", "--adapter", broken, "--bench", "demo")
    assert "cannot be imported: ModuleNotFoundError" in message


@pytest.mark.parametrize(
    "more",
    [(), ("--mode", "online"), pytest.param(("--cluster", "ray", "--cluster-address", "local"), marks=pytest.mark.ci)],
    ids=("steps", "tasks", "cluster"),
)
def test_a_fault_in_an_adapter_names_its_line_and_stops_the_run_with_all_answers_kept(
    more: tuple[str, ...], tmp_path: Path, demo: Path, guieval: CommandLine
) -> None:
    mine, out, whole = tmp_path / "mine.py", tmp_path / "run", adapter_source("mine")
    line = whole[: whole.index("    fixed_frame")].count("\n") + 2
    faulty = whole.replace("    fixed_frame = PER_1000", "    def frame(self, task):\n        return PER_100")
    mine.write_text(faulty)
    fault = f"mine.py:{line} in frame: NameError: name 'PER_100' is not defined"
    answer = '{"action": "tap", "point": [500, 500]}'
    run = guieval.apart if "--cluster" in more else guieval
    with MockServer(MockSettings(model=MODEL, policy="fixed", reply=answer, served_models=(MODEL,))) as server:
        done = run(*command(server, demo, out, "--adapter", mine, *more))
        assert done.code == 2 and "Traceback" not in done.err
        assert f"the adapter is at fault: {fault}, at " in done.err and "; every answer " in done.err
        verdicts = evaluate_run(out).summary.verdicts
        assert verdicts.infrastructure_failure == 0
        if not more:
            assert verdicts.measured == 0 and fault in guieval("dev", "check", mine).out
            assert all(each.sample.raw_response == answer for each in RunFolder(out).records if not each.task.step_index)
            mine.write_text(whole)
            assert guieval("run", "--resume", out, "--adapter", mine, "--accept-changes").code == 0


def test_options_reach_the_mock_server_and_mistakes_name_them(guieval: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What each setting does, and how a server runs and ends, is tested in tests/playground/test_mock_server.py."""
    served: list[MockSettings] = []
    monkeypatch.setenv("MOCK_KEY", "mock-key")
    monkeypatch.setattr("guieval.playground.commands.mock_server.serve", served.append)
    settings: dict[str, dict[str, object]] = {
        "": {"port": 8000},
        "--port 0 --policy fixed --reply hi": {"port": 0, "policy": "fixed", "reply": "hi"},
        "--served-model a --served-model b --check-model": {"served_models": ("a", "b"), "check_model": True},
        "--api-key-env MOCK_KEY --longest-body 400": {"api_key": "mock-key", "longest_body": 400},
        "--first-fault 503 --first-fault html --faults-after 1": {"first_faults": ("503", "html"), "faults_after": 1},
        "--slots 3": {"concurrency": 3},
    }
    assert all(guieval("dev", "mock-server", *options.split()).code == 0 for options in settings)
    assert served == [MockSettings.model_validate({"port": 8000, **given}) for given in settings.values()]
    for words, printed in (
        (("--slots", "0"), "--slots is 0"),
        (("--malformed-kind", "odd"), "--malformed-kind is 'odd'"),
        (("--first-fault", "odd"), "unknown fault 'odd'"),
        (("--api-key-env", "NO_SUCH_KEY"), "--api-key-env is 'NO_SUCH_KEY'"),
        (("--longest-body", "0"), "--longest-body is 0"),
    ):
        assert printed in guieval.sentence("dev", "mock-server", *words)
