"""One worker, without Ray: a shard is an ordinary run folder of what it was given and nothing else, reported on as it grows."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from guieval.cluster.merging import Merger
from guieval.cluster.worker import Ended, News, Worker
from guieval.data.shipped import __version__
from guieval.errors import DataError
from guieval.journal import STEPS, Journal, RunFolder
from guieval.journal.directory import SHARDS
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark
from guieval.running.resume.identity import manifest_of
from guieval.running.runner.runner import Runner
from guieval.settings import RunConfig
from guieval.steps import EpisodeKey, StepRecord
from tests.cluster.conftest import MODEL, OPTIONS
from tests.outage import held, outage
from tests.running.records import final
from tests.scripted import opened_run
from tests.waiting import until

SHARD = Path(SHARDS) / "part"


@pytest.fixture(scope="module")
def server(data: Path) -> Iterator[MockServer]:
    settings = MockSettings(model=MODEL, policy="reference", accuracy=0.7, seed=3, served_models=(MODEL,))
    with MockServer(settings, benchmark=load_benchmark("demo", data, **OPTIONS)) as server:
        yield server


@pytest.fixture
def opened(tmp_path: Path, data: Path, server: MockServer) -> Runner:
    demo: dict[str, Any] = {"bench": "demo", "data": str(data), "bench_options": OPTIONS}
    config = RunConfig(model=MODEL, mode="soeval", base_urls=(server.base_url,), **demo)
    run = opened_run(config, tmp_path / "run")
    run.begin()
    return run


def begun(worker: Worker, run: Runner, version: str = __version__, **changes: Any) -> Ended | None:
    config = RunConfig(**{**run.run.config.flat(), **changes}).model_dump(mode="json")
    return worker.begin(version, config, manifest_of(run.run), str(run.directory), os.getcwd())[1]


def keys_of(run: Runner, count: int | None = None) -> list[EpisodeKey]:
    return [ref.key for ref in run.run.selection.refs[:count]]


def works(
    worker: Worker, keys: Sequence[EpisodeKey], known: Sequence[StepRecord] = (), name: str = "part", turn: int = 1
) -> list[News]:
    return list(worker.work(turn, name, keys, known, 0.02))


def lines_in(news: Sequence[News]) -> bytes:
    return b"".join(each.data for each in news)


def test_a_shard_is_a_run_over_its_episodes(opened: Runner, worker: Worker, server: MockServer) -> None:
    """One after the other; also if it cannot be written into the run directory; all of them are discarded."""
    (opened.directory / SHARDS).mkdir()
    (opened.directory / SHARD.with_name("other")).write_text("in the way")
    assert begun(worker, opened) is None
    for turn, (name, count) in enumerate((("part", 9), ("other", 5)), 1):
        keys = keys_of(opened, count)
        news = works(worker, keys, name=name, turn=turn)
        assert [each.ended for each in news if each.ended] == [Ended("done")] == [news[-1].ended]
        steps = sum(len(opened.run.plan[key]) for key in keys)
        assert lines_in(news).count(b"\n") == news[-1].servers[0].answered == steps
        assert news[-1].setup is not None and news[-1].setup.model == MODEL and not news[-1].in_flight
    shard = RunFolder(opened.directory / SHARD).check()
    assert [*shard.plan] == keys_of(opened, 9) and {record.task.episode_key for record in shard.records} == {*shard.plan}
    (opened.directory / SHARD.with_name("other")).unlink()
    elsewhere = worker._shards[-1]
    worker.discard()
    assert not elsewhere.exists() and not (opened.directory / SHARDS).exists() and (opened.directory / STEPS).exists()


PATCHED = {"mode": "sop", "patch_budget": "unlimited"}


@pytest.mark.parametrize("changes", [{}, {**PATCHED, "patch": "thought-free"}, {**PATCHED, "patch": "on-policy"}])
def test_it_goes_on(opened: Runner, worker: Worker, server: MockServer, tmp_path: Path, changes: dict[str, Any]) -> None:
    """The known answers are in its shard, with the patches and their thoughts, and were not asked again; the figures are those
    of one who did it all."""
    config = opened.run.config.having(**changes)
    whole, run = (opened_run(config, tmp_path / name) for name in ("whole", "other"))
    whole.execute(resume=False)
    run.begin()
    records = list(RunFolder(whole.directory).records)
    tasks = [each.task for each in records if each.patch or not changes]
    cut = max((each for each in tasks if each.step_index + 1 < each.episode_length), key=lambda task: task.step_index)
    known = [each for each in records if each.task.episode_key == cut.episode_key and each.task.step_index <= cut.step_index]
    with Journal(run.directory) as journal:
        for record in known:
            journal.append(record)
    asked = server.stats()["served"]
    with Journal(run.directory) as journal:
        merger = Merger(run.run, journal)
        assert merger.begin(run.run.selection.refs) == known and begun(worker, run) is None
        assert works(worker, keys_of(run), known)[-1].ended == Ended("done")
        added = [*RunFolder(run.directory / SHARD).records][len(known) :]
        for record in added:
            merger.add(record)
    assert len(added) == len(records) - len(known)
    assert server.stats()["served"] - asked == len(added) or changes, "a thought is asked for, too"
    assert final(run.directory) == final(whole.directory)


@pytest.mark.parametrize("at_once", [True, False])
def test_it_stops_with_every_answer_in_its_shard(opened: Runner, worker: Worker, at_once: bool) -> None:
    """At once, or when the steps in flight are answered; no request follows."""
    with MockServer(MockSettings(model=MODEL, policy="centre", served_models=(MODEL,))) as server:
        assert begun(worker, opened, base_urls=[server.base_url]) is None
        news = []
        with held(server, after=4):
            for each in (reports := worker.work(1, "part", keys_of(opened), [], 0.02)):
                news.append(each)
                if lines_in(news) and each.in_flight:
                    break
            until(lambda: server.stats()["in_flight"], "requests in flight")
            worker.stop(1, at_once=at_once)
        news += reports
        stats = server.stats()
    assert news[-1].ended == Ended("stopped") and lines_in(news) == (opened.directory / SHARD / STEPS).read_bytes()
    assert at_once or (stats["gone"] == 0 and lines_in(news).count(b"\n") == stats["served"] == stats["requests"])


def test_a_stop_before_the_first_request_ends_that_turn_alone(opened: Runner, worker: Worker, server: MockServer) -> None:
    """Ray may let a stop overtake the shard that it is for, and an engine that is waited for may take minutes."""
    assert begun(worker, opened) is None
    asked = server.stats()["requests"]
    worker.stop(1, at_once=False)
    assert [each.ended for each in works(worker, keys_of(opened))][-1] == Ended("stopped")
    assert server.stats()["requests"] == asked
    assert works(worker, keys_of(opened, 1), name="next", turn=2)[-1].ended == Ended("done")


def test_a_machine_with_another_version_or_other_data_cannot_take_part(opened: Runner, worker: Worker) -> None:
    other = begun(worker, opened, bench_options={**OPTIONS, "seed": 6})
    assert other is not None and other.how == "failed" and "bench_options.seed" in other.why
    older = begun(worker, opened, version="0.1")
    assert older == Ended("failed", f"it has guieval {__version__}, but 0.1 is required")


def test_an_episode_that_cannot_be_loaded_ends_the_run(opened: Runner, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, (key, *others) = type(opened.run.benchmark), keys_of(opened, 3)
    load = kind.load

    def damaged(self: Any, ref: Any) -> Any:
        if ref.key == key:
            raise DataError("line 3 is damaged")
        return load(self, ref)

    assert begun(worker, opened) is None
    monkeypatch.setattr(kind, "load", damaged)
    news = works(worker, [*others, key])
    assert news[-1].ended is not None and news[-1].ended.how == "bad-data" and "line 3 is damaged" in news[-1].ended.why
    assert "--resume" not in news[-1].ended.why


def test_servers_that_do_not_answer_end_a_worker_with_one_sentence(opened: Runner, worker: Worker, tmp_path: Path) -> None:
    run = opened_run(opened.run.config.having(mode="offline"), tmp_path / "offline")
    failing = MockSettings(model=MODEL, policy="centre", error_rate=1.0, served_models=(MODEL,))
    with MockServer(failing) as server:
        ends = []
        for turn, url in enumerate(("http://127.0.0.1:9/v1", server.base_url), 1):
            assert begun(worker, run, base_urls=[url], max_attempts=1) is None
            ends.append(works(worker, keys_of(run), name=f"part{turn}", turn=turn)[-1].ended or Ended("done"))
    assert [end.how for end in ends] == ["failed", "gave-up"]
    assert "127.0.0.1:9" in ends[0].why and "status 500" in ends[1].why and not any("--resume" in end.why for end in ends)


def test_it_waits_for_a_server_that_is_away_and_reports_it(opened: Runner, worker: Worker, data: Path) -> None:
    def make(port: int) -> MockServer:
        settings = MockSettings(model=MODEL, policy="centre", latency=0.02, served_models=(MODEL,), port=port)
        return MockServer(settings, benchmark=load_benchmark("demo", data, **OPTIONS))

    reported = threading.Event()
    waits = set()
    with outage(make, after=10, back=reported) as url:
        assert begun(worker, opened, base_urls=[url], max_attempts=1) is None
        for news in worker.work(1, "part", keys_of(opened, 6), [], 0.02):
            waits.add(news.wait)
            if any(waits):
                reported.set()
    assert news.ended == Ended("done")
    assert any(message is not None and message.startswith(f"waiting for {url} for ") for message in waits)
    assert all(record.finished for record in RunFolder(opened.directory / SHARD).records)
