"""The runner and its scheduler: no barrier, every step once, failures kept apart, images, resuming, and Ctrl-C."""

from __future__ import annotations

import asyncio
import heapq
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from guieval.actions import Press
from guieval.data.benchmark import EpisodeRef
from guieval.data.screenshots import Screenshot, file_digest, picture
from guieval.errors import EngineError, ScreenshotError, UsageError
from guieval.journal import METRICS, RunFolder
from guieval.metrics.kinds import of_steps
from guieval.models import ImageRef, Request
from guieval.running.runner.image_cache import ImageLoader
from guieval.running.runner.scheduler import ActiveEpisode, Scheduler
from guieval.scoring.score import evaluate_run, store_summary
from guieval.steps import EpisodeKey
from tests.json_values import read_json
from tests.pictures import KINDS, Kind
from tests.programs import started
from tests.rows import every_row
from tests.running.records import final
from tests.running.scripted_runs import failing
from tests.scripted import ACTIONS, ScriptedEngine, make_episode, past_of, reply_with, run_scripted
from tests.waiting import PATIENCE, until

EPISODES = [make_episode(str(number), ACTIONS[: 1 + number % 4]) for number in range(12)]
STEPS = sum(map(len, EPISODES))


def answer(request: Request) -> str:
    """Right but for every fifth step."""
    wrong = (int(request.task.episode_id) + request.task.step_index) % 5 == 0
    return reply_with(Press(button="HOME") if wrong else request.task.action, f"thought {request.task.key}")


def flaky(error: Exception, *steps: tuple[str, int]) -> ScriptedEngine:
    return ScriptedEngine(failing(error, lambda request: request.task.key[2:] in steps, answer))


def test_a_slow_step_holds_up_nothing_but_its_own_episode(tmp_path: Path) -> None:
    engine = ScriptedEngine(answer, lambda request: 3000 if request.task.key[2:] == ("3", 0) else 1)
    run_scripted(tmp_path / "run", EPISODES, engine, mode="soeval", concurrency=4)
    order = [record.task.key[2:] for record in RunFolder(tmp_path / "run").records]
    assert order[-4:] == [("3", 0), ("3", 1), ("3", 2), ("3", 3)]


def test_no_more_requests_in_flight_than_asked_for(tmp_path: Path) -> None:
    engine = ScriptedEngine(answer, lambda request: 20)
    run_scripted(tmp_path / "run", EPISODES, engine, concurrency=5)
    assert engine.most_in_flight == 5


def test_two_runs_send_the_same_prompts(tmp_path: Path) -> None:
    prompts = []
    for name in ("one", "two"):
        engine = ScriptedEngine(answer)
        run_scripted(tmp_path / name, EPISODES, engine, mode="soeval")
        prompts.append({str(request.task.key): request.input for request in engine.requests})
    assert prompts[0] == prompts[1]
    assert final(tmp_path / "one") == final(tmp_path / "two")


def test_a_failed_request_stays_in_every_denominator_and_suspends_its_episode(tmp_path: Path) -> None:
    engine = flaky(EngineError("no answer after 5 tries", attempts=5), ("3", 1), ("7", 3))
    outcome = run_scripted(tmp_path / "run", EPISODES, engine, mode="soeval")
    summary = of_steps(outcome.summary())
    assert summary.metrics["exact match"].n == STEPS and not summary.complete
    assert (summary.verdicts.infrastructure_failure, summary.verdicts.not_run) == (2, 2)
    failed = [record for record in RunFolder(tmp_path / "run").records if not record.finished]
    assert {record.task.key[2:] for record in failed} == {("3", 1), ("7", 3)}
    assert failed[0].sample.error is not None and failed[0].sample.error.stage == "generate"


@pytest.mark.parametrize("mode", ["offline", "soeval", "sop"])
def test_resuming_after_failures_ends_like_a_clean_run(tmp_path: Path, mode: str) -> None:
    run_scripted(tmp_path / "clean", EPISODES, ScriptedEngine(answer), mode=mode)
    run_scripted(tmp_path / "run", EPISODES, flaky(EngineError("down"), ("3", 1), ("7", 3), ("5", 0)), mode=mode)
    engine = ScriptedEngine(answer)
    outcome = run_scripted(tmp_path / "run", EPISODES, engine, mode=mode, resume=True)
    assert final(tmp_path / "run") == final(tmp_path / "clean")
    assert outcome.summary().complete
    asked_again = Counter(str(request.task.key) for request in engine.requests)
    assert set(asked_again.values()) == {1} and len(asked_again) < STEPS
    assert evaluate_run(tmp_path / "run")["exact match"] == evaluate_run(tmp_path / "clean")["exact match"]


