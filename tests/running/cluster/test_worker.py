"""One worker, without Ray: it runs what it is given and nothing else, and what it records is the run's."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from guieval.journal import STEPS, Journal, RunFolder
from guieval.models.scored_response import failed_sample
from guieval.registry import load_benchmark
from guieval.running.cluster import Ended, Job, Merger, Reading, Worker, dealt_first
from guieval.running.cluster.merging import SHARDS, Shard, discard_shard
from guieval.running.resolve import resolve
from guieval.running.resume.identity import manifest_of
from guieval.running.runner.runner import Runner
from guieval.settings import RunConfig
from guieval.steps import StepRecord
from guieval.testing.mock_server import MockServer, MockSettings
from tests.outage import held, outage
from tests.running.cluster.conftest import MODEL, OPTIONS
from tests.running.records import final
from tests.scripted import opened_run
from tests.waiting import PATIENCE, until


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


def job_of(run: Runner, **changes: Any) -> Job:
    config = RunConfig(**{**run.run.config.flat(), **changes}).model_dump(mode="json")
    return Job(config, manifest_of(run.run), str(run.directory), os.getcwd(), "now")


@contextmanager
def working(worker: Worker, job: Job) -> Iterator[list[Ended]]:
    """The worker in a thread until the block ends: how its work ended, once it has."""
    ended: list[Ended] = []
    thread = threading.Thread(target=lambda: ended.append(worker.work(job, [], b"")))
    thread.start()
    yield ended
    thread.join(PATIENCE)


def wait_for_answers(worker: Worker, ended: list[Ended]) -> None:
    while not worker.read(0, 0.1).data:
        assert not ended


def wait_for_wants(worker: Worker, ended: list[Ended]) -> None:
    while not worker.read(0, 1.0).wants:
        assert not ended


def test_it_runs_what_is_dealt_and_what_it_claims(opened: Runner, worker: Worker) -> None:
    refs = dealt_first(opened.run.selection)
    worker.give([position for position in range(len(refs) // 2) if position % 3], number=0, last=False)
    assert not worker.read(0, 0.0).wants
    worker.give([position for position in range(len(refs) // 2, len(refs)) if position % 3], number=1, last=True)
    ended = worker.work(job_of(opened), [0, 3], b"")
    assert ended == Ended("done")
    reading = worker.read(0, 0.0)
    keys = {record.task.episode_key for record in RunFolder(opened.directory / SHARDS / "now-0000").records}
    assert reading.start == 0 and reading.data.count(b"\n") == sum(ref.length for ref in refs if ref.key in keys)
    assert keys == {ref.key for position, ref in enumerate(refs) if position % 3 or position in (0, 3)}
    end = worker.read(len(reading.data), 0.0)
    assert end.setup is not None and end.setup.model == opened.run.model.config.name
    assert dataclasses.replace(end, servers=(), setup=None) == Reading(len(reading.data), b"", False)
    (asked,) = end.servers
    assert (asked.answered, asked.in_flight) == (reading.data.count(b"\n"), 0)


def test_a_worker_that_cannot_write_into_the_run_directory_keeps_its_shard_elsewhere(opened: Runner, worker: Worker) -> None:
    (opened.directory / SHARDS).write_text("in the way")
    worker.give([], number=0, last=True)
    assert worker.work(job_of(opened), [0], b"") == Ended("done")
    assert worker.read(0, 0.0).data.count(b"\n") == dealt_first(opened.run.selection)[0].length


def added_by(
    worker: Worker, run: Runner, position: int, known: Sequence[StepRecord], *, alone: bool = False
) -> list[StepRecord]:
    """What the worker adds to these records of the episode in a position, and unless ``alone`` to those of all others."""
    refs = dealt_first(run.run.selection)
    with Journal(run.directory) as journal:
        for record in known:
            journal.append(record)
    with Journal(run.directory) as journal:
        merger, key = Merger(run.run, journal), refs[position].key
        assert merger.begun(key) and merger.known_lines(key).count(b"\n") == len(known)
        worker.give([] if alone else [place for place in range(len(refs)) if place != position], number=0, last=True)
        assert worker.work(job_of(run), [position], merger.known_lines(key)).how == "done"
        return merger.add(worker.read(0, 0.0).data, Shard())


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
    key = cut.episode_key
    known = [each for each in records if each.task.episode_key == key and each.task.step_index <= cut.step_index]
    (position,) = (place for place, ref in enumerate(dealt_first(run.run.selection)) if ref.key == key)
    asked = server.stats()["served"]
    added = added_by(worker, run, position, known)
    assert len(added) == len(records) - len(known)
    assert server.stats()["served"] - asked == len(added) or changes, "a thought is asked for, too"
    assert final(run.directory) == final(whole.directory)


@pytest.mark.parametrize("mode", ["offline", "soeval"])
def test_it_asks_only_the_missing_sample(opened: Runner, worker: Worker, server: MockServer, tmp_path: Path, mode: str) -> None:
    config = opened.run.config.having(mode=mode, samples=3)
    run, whole = (opened_run(config, tmp_path / name) for name in ("samples", "whole"))
    run.begin()
    whole.execute(resume=False)
    key = dealt_first(run.run.selection)[0].key
    (first,) = (each for each in RunFolder(whole.directory).records if each.task.key == (*key, 0))
    partial = first.model_copy(update={"samples": (first.samples[0], failed_sample("generate", "gone"), first.samples[2])})
    asked = server.stats()["served"]
    added = added_by(worker, run, 0, [partial], alone=True)
    assert server.stats()["served"] - asked == 3 * len(added) - 2 and added
    (step,) = (record for record in added if record.task.step_index == 0)
    assert step.finished and step.earlier == (0, 2)
    assert [step.samples[0], step.samples[2]] == [first.samples[0], first.samples[2]]


def test_it_stops_at_once_with_everything_in_its_shard(opened: Runner, worker: Worker, data: Path) -> None:
    with MockServer(MockSettings(model=MODEL, policy="centre", served_models=(MODEL,))) as server, held(server, after=4):
        worker.give(range(len(opened.run.selection.refs)), number=0, last=True)
        with working(worker, job_of(opened, base_urls=[server.base_url])) as ended:
            wait_for_answers(worker, ended)
            worker.stop()
    assert ended == [Ended("stopped")]
    shard = opened.directory / SHARDS / "now-0000"
    assert worker.read(0, 0.0).data == (shard / STEPS).read_bytes()
    worker.discard()
    assert not shard.parent.exists() and (opened.directory / STEPS).exists()


def test_it_finishes_what_is_in_flight_and_begins_no_more(opened: Runner, worker: Worker) -> None:
    with MockServer(MockSettings(model=MODEL, policy="centre", served_models=(MODEL,))) as server:
        worker.give([0, 1, 2], number=0, last=True)
        with working(worker, job_of(opened, base_urls=[server.base_url])) as ended, held(server, after=1):
            wait_for_answers(worker, ended)
            until(lambda: server.stats()["in_flight"], "a request in flight")
            in_flight = worker.finish() or 0
        stats = server.stats()
    reading = worker.read(0, 0.0)
    assert ended == [Ended("stopped")] and reading.in_flight == 0 < in_flight
    assert stats["gone"] == 0 and reading.data.count(b"\n") == stats["served"] == stats["requests"]


def test_a_worker_that_waits_for_episodes_need_not_wait_when_it_is_to_finish(opened: Runner, worker: Worker) -> None:
    with working(worker, job_of(opened)) as ended:
        wait_for_wants(worker, ended)
        worker.finish()
    assert ended and not worker.read(0, 0.0).data


def test_a_worker_that_asked_nothing_yet_stops_when_it_is_to_finish(opened: Runner, worker: Worker, server: MockServer) -> None:
    asked = server.stats()["requests"]
    assert worker.finish() is None
    assert worker.work(job_of(opened), [0], b"") == Ended("stopped")
    assert server.stats()["requests"] == asked


@pytest.mark.parametrize("moment", ["resolve", "begin", "execute"])
def test_a_worker_that_is_stopped_before_its_first_record_leaves_no_shard(
    opened: Runner, worker: Worker, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Also where its machine is slower than the driver's patience, which removes the shards without a record and goes on."""
    begin, execute = Runner.begin, Runner.execute

    def slow_resolve(*given: Any) -> Any:
        worker.stop()
        discard_shard(opened.directory / SHARDS / "now-0000")
        return resolve(*given)

    def late_begin(runner: Runner) -> None:  # the driver removes what is there of the shard, and the rest is made after
        discard_shard(runner.directory)
        begin(runner)
        worker._stopped_turn = 1  # `stop` itself waits for this method

    def late_execute(runner: Runner, *, resume: bool) -> Any:
        worker.stop()
        return execute(runner, resume=resume)

    if moment == "resolve":
        monkeypatch.setattr("guieval.running.cluster.worker.resolve", slow_resolve)
    else:
        monkeypatch.setattr(Runner, moment, late_begin if moment == "begin" else late_execute)
    for _ in range(2):  # nothing is written where it was stopped before it began either
        assert worker.work(job_of(opened), [0], b"") == Ended("stopped")
    assert not (opened.directory / SHARDS).exists()


