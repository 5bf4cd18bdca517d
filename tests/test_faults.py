"""A misbehaving server: nothing is lost, nothing is scored that was not answered, and a resume ends like a clean run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from guieval.benchmark import ABCBenchmark
from guieval.config import RunConfig
from guieval.journal import Records
from guieval.metrics import RunSummary
from guieval.mock_server import MockServer, MockSettings
from guieval.opening import open_run
from guieval.registry import load_benchmark
from guieval.runner import GIVE_UP_AFTER

MODEL = "qwen3-vl-8b-instruct"
OPTIONS = {"episodes": 12, "seed": 8}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> ABCBenchmark:
    return load_benchmark("demo", tmp_path_factory.mktemp("demo"), **OPTIONS)


def server(demo: ABCBenchmark, **faults: Any) -> MockServer:
    settings = MockSettings(model=MODEL, policy="reference", accuracy=0.6, served_models=(MODEL,), **faults)
    return MockServer(settings, benchmark=demo)


def run(
    demo: ABCBenchmark, directory: Path, url: str, mode: str = "soeval", *, resume: bool = False, **more: Any
) -> RunSummary:
    config = RunConfig(
        model=MODEL,
        bench="demo",
        bench_options=OPTIONS,
        mode=mode,
        data=str(demo.root),
        base_urls=(url,),
        concurrency=16,
        **more,
    )
    outcome = open_run(config, directory).execute(resume=resume)
    return outcome.tally.summary(outcome.plan)


def answers(directory: Path) -> dict[str, tuple[str | None, bool]]:
    return {
        str(record.task.key): (record.sample.raw_response, record.sample.outcome.exact_match)
        for record in Records(directory)
        if record.finished
    }


@pytest.fixture(scope="module")
def clean(demo: ABCBenchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("clean") / "run"
    with server(demo) as healthy:
        assert run(demo, directory, healthy.base_url).complete
    return directory


@pytest.mark.parametrize(
    "faults",
    [
        {"error_rate": 0.05},
        {"error_rate": 0.1, "error_status": 429, "retry_after": "0"},
        {"malformed_rate": 0.1, "malformed_kinds": ("cut-json", "html", "empty-choices")},
        {"hang_rate": 0.02},
    ],
    ids=["500", "429", "malformed", "hang"],
)
def test_passing_faults_change_nothing(demo: ABCBenchmark, clean: Path, tmp_path: Path, faults: dict[str, Any]) -> None:
    with server(demo, **faults) as flaky:
        summary = run(demo, tmp_path / "run", flaky.base_url, timeout=1.5)
        assert sum(flaky.stats()[kind] for kind in ("failed", "malformed", "hung")) > 0, "the fault never happened"
    assert summary.complete and answers(tmp_path / "run") == answers(clean)


def test_lasting_failures_are_counted_apart_and_resumed(demo: ABCBenchmark, clean: Path, tmp_path: Path) -> None:
    with server(demo, error_rate=0.08, sticky_errors=True) as broken:
        summary = run(demo, tmp_path / "run", broken.base_url, max_attempts=2)
    steps = len(answers(clean))
    assert not summary.complete and summary.exact_match.n == steps
    assert summary.verdicts.infrastructure_failure > 0
    assert summary.verdicts.measured + summary.verdicts.unmeasured == steps
    with server(demo) as healthy:
        resumed = run(demo, tmp_path / "run", healthy.base_url, resume=True)
    assert resumed.complete and answers(tmp_path / "run") == answers(clean)


def test_an_empty_answer_is_the_models_and_stays_in_the_denominator(demo: ABCBenchmark, tmp_path: Path) -> None:
    """``content: null`` and a cut tool call are replies that hold no action; dropping them would raise the score."""
    with server(demo, malformed_rate=0.2, malformed_kinds=("null-content", "cut-text")) as odd:
        summary = run(demo, tmp_path / "run", odd.base_url, "offline")
        odd_replies = odd.stats()["malformed"]
    assert summary.complete and summary.verdicts.unparseable == odd_replies > 0
    assert summary.exact_match.n == summary.verdicts.planned
    assert summary.coverage.n == summary.verdicts.planned > summary.coverage.count


@pytest.mark.parametrize("mode", ["offline", "soeval"])
def test_a_server_that_dies_makes_the_run_incomplete_never_better(
    demo: ABCBenchmark, clean: Path, tmp_path: Path, mode: str
) -> None:
    healthy = server(demo, latency=0.02)
    healthy.start()
    config = RunConfig(
        model=MODEL,
        bench="demo",
        bench_options=OPTIONS,
        mode=mode,
        data=str(demo.root),
        base_urls=(healthy.base_url,),
        concurrency=4,
        max_attempts=1,
        timeout=2,
    )
    opened = open_run(config, tmp_path / "run")
    opened.on_progress = lambda progress: healthy.stop() if progress.done == 20 else None
    outcome = opened.execute(resume=False)
    summary = outcome.tally.summary(outcome.plan)
    assert not summary.complete and summary.exact_match.n == summary.verdicts.planned
    assert summary.verdicts.measured < summary.verdicts.planned
    with server(demo) as again:
        assert run(demo, tmp_path / "run", again.base_url, mode, resume=True).complete
    if mode == "soeval":
        assert answers(tmp_path / "run") == answers(clean)


def test_a_run_gives_up_when_nobody_answers_any_more(tmp_path: Path) -> None:
    large = load_benchmark("demo", tmp_path / "demo", episodes=30, seed=3)
    with MockServer(MockSettings(policy="fixed", error_rate=1.0, served_models=(MODEL,))) as dead:
        config = RunConfig(
            model=MODEL,
            bench="demo",
            bench_options={"episodes": 30, "seed": 3},
            data=str(large.root),
            base_urls=(dead.base_url,),
            concurrency=4,
            max_attempts=1,
        )
        outcome = open_run(config, tmp_path / "run").execute(resume=False)
    assert outcome.gave_up and not outcome.interrupted
    failed = outcome.failures["generate"]
    assert GIVE_UP_AFTER <= failed.count <= GIVE_UP_AFTER + 4 and "500" in failed.example


def test_a_damaged_screenshot_costs_its_step_and_is_resumed_when_mended(
    demo: ABCBenchmark, clean: Path, tmp_path: Path
) -> None:
    task = next(iter(demo)).steps[1]
    screenshot = demo.root / task.screenshot
    whole = screenshot.read_bytes()
    try:
        screenshot.write_bytes(whole[: len(whole) // 2])
        with server(demo) as healthy:
            summary = run(demo, tmp_path / "run", healthy.base_url)
    finally:
        screenshot.write_bytes(whole)
    failed = [record.sample for record in Records(tmp_path / "run") if not record.finished]
    assert [sample.error.stage for sample in failed if sample.error] == ["screenshot"]
    assert "truncated" in failed[0].outcome.reason
    assert summary.verdicts.infrastructure_failure == 1 and summary.verdicts.not_run == task.episode_length - 2
    with server(demo) as healthy:
        assert run(demo, tmp_path / "run", healthy.base_url, resume=True).complete
    assert answers(tmp_path / "run") == answers(clean)