def test_memory_is_freed_and_histories_of_like_named_episodes_do_not_mix(tmp_path: Path) -> None:
    engine = ScriptedEngine(answer)
    run_scripted(tmp_path / "run", EPISODES, engine, mode="soeval", concurrency=64)
    for request in engine.requests:
        thoughts = [entry["thought"] for entry in past_of(request) if entry["origin"] == "model"]
        assert all(f"/{request.task.episode_id}#" in str(thought) for thought in thoughts)


def test_rescoring_equals_the_run_and_follows_the_protocol(tmp_path: Path) -> None:
    outcome = run_scripted(tmp_path / "run", EPISODES, ScriptedEngine(answer))
    stored = outcome.summary(intervals=True)
    store_summary(tmp_path / "run", stored)
    assert evaluate_run(tmp_path / "run").summary == stored
    assert read_json((tmp_path / "run" / METRICS).read_text())["summary"]["metrics"]["exact match"]["n"] == STEPS
    assert evaluate_run(tmp_path / "run", "ui-s1-sop").protocol == "ui-s1-sop"
    with pytest.raises(UsageError, match="did you mean 'guievalkit'"):
        evaluate_run(tmp_path / "run", "guieval-kit")


def refs(lengths: list[int]) -> list[EpisodeRef]:
    return [EpisodeRef(EpisodeKey("b", "", str(number)), length) for number, length in enumerate(lengths)]


def activate(ref: EpisodeRef) -> ActiveEpisode:
    return ActiveEpisode(ref, None, list(range(ref.length)))  # the scheduler never looks inside


SEEDS = st.integers(0, 2**32)


@dataclass
class Simulated:
    makespan: float
    order: list[tuple[str, int]]
    most_loaded: int


def simulate(
    lengths: list[int], latency: dict[tuple[str, int], float], slots: int, *, sequential: bool, window: int
) -> Simulated:
    """Play a schedule with given latencies on a clock of its own."""
    scheduler = Scheduler(refs(lengths), activate, sequential=sequential, window=window)
    running: list[tuple[float, int, ActiveEpisode]] = []
    order: list[tuple[str, int]] = []
    loaded: set[str] = set()
    now, serial, most = 0.0, 0, 0
    while True:
        while len(running) < slots and (taken := scheduler.take()) is not None:
            active, step = taken
            key = (active.ref.key.episode_id, step)
            order.append(key)
            loaded.add(key[0])
            most = max(most, len(loaded))
            serial += 1
            heapq.heappush(running, (now + latency[key], serial, active))
        if not running:
            break
        now, _, active = heapq.heappop(running)
        if scheduler.finished(active):
            loaded.discard(active.ref.key.episode_id)
    assert scheduler.exhausted
    return Simulated(now, order, most)


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=30), st.integers(1, 8), st.booleans(), st.integers(1, 40), st.integers()
)
def test_every_step_runs_once_and_in_order(lengths: list[int], slots: int, sequential: bool, window: int, seed: int) -> None:
    draw = random.Random(seed)
    latency = {(str(n), s): draw.random() for n, length in enumerate(lengths) for s in range(length)}
    result = simulate(lengths, latency, slots, sequential=sequential, window=window)
    assert sorted(result.order) == sorted(latency)
    for number in range(len(lengths)):
        steps = [step for episode, step in result.order if episode == str(number)]
        assert steps == sorted(steps)
    assert result.most_loaded <= window


def test_sequential_steps_of_one_episode_never_overlap() -> None:
    scheduler = Scheduler(refs([3]), activate, sequential=True, window=4)
    first = scheduler.take()
    assert first is not None and first[1] == 0
    assert scheduler.take() is None and not scheduler.exhausted
    scheduler.finished(first[0])
    second = scheduler.take()
    assert second is not None and second[1] == 1


def test_giving_up_an_episode_frees_it() -> None:
    scheduler = Scheduler(refs([5]), activate, sequential=True, window=1)
    taken = scheduler.take()
    assert taken is not None
    assert scheduler.finished(taken[0], go_on=False)
    assert scheduler.take() is None and scheduler.exhausted