def test_stop_waits_until_a_shard_is_there_or_will_not(opened: Runner, worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the driver removes the shards while a slow disk is still writing the manifest of one."""
    begin = Runner.begin
    stopping = threading.Thread(target=worker.stop)

    def slow_begin(runner: Runner) -> None:
        stopping.start()
        stopping.join(0.1)  # only time shows that it does not return
        assert stopping.is_alive()
        begin(runner)

    monkeypatch.setattr(Runner, "begin", slow_begin)
    ended = worker.work(job_of(opened), [0], b"")
    stopping.join(PATIENCE)
    assert ended == Ended("stopped") and not stopping.is_alive()
    discard_shard(opened.directory / SHARDS / "now-0000")
    assert not (opened.directory / SHARDS).exists()


def test_a_machine_with_other_data_cannot_take_part(opened: Runner, worker: Worker, tmp_path: Path) -> None:
    other = {**OPTIONS, "seed": 6}
    ended = worker.work(job_of(opened, bench_options=other), [0], b"")
    assert ended.how == "failed" and "bench_options.seed" in ended.why


def test_an_engine_that_cannot_answer_is_one_sentence(opened: Runner, worker: Worker) -> None:
    ended = worker.work(job_of(opened, base_urls=["http://127.0.0.1:9/v1"], max_attempts=1), [0], b"")
    assert ended.how == "failed" and "127.0.0.1:9" in ended.why and "--resume" not in ended.why


def test_an_endpoint_that_is_gone_is_given_up(opened: Runner, worker: Worker) -> None:
    failing = MockSettings(model=MODEL, policy="centre", error_rate=1.0, served_models=(MODEL,))
    with MockServer(failing) as server:
        job = job_of(opened, base_urls=[server.base_url], max_attempts=1, mode="offline")
        job = dataclasses.replace(job, manifest={**job.manifest, "config": job.config})
        ended = worker.work(job, range(len(opened.run.selection.refs)), b"")
    assert ended.how == "gave-up" and "status 500" in ended.why


def test_it_waits_for_a_server_that_is_away_and_reports_it(opened: Runner, worker: Worker, data: Path) -> None:
    def make(port: int) -> MockServer:
        settings = MockSettings(model=MODEL, policy="centre", latency=0.02, served_models=(MODEL,), port=port)
        return MockServer(settings, benchmark=load_benchmark("demo", data, **OPTIONS))

    waits: set[str | None] = set()
    over, reported = threading.Event(), threading.Event()

    def read() -> None:
        while not over.wait(0.02):
            waits.add(worker.read(0, 0.0).wait)
            if any(waits):
                reported.set()

    with outage(make, after=10, back=reported) as url:
        reader = threading.Thread(target=read)
        reader.start()
        worker.give(range(1, 4), number=0, last=True)
        ended = worker.work(job_of(opened, base_urls=[url], max_attempts=1), [0], b"")
        over.set()
        reader.join()
    assert ended == Ended("done")
    assert any(message is not None and message.startswith(f"waiting for {url} for ") for message in waits)
    assert all(record.finished for record in RunFolder(opened.directory / SHARDS / "now-0000").records)


def test_it_waits_for_more_and_ends_after_the_last(opened: Runner, worker: Worker) -> None:
    with working(worker, job_of(opened)) as ended:
        for number, position in enumerate((5, 6)):  # at first, and when it has taken what it was given
            wait_for_wants(worker, ended)
            worker.give([position], number=number, last=False)
        assert not ended
        worker.give([], number=2, last=True)
    assert ended == [Ended("done")]
    lengths = [ref.length for ref in dealt_first(opened.run.selection)[5:7]]
    assert worker.read(0, 0.0).data.count(b"\n") == sum(lengths)


def test_deliveries_that_overtake_each_other_wait_for_those_before(opened: Runner, worker: Worker) -> None:
    """Ray runs calls of one actor in several threads: the last gift may come first, or after the turn it was of."""
    lengths = [ref.length for ref in dealt_first(opened.run.selection)]
    worker.give([8, 9], number=2, last=True)
    worker.give([6, 7], number=1, last=False)
    worker.give([4, 5], number=0, last=False)
    assert worker.work(job_of(opened), [], b"") == Ended("done")
    assert worker.read(0, 0.0).data.count(b"\n") == sum(lengths[4:10])
    worker.give([0, 1], number=3, last=False)  # too late: of a turn that is over
    worker.give([3], number=0, last=True, turn=2)
    assert worker.work(job_of(opened), [], b"", turn=2) == Ended("done")
    assert worker.read(0, 0.0, turn=2).data.count(b"\n") == sum(lengths[3:10])


def test_a_reader_of_the_next_run_is_not_given_the_shard_of_the_one_before(opened: Runner, worker: Worker) -> None:
    worker.give([5], number=0, last=True)
    worker.work(job_of(opened), [], b"")
    assert worker.read(0, 0.0).data and not worker.read(0, 0.0, turn=2).data
    job = dataclasses.replace(job_of(opened), session="later")
    worker.give([], number=0, last=True, turn=2)
    assert worker.work(job, [], b"", turn=2) == Ended("done")
    assert not worker.read(0, 0.0, turn=2).data
