"""The real program on a local Ray cluster of three nodes: as on one machine, also if a worker, node or driver is killed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from guieval.engines.vllm.kept_servers import process_start
from guieval.journal import LOCK, MANIFEST, METRICS, STEPS, RunFolder
from guieval.journal.directory import SHARDS
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark
from tests.cluster.conftest import MODEL, OPTIONS
from tests.programs import guard, started
from tests.running.records import figures, final
from tests.waiting import PATIENCE, until

MODES = ("offline", "soeval", "sop")
PROGRAM = f"""
from guieval.cli import main
from guieval.cluster import driver

driver.STOP_SECONDS = {PATIENCE}  # a busy worker is not to be taken for one that does not stop
main()
"""
ENVIRONMENT = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
QUICK_TO_NOTICE = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": int(1000 * PATIENCE),  # a busy node is slow; one whose process is gone refuses at once
    "health_check_failure_threshold": 3,
}


@pytest.fixture(scope="module")
def nodes() -> Iterator[Any]:
    """Three nodes of one processor each; the first is the head, from which runs are started."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    guard()  # of the cluster's processes
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False, "_system_config": QUICK_TO_NOTICE}
    )
    for _ in range(2):
        cluster.add_node(num_cpus=1)
    yield cluster
    cluster.shutdown()  # type: ignore[no-untyped-call]


@pytest.fixture(scope="module")
def server(data: Path) -> Iterator[MockServer]:
    settings = MockSettings(
        model=MODEL, policy="reference", accuracy=0.7, latency=0.1, concurrency=16, seed=3, served_models=(MODEL,)
    )
    with MockServer(settings, benchmark=load_benchmark("demo", data, **OPTIONS)) as server:
        yield server


