"""Starts a vLLM server for a checkpoint, waits until it answers, and ends it whatever happens.

The server's processes belong to :mod:`guieval.engines.vllm.supervisor`, which lives until it has ended them, even if this
process is killed. :mod:`guieval.engines.vllm.command` builds the command; requests go through
:mod:`guieval.engines.http.chat_completions`.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from types import TracebackType

from guieval.data.files import open_file
from guieval.engines.stop_signals import signals_as_interrupt
from guieval.engines.vllm import supervisor
from guieval.engines.vllm.causes import cause, told_before
from guieval.engines.vllm.command import HOST, VLLMSettings, find_start, served_name, server_command
from guieval.engines.vllm.kept_servers import KeptServer, command_digest, only_one, process_start, read_kept
from guieval.engines.vllm.stated import MOST_OF_A_LOG, facts_of_command, facts_of_log
from guieval.engines.vllm.supervisor import LAST_WAIT, wait_for
from guieval.errors import FatalEngineError, UsageError
from guieval.journal import write_atomically
from guieval.journal.setup import EngineFacts
from guieval.models import ModelConfig

PORT_TRIES = 5
"""Ports tried: another program may take a free one before the server does."""
LAST_LINES = 15
"""Lines of a failed server's log that its error shows."""
_TAIL_BYTES = 64 * 1024
_ANSWER_SECONDS = 2.0  # a server that is loading may accept a connection and leave it without an answer
_KEPT_SECONDS = 20.0  # time in which a busy server that was left running must answer
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[^\x20-\x7e\xa0-\U0010ffff]")


