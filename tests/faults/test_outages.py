"""Servers that go away."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

from guieval.journal import RunFolder, is_run
from guieval.playground.mock_server import MockServer
from tests.faults.program import MODEL, OPTIONS, Program, guieval, tries_again, wait_for_lines
from tests.faults.rows import Row, rows
from tests.outage import hold, outage, reserved_port

WAITS = (
    "holds all requests, probes the server at least every two seconds, waits up to `--patience` seconds (300), and continues "
    "at once when it is back; attempts that reached no server do not count"
)
TELLS = "`waiting for http://127.0.0.1:`, in the progress line also since when, then `is back` and after how long"


NEVER = threading.Event()
"""What a server that goes away for good waits for."""


def failed(directory: Path) -> int:
    return sum(not record.finished for record in RunFolder(directory).records)


def check_undisturbed(program: Program, run: Path) -> None:
    assert failed(run) == tries_again(run) == 0
    program.check_whole(run)


def through_an_outage(program: Program, tmp_path: Path, *options: str, code: int = 0, **more: Any) -> str:
    """What a run prints whose server goes away with requests in flight, and comes back once that was announced."""
    with outage(lambda port: program.server(port=port, latency=0.05), after=10, **more) as url:
        return program.run(url, tmp_path / "run", *options, code=code)


@rows(Row("a server that restarts in the middle of a run, with `--max-attempts 1`", WAITS, TELLS))
def test_an_outage_costs_no_step(program: Program, tmp_path: Path, row: Row) -> None:
    """The server is stopped with requests in flight and comes back empty on the same port; no step fails, no attempt counts,
    and the run ends by itself with the answers and figures of a clean run."""
    row.check_seen(through_an_outage(program, tmp_path, "--max-attempts", "1"))
    check_undisturbed(program, tmp_path / "run")


class Gateway(ThreadingHTTPServer):
    """Answers every request with the same status, as a gateway does whose server is away.

    ``requests`` and ``probes`` are when it was asked; the third probe sets ``probed``.
    """

    daemon_threads = True
    request_queue_size = 100

    def __init__(self, port: int, status: int, headers: dict[str, str], probed: threading.Event) -> None:
        gateway = self
        self.requests: list[float] = []
        self.probes: list[float] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                (gateway.requests if self.path.endswith("completions") else gateway.probes).append(time.monotonic())
                if len(gateway.probes) == 3:
                    probed.set()
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
    """The gateway gets the few requests that were on their way, and then one probe after the other; no step fails, no attempt
    counts, and the run ends with the answers and figures of a clean run."""
    headers = {name: value for name, value in row.server.items() if name != "status"}
    probed = threading.Event()
    gateways: list[Gateway] = []

    def meanwhile(port: int) -> AbstractContextManager[None]:
        gateways.append(Gateway(port, row.server["status"], headers, probed))
        return gateways[0].serving()

    row.check_seen(through_an_outage(program, tmp_path, "--max-attempts", "1", meanwhile=meanwhile, back=probed))
    (gateway,) = gateways
    assert len(gateway.requests) <= 8 and len(gateway.probes) >= 3
    if headers:
        assert all(after - before > 0.95 for before, after in pairwise(gateway.probes))
    check_undisturbed(program, tmp_path / "run")


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
    row.check_seen(through_an_outage(program, tmp_path, *row.options, code=row.code, back=NEVER))
    assert failed(tmp_path / "run") == program.check_honest(tmp_path / "run") == 0
    program.check_resumed(tmp_path / "run")


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
    """It ends long before `--patience`; no step is recorded as failed, and a resume ends with the answers and figures of a
    clean run."""
    with reserved_port() as port:
        with program.server(port=port) as server:
            hold(server, after=10)
            process = program.start(server.base_url, tmp_path / "run")
            wait_for_lines(process, tmp_path / "run", 10)
        assert process.stdout is not None
        assert "waiting for http" in process.stdout.readline()
        process.send_signal(row.server["signal"])
        row.check_seen(program.end(process, row.code))
    assert failed(tmp_path / "run") == 0
    program.check_resumed(tmp_path / "run")


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

    def make(port: int) -> MockServer:
        return program.server(port=port, latency=0.05)

    goes = outage(make, after=5, back=NEVER)
    with goes as first, outage(make, after=5) if all_go else make(0) as other:
        second = other if isinstance(other, str) else other.base_url
        output = program.run(first, tmp_path / "run", "--base-url", second, "--max-attempts", "1")
    row.check_seen(output)
    assert ("waiting for" in output) is all_go
    check_undisturbed(program, tmp_path / "run")


@rows(
    Row("a server that restarts during `guieval study rollout`", WAITS, "as usual"),
    Row("a server that restarts during `guieval study mix`", WAITS, "as usual"),
)
def test_other_commands_wait_too(program: Program, tmp_path: Path, row: Row) -> None:
    """No step fails, and the exit code is 0."""

    def make(port: int) -> MockServer:
        return program.server(port=port, latency=0.02)

    options = [item for name, value in OPTIONS.items() for item in ("--set", f"bench_options.{name}={value}")]
    common = ["--quiet", "--model", MODEL, "--bench", "demo", "--data", str(program.benchmark.root), *options]
    if "rollout" in row.fault:
        command = ["study", "rollout", "--rounds", "2", "--samples", "2", "--max-attempts", "1"]
    else:
        command = ["study", "mix", "--artifacts", str(program.clean), "--pair", "0:1", "--set", "max_attempts=1"]
    with outage(make, after=10) as url:
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
    with reserved_port() as port:
        row.check_seen(program.run(f"http://127.0.0.1:{port}/v1", tmp_path / "run", *row.options, code=row.code))
    assert not list(RunFolder(tmp_path / "run").records)


def prices(folder: Path, model: str) -> str:
    """A file of prices by which an answer of the model costs 3.06 USD."""
    file = folder / "prices.yaml"
    price = {"models": [model], "currency": "USD", "input": 1000, "output": 1000, "source": "here", "as_of": "2026-01"}
    file.write_text(json.dumps([price]), encoding="utf-8")  # JSON is YAML
    return str(file)


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
    budget = ("--budget", "60", "--prices", prices(tmp_path, MODEL))
    row.check_seen(through_an_outage(program, tmp_path, *budget, code=row.code))
    assert failed(tmp_path / "run") == 0
    program.check_resumed(tmp_path / "run", "--set", "budget=null")