@pytest.fixture(scope="module")
def alone(data: Path, server: MockServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same runs on one machine."""
    directory = tmp_path_factory.mktemp("alone") / "runs"
    words = command(data, server, directory, *modes(*MODES))
    words[words.index("--concurrency") + 1] = "16"
    ended(words)
    return directory


def modes(*names: str) -> list[str]:
    return [word for name in names for word in ("--mode", name)]


def command(data: Path, server: MockServer, directory: Path, *more: str) -> list[str]:
    start = [sys.executable, "-c", PROGRAM, "run"]
    if "--resume" in more:
        return [*start, *more]
    options = [item for name, value in OPTIONS.items() for item in ("--set", f"bench_options.{name}={value}")]
    fixed = ["--model", MODEL, "--bench", "demo", "--data", str(data), "--base-url", server.base_url]
    fixed += [] if "--concurrency" in more else ["--concurrency", "2"]
    return [*start, *fixed, "--out", str(directory), *options, *more]


def on(nodes: Any) -> list[str]:
    return ["--cluster", "ray", "--cluster-address", nodes.address]


def start(words: list[str], errors: Any = subprocess.PIPE) -> AbstractContextManager[subprocess.Popen[str]]:
    return started(words, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=errors)


def ended(words: list[str], code: int = 0) -> subprocess.CompletedProcess[str]:
    """A command that ended, with this exit code and without a traceback."""
    done = subprocess.run(words, capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == code and "Traceback" not in done.stderr, done.stdout + done.stderr
    return done


def recorded(directory: Path) -> int:
    return (directory / STEPS).read_bytes().count(b"\n") if (directory / STEPS).exists() else 0


@contextmanager
def held(server: MockServer, step: int = 1) -> Iterator[None]:
    """In this block no step from that one on is answered, so no run can come to its end, and every worker gets some steps."""
    server.app.held = lambda tag: tag.key is not None and tag.key.step_index >= step
    try:
        yield
    finally:
        server.app.held = lambda tag: False


def all_work(directory: Path) -> bool:
    """Whether each of three workers has answered steps, some of which the driver has merged."""
    return recorded(directory) > 0 and shards_with_records(directory) == 3


def shards_with_records(directory: Path) -> int:
    return sum(path.stat().st_size > 0 for path in (directory / SHARDS).glob("*/" + STEPS))


def assert_same_run(directory: Path, alone: Path) -> None:
    """Complete, nothing doubled, and in everything but times as the run of one machine."""
    assert set(Counter(record.task.key for record in RunFolder(directory).records).values()) == {1}
    assert final(directory) == final(alone)
    assert figures(directory) == figures(alone)
    ours, theirs = (json.loads((each / MANIFEST).read_text()) for each in (directory, alone))
    for setup in (*ours["setups"], *theirs["setups"]):
        assert setup.pop("request")  # of the step that was asked first, which differs
    for name in theirs.keys() - {"created", "config"}:
        assert ours[name] == theirs[name], name
    assert not list((directory / SHARDS).rglob("*"))


def test_three_modes_are_as_on_one_machine(nodes: Any, data: Path, server: MockServer, alone: Path, tmp_path: Path) -> None:
    directory = tmp_path / "runs"
    ended(command(data, server, directory, *modes(*MODES), *on(nodes)))
    for mode in MODES:
        assert_same_run(directory / mode, alone / mode)
        (result,) = json.loads((directory / mode / METRICS).read_text())["servers"]
        assert result["name"].startswith(f"{server.base_url} on ") and result["in_flight"] == result["failed"] == 0
        assert result["answered"] == recorded(directory / mode), "the workers' figures, added up"


def test_sigterm_outside_any_run_is_as_ctrl_c(nodes: Any, data: Path, server: MockServer, tmp_path: Path) -> None:
    """Ray sets a handler of its own, which would end the process without a word on how to go on."""
    script = f"""
import signal
from pathlib import Path
from guieval.cli.running.perform import perform
from guieval.settings import RunConfig
config = RunConfig(
    model={MODEL!r}, bench="demo", data={str(data)!r}, base_urls=({server.base_url!r},), bench_options={OPTIONS!r},
    cluster="ray", cluster_address={nodes.address!r},
)
try:
    jobs = [(config, Path({str(tmp_path / "run")!r}))]
    perform(jobs, fresh=True, quiet=True, first=lambda: signal.raise_signal(15), show=print)
except KeyboardInterrupt:
    print("interrupted")
"""
    assert ended([sys.executable, "-c", script]).stdout == "interrupted\n"


def test_a_run_whose_driver_was_killed_goes_on(nodes: Any, data: Path, server: MockServer, alone: Path, tmp_path: Path) -> None:
    """On the cluster, or on one machine."""
    directory = tmp_path / "run"
    with held(server), start(command(data, server, directory, "--mode", "soeval", *on(nodes))) as process:
        until(lambda: all_work(directory), "records of all", running=process)
        workers = [writer(shard) for shard in (directory / SHARDS).iterdir()]
        process.kill()
        until(lambda: not any(map(process_start, workers)), "the end of the workers")
    copy = shutil.copytree(directory, tmp_path / "copy")
    for each, cluster in ((directory, "ray"), (copy, "none")):
        ended(command(data, server, each, "--resume", str(each), "--cluster", cluster, "--concurrency", "8"))
        assert_same_run(each, alone / "soeval")


def test_ctrl_c_stops_every_worker_in_order(nodes: Any, data: Path, server: MockServer, tmp_path: Path) -> None:
    directory = tmp_path / "run"
    with held(server), start(command(data, server, directory, "--mode", "offline", *on(nodes))) as process:
        until(lambda: all_work(directory), "records of all", running=process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, err
    assert f"guieval run --resume {directory}" in out and "Traceback" not in err
    assert not list((directory / SHARDS).rglob("*")) and figures(directory)["complete"] is False


def test_workers_that_cannot_be_of_use_are_reported_in_a_sentence_each(
    nodes: Any, data: Path, server: MockServer, alone: Path, tmp_path: Path
) -> None:
    """Two workers, two base URLs: the second worker's is dead, and then both."""
    busy = ["--concurrency", "8"]
    dead = ["--base-url", "http://127.0.0.1:9/v1", "--max-attempts", "1", "--workers", "2"]
    directory = tmp_path / "some"
    said = tmp_path / "said"
    words = command(data, server, directory, *dead, *busy, "--mode", "soeval", *on(nodes))
    with said.open("w") as errors, start(words, errors) as process:
        with held(server):  # or the first worker could have done everything before the second one has tried
            until(lambda: "worker 1 on " in said.read_text(), "the warning", running=process)
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and "worker 1 on " in out and "127.0.0.1:9" in out, out + said.read_text()
    assert_same_run(directory, alone / "soeval")

    words = command(data, server, tmp_path / "none", *dead, "--mode", "sop", *on(nodes))
    words.remove("--base-url")
    words.remove(server.base_url)
    done = ended(words, 1)
    assert f"guieval run --resume {tmp_path / 'none'}" in done.stderr and "127.0.0.1:9" in done.stderr
    assert not (tmp_path / "none" / SHARDS).exists()


def test_a_budget_ends_every_worker(nodes: Any, data: Path, server: MockServer, alone: Path, tmp_path: Path) -> None:
    """An answer of the mock server is 3,000 tokens in and 60 out, here 0.001 in and 0.0001 out each: 3.006 in all."""
    prices = tmp_path / "prices.yaml"
    prices.write_text(
        f"- {{models: ['{MODEL}'], currency: EUR, input: 1000, output: 100, source: here, as_of: 2025-01-01}}\n", "utf-8"
    )
    directory = tmp_path / "run"
    before = server.stats()
    budget = ["--prices", str(prices), "--budget", "90"]
    words = command(data, server, directory, "--mode", "offline", *budget, *on(nodes))
    settings = server.app.settings
    server.app.settings = settings.model_copy(update={"latency": 1.5})  # so slow that all steps take longer than to stop
    done = ended(words, 1)
    server.app.settings = settings
    assert "the budget of 90" in done.stdout and f"guieval run --resume {directory}" in done.stdout
    after = server.stats()
    served = after["served"] - before["served"]
    # 29 answers cost 87, and one more what is left; three workers with two requests each begin more before they are stopped
    assert 25 <= served < recorded(alone / "offline") and recorded(directory) == served, "what was asked for is kept"
    assert after["gone"] == before["gone"]
    assert not list((directory / SHARDS).rglob("*"))

    again = ended(command(data, server, directory, "--resume", str(directory), *budget, *on(nodes)), 1)
    assert "the budget of 90" in again.stdout
    assert server.stats()["served"] - before["served"] == served, "what is used up is used up in the next session too"


@pytest.mark.parametrize(
    ("address", "message"), [("127.0.0.1:9", "no server answers at 127.0.0.1:9"), ("here", "expected auto, local or HOST:PORT")]
)
def test_a_missing_cluster_is_reported(data: Path, server: MockServer, tmp_path: Path, address: str, message: str) -> None:
    words = command(data, server, tmp_path / "run", "--cluster", "ray", "--cluster-address", address)
    done = ended(words, 2)
    assert message in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists(), "nothing was begun"


def test_a_cluster_of_this_machine_alone_listens_on_loopback_only(data: Path, server: MockServer, tmp_path: Path) -> None:
    words = command(data, server, tmp_path / "run", "--cluster", "ray", "--cluster-address", "local")
    with held(server), start(words) as process:
        until(lambda: recorded(tmp_path / "run") > 0, "records", running=process)
        open_to = listening(process.pid)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)
    assert len(open_to) >= 4, "Ray's own servers were looked at"
    assert all(each.removeprefix("::ffff:").startswith("127.") or each == "::1" for each in open_to), open_to


