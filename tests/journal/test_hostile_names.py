"""Names and messages that try to steer a terminal reach no output, whichever command prints them, in whichever form."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from guieval.errors import harmless
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark
from tests.command_line import CommandLine

EVIL = "[red]e\x1b]52;c;QUJD\x07v\x1b[2Ji\x9b31ml\r\x08\u202e\u2066\u200f\x85[/red]|=1\x7f"
MODEL = "qwen3-vl-8b-thinking"


def obeyed(text: str) -> set[str]:
    """The characters of a text that a terminal obeys, or that turn text round."""
    return {mark for mark in text if not mark.isprintable() and mark not in "\n\t"}


def poisoned(value: Any) -> Any:
    """A JSON value with EVIL after its free texts."""
    if isinstance(value, dict):
        return {
            key: f"{each}{EVIL}" if key in FREE and isinstance(each, str) else poisoned(each) for key, each in value.items()
        }
    return list(map(poisoned, value)) if isinstance(value, list) else value


FREE = frozenset(
    {"dataset", "episode_id", "instruction", "low_level_instruction", "raw_response", "thought", "reasoning", "conclusion"}
    | {"reason", "message", "text", "app", "title", "asked", "url", "root", "platform", "element"}
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


@pytest.fixture
def run(folder: Path, guieval: CommandLine) -> Path:
    """A finished run whose every free text is hostile: labels of groups, model, episodes, messages, what was served."""
    if (folder / "run").exists():
        return folder / "run"
    settings = MockSettings(model=MODEL, policy="reference", accuracy=0.6, served_models=("another",))
    with MockServer(settings, benchmark=load_benchmark("demo", folder / "demo", episodes=2)) as server:
        start: list[str | Path] = ["run", "--quiet", "--model", MODEL, "--bench", "demo", "--data", folder / "demo"]
        start += ["--set", "bench_options.episodes=2", "--base-url", server.base_url, "--samples", "3"]
        done = guieval(*start, "--set", "sampling.temperature=1.0", "--out", folder / "made")
        assert done.code == 0, done
    shutil.copytree(folder / "made", folder / "run")
    manifest = poisoned(json.loads((folder / "run" / "manifest.json").read_text()))
    for section in ("model", "benchmark"):
        manifest[section]["name"] += EVIL
    (folder / "run" / "manifest.json").write_text(json.dumps(manifest))
    lines = []
    for number, line in enumerate((folder / "run" / "steps.jsonl").read_text().splitlines()):
        record = json.loads(line)
        record.pop("crc32")
        record = poisoned(record)
        record["task"]["groups"] = {f"kind{EVIL}": f"{number % 2}{EVIL}"}
        record["task"]["dataset"] = f"demo{EVIL}"
        if number == 3:
            error = {"stage": "generate", "type": "EngineError", "message": f"no{EVIL}"}
            failed = {"outcome": {"verdict": "infrastructure_failure", "reason": EVIL}, "error": error}
            record["samples"] = [failed, *record["samples"][1:]]
        lines.append(json.dumps(record))
    (folder / "run" / "steps.jsonl").write_text("".join(f"{line}\n" for line in [*lines, '{"torn": true}']))
    rows = json.loads((folder / "run" / "episodes.json").read_text())
    (folder / "run" / "episodes.json").write_text(json.dumps([[row[0], row[1], row[2] + EVIL, *row[3:]] for row in rows]))
    return folder / "run"


FORMS = ("md", "csv", "json", "latex", "html")
COMMANDS: tuple[tuple[str, ...], ...] = (
    *[("score", "RUN"), ("score", "RUN", "--json"), ("score", "RUN", "--protocol", "all", "--by", f"kind{EVIL}")],
    *[("score", "RUN", "--protocol", "all", "--disagreements", "OUT/d.csv"), ("score", "RUN", "--by", "none-such")],
    *[("report", "RUN", "--no-images", "--out", "OUT/report"), ("dev", "audit", "RUN"), ("compare", "RUN", "MADE", "--anyway")],
    *[("compare", "RUN", "MADE"), ("compare", "RUN", "RUN", "--json")],
    *(("leaderboard", "RUN", "MADE", "--format", form) for form in FORMS),
    *(("study", "decisions", "RUN", *more) for more in ((), ("--json",))),
    *(("study", "decisions", "RUN", "--format", form) for form in ("md", "csv")),
    ("plot", "horizon", "RUN", "--out", "OUT/plot.svg", "--json"),
    *[("plot", "reliability", "RUN", "--out", "OUT/plot2.svg"), ("study", "consistency", "RUN", "--judges", "RUN")],
    *[("runs", "list", "OUT"), ("study", "select", "RUN", "--top", "3", "--out", "OUT/set.json"), ("run", "--resume", "RUN")],
    *[("score", f"nowhere{EVIL}"), ("score", "RUN", "--protocol", f"none{EVIL}")],
    *[("leaderboard", "RUN", "--reference", f"none{EVIL}"), ("run", "--model", f"m{EVIL}", "--bench", "demo")],
    ("dev", "prompt", "--model", MODEL, "--bench", "demo", "--data", "DEMO", "--episode", f"x{EVIL}"),
    ("doctor", f"demo{EVIL}"),
)


@pytest.mark.parametrize(
    "command", COMMANDS, ids=lambda command: " ".join(command[:4]).encode("ascii", "replace").decode()[:50]
)
def test_no_name_of_a_run_folder_steers_a_terminal(
    run: Path, folder: Path, guieval: CommandLine, tmp_path: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {"RUN": run, "MADE": folder / "made", "DEMO": folder / "demo"}
    arguments = [places.get(word, word.replace("OUT/", f"{tmp_path}/") if word != "OUT" else run.parent) for word in command]
    for width in ("80", "200"):
        monkeypatch.setenv("COLUMNS", width)
        shutil.rmtree(tmp_path)
        tmp_path.mkdir()
        done = guieval(*arguments)
        assert done.code in (0, 1, 2) and not obeyed(done.out) and not obeyed(done.err), done
    for file in tmp_path.rglob("*"):
        if file.suffix in (".csv", ".md", ".html", ".tex", ".svg"):
            assert not obeyed(file.read_text(encoding="utf-8").replace("\r\n", "\n")), file


def test_names_that_look_like_markup_stay_as_they_are(run: Path, guieval: CommandLine) -> None:
    shown = guieval("score", run).out
    assert "[red]" in shown and "[/red]" in shown and "\ufffd" in shown


@pytest.fixture
def predictions(folder: Path) -> Iterator[Path]:
    """A file of predictions with hostile names, rows and actions, in a file of a hostile name."""
    benchmark = load_benchmark("demo", folder / "demo", episodes=2)
    file = folder / f"predictions{EVIL.replace('/', '')}.jsonl"
    rows = [
        {"subset": ref.key.subset, "episode_id": ref.key.episode_id, "step_index": 0, "action": {"type": "TYPE", "text": EVIL}}
        for ref in benchmark.index()
    ]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    yield file


def test_no_name_of_a_predictions_file_steers_a_terminal(
    predictions: Path, folder: Path, guieval: CommandLine, tmp_path: Path
) -> None:
    data = ("--bench", "demo", "--data", folder / "demo")
    unknown = tmp_path / "unknown.jsonl"
    unknown.write_text(json.dumps({"episode_id": f"none{EVIL}", "step_index": 0, "response": EVIL}) + "\n")
    wrong = tmp_path / "wrong.jsonl"
    wrong.write_text(json.dumps({"episode_id": "1", "step_index": 0, f"field{EVIL}": EVIL}) + "\n")
    for file in (predictions, unknown, wrong):
        run = tmp_path / file.stem
        scoring = (("score", run), ("score", run, "--protocol", "all", "--json"))
        for command in (("data", "import", file, *data, "--out", run), *scoring):
            done = guieval(*command)
            assert done.code in (0, 1, 2) and not obeyed(done.out) and not obeyed(done.err), done


def test_a_benchmark_file_does_not_steer_a_terminal(guieval: CommandLine, tmp_path: Path) -> None:
    shot = f"{EVIL.replace('/', '')}.png"
    step = {"instruction": EVIL, "screenshot": shot, "screenshot_size": [100, 100], "groups": {EVIL: EVIL}}
    good = {"episode_id": f"a{EVIL}", "split": f"s{EVIL}", "steps": [{**step, "action": {"type": "TYPE", "text": EVIL}}]}
    bad = {"episode_id": f"b{EVIL}", "steps": [{**step, "action": {"type": EVIL}}]}
    (tmp_path / "episodes.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in (good, bad)))
    for command in (
        ("doctor", "episodes", "--data", tmp_path, "--skip-damaged"),
        ("doctor", "episodes", "--data", tmp_path),
        ("dev", "prompt", "--model", MODEL, "--bench", "episodes", "--data", tmp_path, "--skip-damaged"),
        ("data", "export", "episodes", "--data", tmp_path, "--out", tmp_path / "out", "--skip-damaged"),
        ("run", "--model", MODEL, "--bench", "episodes", "--data", tmp_path, "--out", tmp_path / "run", "--split", "none"),
    ):
        done = guieval(*command)
        assert done.code in (0, 1, 2) and not obeyed(done.out) and not obeyed(done.err), done


def test_what_is_harmless_stays() -> None:
    text = "Ordinary text,\twith tabs\nand lines; 多行 ✓ é \U0001f600"
    assert harmless(text) is text or harmless(text) == text
    assert harmless("a\u3000b\xa0c") == "a b c"
    assert harmless("a\x1b[2Jb\r\x9b\u202e\x00") == "a\ufffd[2Jb\ufffd\ufffd\ufffd\ufffd"