def test_longest_first_is_near_the_bound() -> None:
    """200 episodes of 3 to 20 steps, 64 slots: within 5 % of the lower bound, where first come first served loses half."""
    draw = random.Random(7)
    lengths = [min(20, max(3, round(draw.lognormvariate(1.75, 0.48)))) for _ in range(200)]
    latency = {(str(n), s): draw.lognormvariate(-0.87, 0.6) for n, length in enumerate(lengths) for s in range(length)}
    chains = [sum(latency[str(n), s] for s in range(length)) for n, length in enumerate(lengths)]
    bound = max(sum(latency.values()) / 64, max(chains))
    result = simulate(lengths, latency, 64, sequential=True, window=256)
    assert result.makespan <= 1.05 * bound
    offline = simulate(lengths, latency, 64, sequential=False, window=256)
    assert offline.makespan <= sum(latency.values()) / 64 + max(latency.values())  # Graham's bound for any list schedule


TASK = make_episode("a", ACTIONS).steps[0].model_copy(update={"screenshot": "a.png"})


async def outcomes(root: Path, images: list[ImageRef]) -> list[object]:
    with ThreadPoolExecutor(2) as threads:
        loader = ImageLoader(root, threads, form="base64")
        loaded = [await asyncio.gather(loader.load(image), return_exceptions=True) for image in images]
    return [each if isinstance(each, ScreenshotError) else each.size for (each,) in loaded]  # type: ignore[union-attr]


@every_row("order", list(permutations(range(3))))
def test_a_record_with_a_wrong_size_fails_although_the_file_was_read_before(tmp_path: Path, order: tuple[int, ...]) -> None:
    Image.new("RGB", (30, 40)).save(tmp_path / "a.png")
    right = TASK.model_copy(update={"screenshot_size": (30, 40)})
    wrong = TASK.model_copy(update={"screenshot_size": (40, 30)})
    images = [ImageRef(right), ImageRef(right, (15, 20)), ImageRef(wrong)]
    seen = asyncio.run(outcomes(tmp_path, [images[number] for number in order]))
    results = dict(zip(order, seen, strict=True))
    assert (results[0], results[1]) == ((30, 40), (15, 20))
    assert isinstance(results[2], ScreenshotError) and "30x40" in str(results[2])


@every_row("kind", KINDS)
def test_what_is_sent_is_the_picture_at_every_size(tmp_path: Path, kind: Kind) -> None:
    """A model that gets a screen in its own size, and one that gets it smaller, must see the same colours and the same turn."""
    (tmp_path / "a.png").write_bytes(kind.data)
    height, width, _ = kind.pixels.shape
    task = TASK.model_copy(update={"screenshot_size": (width, height)})

    async def loaded() -> list[Screenshot]:
        with ThreadPoolExecutor(2) as threads:
            loader = ImageLoader(tmp_path, threads, form="base64")
            return [await loader.load(ImageRef(task, size)) for size in (None, (width, height), (20, 15))]

    for shown in asyncio.run(loaded()):
        expected = Image.fromarray(kind.pixels)
        if shown.size != expected.size:
            expected = expected.resize((20, 15), Image.Resampling.BICUBIC)
        assert picture(shown.data).tobytes() == expected.tobytes()
        assert shown.original == file_digest(kind.data)


SLOW = """
from pathlib import Path
from tests.scripted import ScriptedModel

class Slow(ScriptedModel):
    def respond(self, request):
        Path(__file__).with_name("busy").touch()
        Path(__file__).with_name("go").read_text()  # of a pipe: until somebody writes there
        return "no action"
"""


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_with_a_busy_agent(tmp_path: Path, times: int) -> None:
    adapter, run, go = tmp_path / "slow.py", tmp_path / "run", tmp_path / "go"
    adapter.write_text(SLOW)
    os.mkfifo(go)
    arguments = ["run", "--model", "slow", "--adapter", str(adapter), "--set", "engine=local", "--bench", "demo"]
    arguments += ["--data", str(tmp_path / "demo"), "--set", "bench_options.episodes=1", "--concurrency", "1"]
    words = [sys.executable, "-m", "guieval", *arguments, "--out", str(run)]
    with started(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        until((tmp_path / "busy").exists, "a question to the agent", running=process)
        process.send_signal(signal.SIGINT)
        lines: list[str] = []
        while not (lines and lines[-1].startswith("resume:")):
            lines.append(process.stdout.readline())
            assert lines[-1], "it ended before its report"
        if times == 1:
            assert process.poll() is None, "it waits for the agent"
            go.write_text("")
        else:  # more than once, since nothing shows when the program listens to the second one

            def ended() -> bool:
                process.send_signal(signal.SIGINT)
                return process.poll() is not None

            until(ended, "the end, without the agent", every=0.2)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and "Traceback" not in err and "Exception" not in err, err
    assert lines[-2] == "stopped:  offline: on request\n"
    assert read_json((run / METRICS).read_text())["state"] != "finished"