def listening(process: int) -> list[str]:
    """The addresses on which a process and everything it has started listen for TCP connections."""
    import psutil

    family = [psutil.Process(process)]
    family += family[0].children(recursive=True)
    found = []
    for each in family:
        with contextlib.suppress(psutil.Error):  # it may end meanwhile
            found += [item.laddr.ip for item in each.net_connections("tcp") if item.status == psutil.CONN_LISTEN]
    return found


def test_more_workers_than_fit_are_refused(nodes: Any, data: Path, server: MockServer, tmp_path: Path) -> None:
    words = command(data, server, tmp_path / "run", *on(nodes), "--workers", "4")
    done = ended(words, 2)
    assert not (tmp_path / "run").exists()
    assert "4 workers do not fit" in done.stderr and "suffice for 3" in done.stderr


@contextmanager
def loses_a_worker(words: list[str], server: MockServer, directory: Path) -> Iterator[None]:
    """A run in which all workers are at work; the block kills one, and the others do what that had not finished."""
    with start(words) as process:
        with held(server):
            until(lambda: all_work(directory), "records of all", running=process)
            yield
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, out + err
    assert out.count(" is lost") == 1, out


def test_a_killed_worker_loses_and_doubles_nothing(
    nodes: Any, data: Path, server: MockServer, alone: Path, tmp_path: Path
) -> None:
    """One worker's process alone: its answers count once."""
    directory = tmp_path / "run"
    with loses_a_worker(command(data, server, directory, "--mode", "soeval", *on(nodes)), server, directory):
        writers = [writer(shard) for shard in (directory / SHARDS).iterdir()]
        os.kill(writers[0], signal.SIGKILL)
    assert len({*writers}) == 3
    assert_same_run(directory, alone / "soeval")


def writer(shard: Path) -> int:
    """The process that holds the lock of a shard; it has written its number there."""
    return int((shard / LOCK).read_text().split()[1])


def test_a_killed_node_loses_and_doubles_nothing(
    nodes: Any, data: Path, server: MockServer, alone: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "run"
    with loses_a_worker(command(data, server, directory, "--mode", "soeval", *on(nodes)), server, directory):
        for each in nodes.list_all_nodes()[-1].all_processes["raylet"]:
            os.kill(each.process.pid, signal.SIGKILL)
    assert_same_run(directory, alone / "soeval")
