"""Mode ``graph`` as runs: episodes as paths, resume, rewards, and what is refused."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

import guieval as package
from guieval.actions import action_to_json
from guieval.graphs.environment import GraphEnvironment
from guieval.graphs.of_benchmarks import graph_environment
from guieval.journal import RunFolder
from guieval.online.trajectory import TRAJECTORIES, last_attempts
from guieval.registry import benchmarks, load_benchmark
from guieval.training.settings import JudgeReward
from tests.command_line import CommandLine
from tests.graphs.small import HOME, led, walked, write
from tests.online.test_runs import outcomes, requests, write_agent
from tests.rows import every_row

COLOR: dict[str, Any] = {
    "bench": "colorbench-intended",
    "bench_options": {"screens": "drawn"},
    "mode": "graph",
    "progress": False,
}


@every_row("name", ["demo", "mobi-bench", "episodes", "androidcontrol"])
def test_the_references_of_any_benchmark_are_a_path_to_success(tmp_path: Path, name: str) -> None:
    """Whatever the protocol's rules are, each reference leads to the next screen; HOME, which is no reference, is a miss."""
    if benchmarks()[name].needs_data:
        benchmarks()[name].write_example(tmp_path)
    environment = graph_environment(name, tmp_path)
    assert isinstance(environment, GraphEnvironment) and environment.name == name
    for task in environment.tasks():
        score = asyncio.run(led(environment, task))
        assert score.success and score.progress == 1 and score.counts["misses"] == 0, score
        lost = walked(environment, [HOME] * 3, task.id).score
        assert (lost.success, lost.progress, lost.counts["misses"]) == (False, 0, 3)


def test_a_run_on_paths_has_its_metrics_and_its_walk(tmp_path: Path, guieval: CommandLine) -> None:
    episode = next(iter(load_benchmark("demo", tmp_path, episodes=1)))
    name, right = episode.key.episode_id, [action_to_json(step.action) for step in episode.steps]
    agent = write_agent(tmp_path, {name: ['{"type": "WAIT"}', *right]})
    made: list[str | Path] = [
        "run",
        "--model",
        "scripted",
        "--adapter",
        agent,
        "--engine",
        "local",
        "--bench",
        "demo",
        "--mode",
        "graph",
    ]
    out = tmp_path / "run"
    done = guieval(*made, "--set", "bench_options.episodes=1", "--set", "bench_options.miss=2", "--out", out)
    assert done.code == 0 and "off the graph" in done.out, done
    metrics = package.open_run(out).metrics()
    assert metrics["off the graph"].value == pytest.approx(1 / (1 + len(right)))
    assert metrics["success rate"].value == metrics["progress"].value == metrics["path progress"].value == 1
    assert metrics["wasted steps"].value == pytest.approx(1 / (1 + len(right)))
    (steps,) = last_attempts(out).values()
    assert [step.screenshot for step in steps[:1]] == [step.screenshot for step in steps[1:2]]  # the wait stays
    outcome = outcomes(out)[name]
    assert JudgeReward(progress=0.5).of(outcome) == 1.5 and guieval("study", "graphs", out).out.count("misses of") > 1
    assert "miss:2" in str(RunFolder(out).manifest.benchmark.environment)
    assert guieval("report", out).code == 0 and (out / "report" / "index.html").is_file()


def test_a_stopped_run_repeats_its_walk(tmp_path: Path) -> None:
    folder = write(tmp_path)
    script = ['{"type": "OPEN", "app": "微信"}', '{"type": "CLICK", "point": [185, 84]}', '{"type": "STOP"}']
    agent = write_agent(tmp_path, dict.fromkeys("12345", script))
    one = tmp_path / "ids.txt"
    one.write_text("1\n")
    how: dict[str, Any] = {"model": "scripted", "adapter": str(agent), "engine": "local", "data": folder, "episodes": one}
    package.run(**COLOR, **how, out=tmp_path / "whole")
    asked = len(requests(agent))
    shutil.copytree(tmp_path / "whole", tmp_path / "torn")
    for name in ("tasks.jsonl", "metrics.json"):
        (tmp_path / "torn" / name).unlink()
    (tmp_path / "torn" / "tasks.jsonl").touch()
    lines = (tmp_path / "whole" / TRAJECTORIES).read_bytes().splitlines(keepends=True)
    (tmp_path / "torn" / TRAJECTORIES).write_bytes(b"".join(lines[:2]))
    package.run(resume=tmp_path / "torn", adapter=str(agent), progress=False)
    assert asked == 3 and len(requests(agent)) == asked + 1
    assert outcomes(tmp_path / "torn") == outcomes(tmp_path / "whole") and outcomes(tmp_path / "torn")["1"].ended == "success"


@every_row(
    ("options", "sentence"),
    [
        (["--bench", "colorbench-intended"], "has no tasks.json; add --data DIR"),
        (["--bench", "colorbnch-intended"], "did you mean 'colorbench-intended'?"),
        (["--bench", "miniwob"], "environment 'miniwob' has no recorded screens: `guieval data record --graph --bench miniwob"),
        (["--bench", "demo", "--set", "bench_options.miss=never"], "option miss is 'never'; expected stay, end, or a whole"),
        (["--bench", "demo", "--set", "bench_options.mis=end"], "benchmark 'demo' has no option 'mis'"),
        (["--bench", "demo", "--protocol", "ui-s1"], "mode graph is judged by the environment"),
        (["--bench", "demo", "--allow-network"], "--allow-network is for web pages, and mode graph has recorded screens"),
        (["--bench", "colorbench-intended", "--mode", "online"], "has recorded screens: --mode graph acts on them"),
        (
            ["--bench", "colorbench-official", "--mode", "offline"],
            "is an environment, with no recorded episodes: add --mode graph",
        ),
    ],
)
def test_what_cannot_be_meant_is_a_sentence(tmp_path: Path, guieval: CommandLine, options: list[str], sentence: str) -> None:
    mode = [] if "--mode" in options else ["--mode", "graph"]
    assert sentence in guieval.sentence("run", "--model", "ocr-baseline", "--out", tmp_path / "run", *mode, *options)
