"""Servers that go away."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path

from guieval.journal import Records, is_run
from guieval.testing.mock_server import MockServer
from tests.faults.program import MODEL, OPTIONS, PATIENCE, Program, guieval, tries_again, wait_for_lines
from tests.faults.rows import Row, rows
from tests.outage import outage

WAITS = (
    "holds all requests, probes the server at least every two seconds, waits up to `--patience` seconds (300), and continues "
    "at once when it is back; attempts that reached no server do not count"
)
TELLS = "`waiting for http://127.0.0.1:`, in the progress line also since when, then `is back after`"


def port_of(server: MockServer) -> int:
    return int(server.base_url.rsplit(":", 1)[1].split("/")[0])


def failed(directory: Path) -> int:
    return sum(not record.finished for record in Records(directory))


def started(program: Program, tmp_path: Path, *options: str, lines: int = 10) -> tuple[subprocess.Popen[str], int]:
    """A run whose server was stopped with requests in flight; the run, and the port that the server had."""
    with program.server(latency=0.1) as server:
        port = port_of(server)
        process = program.start(server.base_url, tmp_path / "run", *options)
        wait_for_lines(process, tmp_path / "run", lines)
    return process, port


@rows(
    Row("a server that restarts in the middle of a run", WAITS, TELLS),
    Row("a server that is away for 10 s, with `--max-attempts 1`", WAITS, TELLS, options=("--max-attempts", "1")),
)
def test_an_outage_costs_no_step(program: Program, tmp_path: Path, row: Row) -> None:
    """The server is stopped with requests in flight and comes back empty on the same port; no step fails, no attempt counts,
    and the run ends by itself with the answers and figures of a clean run."""
    process, port = started(program, tmp_path, *row.options)
    time.sleep(10 if "10 s" in row.fault else 1)
    with program.server(port=port):
        row.check_seen(program.end(process))
    assert failed(tmp_path / "run") == tries_again(tmp_path / "run") == 0
    program.check_whole(tmp_path / "run")


class Gateway(ThreadingHTTPServer):
    """Answers every request with the same status, as a gateway does whose server is away; ``asked`` are the paths."""

    daemon_threads = True
    request_queue_size = 100

    def __init__(self, port: int, status: int, headers: dict[str, str]) -> None:
        gateway = self
        self.asked: list[tuple[float, str]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                gateway.asked.append((time.monotonic(), self.path))
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(status)
                for name, value in {**headers, "Content-Length": "0", "Connection": "close"}.items():
                    self.send_header(name, value)
                self.end_headers()

            do_POST = do_GET

            def log_message(self, *arguments: object) -> None:
                pass

        super().__init__(("127.0.0.1", port), Handler)

    @contextmanager
    def serving(self) -> Iterator[None]:
        thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.shutdown()
            self.server_close()
            thread.join()


@rows(
    Row("a gateway that answers HTTP 502 because the server is away", WAITS, TELLS, server={"status": 502}),
    Row("a gateway that answers HTTP 504 to everything", WAITS, TELLS, server={"status": 504}),
    Row(
        "a gateway that answers HTTP 503 with Retry-After because the server is away",
        "the same, with no probe sooner than the header allows",
        TELLS,
        server={"status": 503, "Retry-After": "1"},
    ),
)
def test_a_gateway_without_its_server_is_waited_for(program: Program, tmp_path: Path, row: Row) -> None:
    """The gateway gets the few requests that were on their way, and then a handful of probes; no step fails, no attempt
    counts, and the run ends with the answers and figures of a clean run."""
    headers = {name: value for name, value in row.server.items() if name != "status"}
    process, port = started(program, tmp_path, "--max-attempts", "1")
    gateway = Gateway(port, row.server["status"], headers)
    with gateway.serving():
        until = time.monotonic() + PATIENCE
        while not any(path == "/health" for _, path in gateway.asked):
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.01)
        time.sleep(1.5)
    with program.server(port=port):
        row.check_seen(program.end(process))
    requests = [when for when, path in gateway.asked if path.endswith("completions")]
    probes = [when for when, path in gateway.asked if not path.endswith("completions")]
    assert len(requests) <= 8 and 1 <= len(probes) <= 6
    if headers:
        assert all(after - before > 0.95 for before, after in pairwise(probes))
    assert failed(tmp_path / "run") == tries_again(tmp_path / "run") == 0
    program.check_whole(tmp_path / "run")


@rows(
    Row(
        "a server that goes away for good",
        "waits for `--patience` seconds, then stops in order; the steps in flight count as not run, and a resume runs them",
        "the table so far, and `no answer from http://127.0.0.1:`, `the run waits for 1 s at most (--patience)`, `every answer "
        "before is kept`, `guieval run --resume`",
        1,
        options=("--patience", "1", "--max-attempts", "1"),
    ),
    Row(
        "a server that goes away, with `--patience 0`",
        "stops in order at once",
        "the table so far, and `the run waits for 0 s at most (--patience)`, `guieval run --resume`",
        1,
        options=("--patience", "0", "--max-attempts", "1"),
    ),
)
def test_patience_ends(program: Program, tmp_path: Path, row: Row) -> None:
    """No step is recorded as failed; a resume against a healthy server runs no answered step again and ends with the answers
    and figures of a clean run."""
    process, _ = started(program, tmp_path, *row.options)
    row.check_seen(program.end(process, row.code))
    assert failed(tmp_path / "run") == program.check_honest(tmp_path / "run") == 0
    with program.server() as healthy:
        program.run(healthy.base_url, tmp_path / "run", resume=True)
    program.check_whole(tmp_path / "run")


@rows(
    Row(
        "Ctrl-C while a server is waited for",
        "stops the wait and the run in order",
        "the result so far and `resume: guieval run --resume`",
        130,
        {"signal": signal.SIGINT},
    ),
    Row(
        "SIGTERM while a server is waited for",
        "the same",
        "the result so far and `resume: guieval run --resume`",
        130,
        {"signal": signal.SIGTERM},
    ),
)
def test_a_wait_can_be_stopped(program: Program, tmp_path: Path, row: Row) -> None:
    """It ends within seconds; no step is recorded as failed, and a resume ends with the answers and figures of a clean run."""
    process, _ = started(program, tmp_path)
    assert process.stdout is not None
    assert "waiting for http" in process.stdout.readline()
    process.send_signal(row.server["signal"])
    began = time.monotonic()
    row.check_seen(program.end(process, row.code))
    assert time.monotonic() - began < 20
    assert failed(tmp_path / "run") == 0
    with program.server() as healthy:
        program.run(healthy.base_url, tmp_path / "run", resume=True)
    program.check_whole(tmp_path / "run")


@rows(
    Row(
        "one of several servers goes away",
        "sends its requests to the others, which does not count as an attempt, without a wait",
        "`gone at the end` in the line of that server",
    ),
    Row("all of several servers go away, and one comes back", WAITS, TELLS),
)
def test_several_servers_are_waited_for_together(program: Program, tmp_path: Path, row: Row) -> None:
    """No step fails, no attempt counts, and the run ends with the answers and figures of a clean run."""
    all_go = row.fault.startswith("all")
    with program.server(latency=0.1) as first:
        with program.server(latency=0.1) as second:
            port = port_of(second)
            process = program.start(first.base_url, tmp_path / "run", "--base-url", second.base_url, "--max-attempts", "1")
            wait_for_lines(process, tmp_path / "run", 10)
        output = "" if all_go else program.end(process)
    if all_go:
        time.sleep(1)
        with program.server(port=port):
            output = program.end(process)
    row.check_seen(output)
    assert ("waiting for" in output) is all_go
    assert failed(tmp_path / "run") == tries_again(tmp_path / "run") == 0
    program.check_whole(tmp_path / "run")


@rows(
    Row("a server that restarts during `guieval rollout`", WAITS, "as usual"),
    Row("a server that restarts during `guieval mix`", WAITS, "as usual"),
)
def test_other_commands_wait_too(program: Program, tmp_path: Path, row: Row) -> None:
    """No step fails, and the exit code is 0."""

    def make(port: int) -> MockServer:
        return program.server(port=port, latency=0.02)

    options = [item for name, value in OPTIONS.items() for item in ("--set", f"bench_options.{name}={value}")]
    common = ["--quiet", "--model", MODEL, "--bench", "demo", "--data", str(program.benchmark.root), *options]
    if "rollout" in row.fault:
        command = ["rollout", "--rounds", "2", "--samples", "2", "--max-attempts", "1"]
    else:
        command = ["mix", "--artifacts", str(program.clean), "--pair", "0:1", "--set", "max_attempts=1"]
    with outage(make, after=10, seconds=1.0) as url:
        row.check_seen(guieval(*command, *common, "--out", str(tmp_path / "out"), "--base-url", url, folder=tmp_path))
    journals = [path.parent for path in (tmp_path / "out").rglob("manifest.json") if is_run(path.parent)]
    assert journals and not any(map(failed, journals))


@rows(
    Row(
        "a URL where no server has ever answered",
        "tries `--max-attempts` times and stops without a wait: this is more likely a mistake than an outage",
        "one sentence: `no usable answer after 2 tries; at last http://127.0.0.1:`, `could not be reached`",
        2,
        options=("--max-attempts", "2", "--served-model", MODEL),
    )
)
def test_a_server_that_never_was_is_not_waited_for(program: Program, tmp_path: Path, row: Row) -> None:
    """No step is recorded, although the default patience is minutes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    row.check_seen(program.run(f"http://127.0.0.1:{port}/v1", tmp_path / "run", *row.options, code=row.code))
    assert not list(Records(tmp_path / "run"))


@rows(
    Row(
        "a budget that is reached after an outage",
        "waits, records the answers in flight, and starts no further step once the estimated cost reaches `--budget`",
        "`stopped: soeval:`, the budget, and `resume: guieval run --resume`",
        1,
    )
)
def test_a_wait_changes_no_budget(program: Program, tmp_path: Path, row: Row) -> None:
    """No step fails, and a resume without the budget ends with the answers and figures of a clean run."""
    prices = tmp_path / "prices.yaml"
    price = {"models": [MODEL], "currency": "USD", "input": 1000, "output": 1000, "source": "this test", "as_of": "2026-01"}
    prices.write_text(json.dumps([price]), encoding="utf-8")  # JSON is YAML
    process, port = started(program, tmp_path, "--budget", "60", "--prices", str(prices))
    time.sleep(0.5)
    with program.server(port=port):
        row.check_seen(program.end(process, row.code))
    assert failed(tmp_path / "run") == 0
    with program.server() as healthy:
        program.run(healthy.base_url, tmp_path / "run", "--set", "budget=null", resume=True)
    program.check_whole(tmp_path / "run")