class ServerFailure(FatalEngineError):
    """A server that guieval launched did not start or has ended, so no request can succeed. ``lines`` are its log's last."""

    def __init__(self, message: str, lines: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.lines = tuple(lines)
        if lines:
            self.add_note("\n".join(lines))  # an uncaught error's traceback shows them too


def free_port() -> int:
    """A TCP port that is free on 127.0.0.1 now; another program may take it before it is used."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


class VLLMServer:
    """A context manager that runs the server at ``base_url``.

    The server's output is appended to ``log``. ``on_wait(seconds, line)`` is called about twice a second during the start,
    with the time since the launch and the log's last line. With ``settings.reuse``, a server of an earlier run is used if it
    was started by the same command and still answers, and the server is left running at the end.

    Entering raises :class:`UsageError` if vLLM is not installed (see :meth:`check`), and :class:`ServerFailure` if the server
    ends or is not ready in time. In the main thread, SIGTERM and SIGHUP raise ``KeyboardInterrupt`` during start and end.
    """

    def __init__(
        self,
        model: ModelConfig,
        settings: VLLMSettings | None = None,
        log: Path = Path("vllm.log"),
        *,
        on_wait: Callable[[float, str], None] = lambda seconds, line: None,
        ports: Callable[[], int] = free_port,
    ) -> None:
        self.model = model
        self.settings = settings if settings is not None else VLLMSettings()
        self.log = log
        self.on_wait = on_wait
        self.reused = False
        self._ports = ports
        self._name = served_name(model, self.settings)
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._server_pid: int | None = None
        self._kept: KeptServer | None = None
        self._port: int | None = None
        self._log_start = 0
        server_command(model, self.settings, 0)  # raises an error for invalid arguments now

    @property
    def base_url(self) -> str:
        """Where the server answers, e.g. ``http://127.0.0.1:40123/v1``; ``RuntimeError`` while it does not run."""
        if self._port is None:
            raise RuntimeError("the server is not running: use it inside of its `with` block")
        return f"http://{HOST}:{self._port}/v1"

    @property
    def pid(self) -> int | None:
        """The process that ends the server when it gets SIGTERM."""
        if self._kept is not None:
            return self._kept.pid
        return self._supervisor.pid if self._supervisor is not None else None

    @property
    def alive(self) -> bool:
        if self._kept is not None:
            return self._kept.alive
        if self._supervisor is None or self._supervisor.poll() is not None or self._server_pid is None:
            return False
        return process_start(self._server_pid) is not None

    def facts(self) -> EngineFacts:
        """What the server's log, its command and its checkpoint's files say of it."""
        try:
            with open_file(self.log) as file:
                file.seek(0 if self.reused else self._log_start)
                text = file.read(MOST_OF_A_LOG).decode("utf-8", "replace")
        except OSError:
            text = ""
        return facts_of_log(text).completed(facts_of_command(server_command(self.model, self.settings, 0)))

    def check(self) -> None:
        """Find out how to start the server; :class:`UsageError` without Linux or vLLM."""
        if not sys.platform.startswith("linux"):
            raise UsageError("guieval starts vLLM on Linux only; start it yourself and give --base-url URL")
        self.settings = self.settings.model_copy(update={"command": find_start(self.settings)})

    def __enter__(self) -> VLLMServer:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server, or find the one left running, and wait until it answers. Raises the errors of the class."""
        with signals_as_interrupt():
            try:
                self.check()
                if self.settings.reuse:
                    self._find_or_start()
                else:
                    self._launch()
            except BaseException:
                self._end()
                raise

    def stop(self) -> None:
        """End the server and all its processes, unless it is left running. May be called twice."""
        self._port = None
        if self._kept is not None:
            return
        with signals_as_interrupt():
            self._end()

    def check_alive(self) -> None:
        """Raise :class:`ServerFailure` if the server has ended."""
        if self.alive:
            return
        if self._kept is None and self._supervisor is None:
            raise RuntimeError("the server is not running: use it inside of its `with` block")
        raise self._failure("the vLLM server is gone" if self._kept is not None else f"the vLLM server {self._ending()}")

    async def pause(self, seconds: float) -> None:
        """Sleep between two tries of a request; raises :class:`ServerFailure` as soon as the server has ended."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        self.check_alive()
        while (left := end - loop.time()) > 0:
            await asyncio.sleep(min(left, 1.0))
            self.check_alive()

    def _find_or_start(self) -> None:
        if self.settings.state is None:
            raise ValueError("reuse needs a folder with records of servers left running (settings.state)")
        digest = command_digest(server_command(self.model, self.settings, 0), os.environ)
        file = self.settings.state / f"{digest}.json"
        began = time.monotonic()

        def waiting() -> None:
            seconds = time.monotonic() - began
            self.on_wait(seconds, "another run is starting this server")
            if seconds > self.settings.start_timeout:
                raise self._failure(f"another run has not started this server within {seconds:,.0f} s")

        with only_one(file.with_suffix(".lock"), waiting):
            kept = read_kept(file)
            if kept is not None and wait_for(lambda: self._answers(kept.port) or not kept.alive, _KEPT_SECONDS) and kept.alive:
                self._kept, self._port, self.log, self.reused = kept, kept.port, Path(kept.log), True
                return
            if kept is not None:  # it holds the accelerator that the new one needs
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(kept.pid, signal.SIGTERM)
                wait_for(lambda: not kept.alive, self.settings.stop_timeout + LAST_WAIT + 5.0)
            self._launch()
            process = self._supervisor
            assert process is not None and process.stdin is not None and self._port is not None
            started = process_start(process.pid)
            if started is None:
                raise self._failure(f"the vLLM server {self._ending()}")
            command = server_command(self.model, self.settings, self._port)
            new = KeptServer(process.pid, started, self._port, str(self.log.resolve()), command)
            write_atomically(file, json.dumps(asdict(new)))
            process.stdin.write(b"k")  # from here on it stays, also when this process is killed
            process.stdin.close()
            self._kept = new

    def _launch(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, PORT_TRIES + 1):
            port = self._ports()
            self._log_start = self.log.stat().st_size if self.log.exists() else 0
            try:
                self._spawn(port)
                self._wait_until_ready(port)
            except ServerFailure:
                self._end()
                if attempt < PORT_TRIES and self._was_taken(port):
                    continue
                raise
            self._port = port
            return

    def _spawn(self, port: int) -> None:
        command = server_command(self.model, self.settings, port)
        words = [sys.executable, "-P", supervisor.__file__, str(self.settings.stop_timeout), *command]
        with self.log.open("ab") as log:
            log.write(f"guieval starts {json.dumps(command)}\n".encode())
            log.flush()
            self._log_start = max(self._log_start, log.tell())
            process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                bufsize=0,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        self._supervisor = process
        assert process.stdout is not None and process.stdin is not None
        # a forked child (multiprocessing) would hold the pipe open after our end
        os.register_at_fork(after_in_child=process.stdin.close)
        with process.stdout as reports:
            try:
                report = json.loads(reports.readline())
            except ValueError:
                raise self._failure("the process that looks after the vLLM server did not start") from None
        if "failed" in report:
            raise UsageError(f"the vLLM server cannot be started: {report['failed']}")
        self._server_pid = report["pid"]

    def _wait_until_ready(self, port: int) -> None:
        began = time.monotonic()
        while True:
            self._check_started()
            if self._answers(port):
                self._check_started()  # if ours has ended, another server answered
                return
            seconds = time.monotonic() - began
            if seconds > self.settings.start_timeout:
                limit = f"{self.settings.start_timeout:,g} s (--set vllm.start-timeout=SECONDS)"
                raise self._failure(f"the vLLM server was not ready within {limit}")
            self.on_wait(seconds, next(reversed(self._tail(1)), ""))
            time.sleep(0.5 if seconds > 2 else 0.1)

    def _check_started(self) -> None:
        assert self._supervisor is not None
        if self._supervisor.poll() is not None:
            raise self._failure(f"the vLLM server {self._ending()} while it was starting")

    def _answers(self, port: int) -> bool:
        """Whether a healthy server of our model listens there; another program may have taken the port."""
        if _get(port, "/health") is None:
            return False
        try:
            listed = json.loads(_get(port, "/v1/models") or b"")["data"]
            return any(entry["id"] == self._name for entry in listed)
        except (ValueError, KeyError, TypeError):
            return False

    def _was_taken(self, port: int) -> bool:
        """Whether the server ended because another program has its port."""
        if "address already in use" in "\n".join(self._tail(200)).lower():
            return True
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                return True
        return False

    def _ending(self) -> str:
        assert self._supervisor is not None
        try:
            code = self._supervisor.wait(self.settings.stop_timeout + LAST_WAIT)
        except subprocess.TimeoutExpired:
            return "is gone"
        if code < 0:  # the supervisor itself was killed
            return f"was lost (signal {-code} to its supervisor)"
        if code > 128:
            name = signal.Signals(code - 128).name if code - 128 in set(signal.Signals) else f"signal {code - 128}"
            return f"was ended by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
        return f"ended with exit code {code}"

    def _end(self) -> None:
        process = self._supervisor
        if process is None:
            return
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(self.settings.stop_timeout + LAST_WAIT + 5.0)
        if process.returncode is None or process.returncode < 0:  # the supervisor was killed, or is stuck
            if self._server_pid is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._server_pid, signal.SIGKILL)
            process.kill()
            process.wait()
        self._supervisor = self._server_pid = None

    def _failure(self, what: str) -> ServerFailure:
        lines = self._tail(None, MOST_OF_A_LOG)
        if (reason := cause(lines)) is not None:
            said = told_before(reason)
            what += f": {reason}" + ("" if said is None else f" (`guieval doctor` says: {said})")
        return ServerFailure(f"{what}; its log is {str(self.log)!r}", lines[-LAST_LINES:])

    def _tail(self, count: int | None, most: int = _TAIL_BYTES) -> list[str]:
        """The last ``count`` lines (``None``: all) among the last ``most`` bytes of the log since the launch.

        They are without control characters, each cut to 300 characters.
        """
        try:
            with open_file(self.log) as file:
                file.seek(max(self._log_start, file.seek(0, os.SEEK_END) - most))
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return []
        # a progress bar overwrites itself, so only its last state is shown
        lines = [_CONTROL.sub("", line.rstrip("\r").rpartition("\r")[2]).rstrip()[:300] for line in text.split("\n")]
        return [line for line in lines if line][-(count or 0) :]


def _get(port: int, path: str) -> bytes | None:
    """The body of an answer with status 200, else ``None``."""
    key = os.environ.get("VLLM_API_KEY", "")
    headers = {"Authorization": f"Bearer {key}"} if key.isascii() and key.isprintable() and key else {}
    connection = http.client.HTTPConnection(HOST, port, timeout=_ANSWER_SECONDS)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        body = response.read(1024 * 1024)
        return body if response.status == 200 else None
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
