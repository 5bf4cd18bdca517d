"""A launched server: it is ready when ordered so, and however things end none of its processes stays."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from guieval.engines.vllm import causes
from guieval.engines.vllm.command import VLLMSettings
from guieval.engines.vllm.kept_servers import only_one, process_start
from guieval.engines.vllm.server import ServerFailure, VLLMServer
from guieval.errors import UsageError
from guieval.journal import METRICS, STEPS, RunFolder
from guieval.models import ModelConfig
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.running.execute import Executor
from guieval.running.progress.display import Display
from guieval.running.telemetry import Telemetry
from guieval.settings import RunConfig
from tests.command_line import CommandLine
from tests.conftest import REPOSITORY
from tests.outage import reserved_port
from tests.programs import guard, started
from tests.rows import every_row
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="vLLM is started on Linux only")

Words = Callable[..., list[str]]
FAKE = f"{sys.executable} {REPOSITORY / 'tests' / 'engines' / 'vllm' / 'fake_vllm.py'}"
MODEL = ModelConfig(name="tiny", adapter="qwen2_5_vl", hf_id="org/tiny")


class Fake:
    """The stand-in's orders, and the processes that it has started so far."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file = folder / "pids.jsonl"
        self._monkeypatch = monkeypatch
        self.order()

    def order(self, **orders: Any) -> None:
        self._monkeypatch.setenv("FAKE_VLLM", json.dumps({"pids": str(self.file), **orders}))

    @property
    def starts(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.file.read_text().split("\n")[:-1]] if self.file.exists() else []

    @property
    def left(self) -> list[int]:
        """Process ids of everything that was started and still runs."""
        pids = [pid for start in self.starts for pid in (*start["pids"], start["supervisor"])]
        return [pid for pid in pids if process_start(pid) is not None]


def nothing_left(fake: Fake) -> None:
    until(lambda: not fake.left, "the end of every process", every=0.02)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    guard()  # of servers, whose supervisors are in sessions of their own
    made = Fake(tmp_path, monkeypatch)
    yield made
    for pid in made.left:  # a failed test must not leave any either
        os.kill(pid, signal.SIGKILL)


def settings(**values: Any) -> VLLMSettings:
    others = {name: values.pop(name) for name in ("reuse", "state") if name in values}
    return VLLMSettings.of({"command": FAKE, "stop-timeout": 0.2, "start-timeout": PATIENCE, **values}, **others)


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=PATIENCE) as response:
        return json.loads(response.read() or b"null")


def test_it_answers_inside_and_is_gone_outside(tmp_path: Path, fake: Fake) -> None:
    def noted(seconds: float, line: str) -> None:
        if line == "ready or not":  # the log's last line, without what terminals act on
            (tmp_path / "seen").touch()

    fake.order(until=str(tmp_path / "seen"))
    server = VLLMServer(MODEL, settings(dtype="half"), tmp_path / "new" / "vllm.log", on_wait=noted)
    with pytest.raises(RuntimeError, match="not running"):
        _ = server.base_url
    with server:
        assert [entry["id"] for entry in get(f"{server.base_url}/models")["data"]] == ["tiny"]
        assert len(fake.left) == 4, "the stand-in, its two workers and the supervisor"
        server.check_alive()
    assert fake.left == []
    assert fake.starts[0]["args"][-2:] == ["--dtype", "half"]
    assert "loading weights: 100%" in (tmp_path / "new" / "vllm.log").read_text()
    server.stop()  # once more does nothing
    with pytest.raises(RuntimeError, match="not running"):
        server.check_alive()


PARENT = """
import os, signal, sys
from pathlib import Path
from tests.engines.vllm.test_vllm_server import MODEL, settings
from guieval.engines.vllm.server import VLLMServer

with VLLMServer(MODEL, settings(), Path(sys.argv[1])):
    print("ready", flush=True)
    {ending}
"""


@pytest.mark.parametrize(
    ("ending", "code", "at_once"),
    [
        ("pass", 0, True),
        ("raise ValueError", 1, True),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM, False),  # a program that does not handle it
        ("os._exit(3)", 3, False),
    ],
)
def test_however_its_owner_ends_no_process_stays(tmp_path: Path, fake: Fake, ending: str, code: int, at_once: bool) -> None:
    words = [sys.executable, "-c", PARENT.format(ending=ending), str(tmp_path / "vllm.log")]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE)
    assert (done.stdout, done.returncode) == ("ready\n", code), done.stderr
    if at_once:
        assert fake.left == []
    assert len(fake.starts) == 1
    nothing_left(fake)


def test_one_that_ends_at_start_shows_its_last_lines(tmp_path: Path, fake: Fake) -> None:
    fake.order(crash=7)
    log = tmp_path / "vllm.log"
    log.write_text("a line of an earlier start\n")
    message = r"ended with exit code 7 while it was starting; its log is '.*vllm\.log'"
    with pytest.raises(ServerFailure, match=message) as raised:
        VLLMServer(MODEL, settings(), log).start()
    assert raised.value.lines == ("loading weights: 100%", "ready or not", "CUDA error: out of memory")
    assert fake.left == [] and len(fake.starts) == 1
    assert log.read_text().startswith("a line of an earlier start\n"), "the log is appended to"


def test_the_engines_exception_comes_first_however_far_above_the_end_it_is(
    tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vLLM 0.26 and 0.32 print it in their EngineCore process, and end with a page of the API process that names no cause."""
    engine = "(EngineCore_DP0 pid=7) ERROR 11-28 10:25:48 [core.py:1100] "
    log = [
        "(APIServer pid=3) ValueError: an earlier warning of another process",
        engine + "EngineCore failed to start.",
        engine + "ModuleNotFoundError: No module named 'flashinfer'",
        *["(APIServer pid=3)   File 'api_server.py'"] * 30,
        "(APIServer pid=3) RuntimeError: Engine core initialization failed. See root cause above.",
    ]
    fake.order(crash=1, lines=log)
    lacking = ["vllm", "flashinfer-python==0.6; python_version > '3'", "other; extra == 'bench'"]
    monkeypatch.setattr(causes, "requires", lambda name: lacking)
    with pytest.raises(ServerFailure) as raised:
        VLLMServer(MODEL, settings(), tmp_path / "vllm.log").start()
    line = "flashinfer-python (needed by vllm) is not installed: pip install 'flashinfer-python==0.6'"
    assert line in list(causes.missing_packages())
    assert f"starting: ModuleNotFoundError: No module named 'flashinfer' (`guieval doctor` says: {line}); its" in str(
        raised.value
    )
    assert len(raised.value.lines) == 15 and raised.value.lines[-1].endswith("root cause above.")
    memory = "ValueError: Available memory on node 0 (17.38/22.71 GiB) on startup is less than desired"  # vLLM 0.32 on a CPU
    log = [f"(VllmWorker-0 pid=8916) ERROR 11-28 10:27:14 [multiproc_executor.py:953] {memory}"]
    log += ["(EngineCore pid=6739) ERROR 11-28 10:27:19 [core.py:1510] Exception: WorkerProc initialization failed due to"]
    assert causes.cause(log) == memory and causes.cause(log[1:]) == "Exception: WorkerProc initialization failed due to"
    assert causes.told_before("ValueError: no") is None


def test_one_that_is_never_ready_is_taken_down(tmp_path: Path, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.order(never=True)
    now = time.monotonic
    ahead = 0.0

    def started_up(seconds: float, line: str) -> None:
        nonlocal ahead
        ahead = 700.0 * (line == "ready or not")

    monkeypatch.setattr("guieval.engines.vllm.server.time", SimpleNamespace(monotonic=lambda: now() + ahead, sleep=time.sleep))
    limited = settings(**{"start-timeout": 600})
    with pytest.raises(ServerFailure, match=r"not ready within 600 s \(--set vllm\.start-timeout=SECONDS\)") as raised:
        VLLMServer(MODEL, limited, tmp_path / "vllm.log", on_wait=started_up).start()
    assert raised.value.lines[-1] == "ready or not"
    assert len(fake.starts) == 1 and fake.left == []


def test_one_that_is_not_well_yet_is_waited_for(tmp_path: Path, fake: Fake) -> None:
    fake.order(unwell=5)
    with VLLMServer(MODEL, settings(), tmp_path / "vllm.log") as server:
        assert [entry["id"] for entry in get(f"{server.base_url}/models")["data"]] == ["tiny"]
        assert (tmp_path / "vllm.log").read_text().count('"GET /health HTTP/1.1" 503') == 5
    assert len(fake.starts) == 1 and fake.left == []


FORKED = "child = os.fork(); child or __import__('time').sleep(600); print(child, flush=True); os.kill(os.getpid(), 9)"


def test_a_forked_child_does_not_keep_the_server_of_a_killed_owner(tmp_path: Path, fake: Fake) -> None:
    words = [sys.executable, "-c", PARENT.format(ending=FORKED), str(tmp_path / "vllm.log")]
    with started(words, cwd=REPOSITORY, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None and owner.stdout.readline() == "ready\n"
        child = int(owner.stdout.readline())
        try:
            nothing_left(fake)
            assert process_start(child) is not None
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_port_that_was_taken_meanwhile_is_left_to_its_new_owner(tmp_path: Path, fake: Fake) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder, reserved_port() as free:
        taken = holder.getsockname()[1]
        ports = iter([taken, free])
        with VLLMServer(MODEL, settings(), tmp_path / "vllm.log", ports=lambda: next(ports)) as server:
            assert server.base_url == f"http://127.0.0.1:{free}/v1"
        assert [start["args"][start["args"].index("--port") + 1] for start in fake.starts] == [str(taken), str(free)]
    assert fake.left == []


def test_another_models_server_on_the_port_is_not_taken_for_ours(tmp_path: Path, fake: Fake) -> None:
    with MockServer(MockSettings(served_models=("other",), policy="fixed")) as other, reserved_port() as free:
        ports = iter([int(other.base_url.split(":")[2].split("/")[0]), free])
        with VLLMServer(MODEL, settings(), tmp_path / "vllm.log", ports=lambda: next(ports)) as server:
            assert server.base_url != other.base_url
            assert get(f"{server.base_url}/models")["data"][0]["id"] == "tiny"


@pytest.mark.parametrize(
    ("victim", "message"),
    [("pids", r"was ended by SIGKILL \(out of memory\?\)"), ("supervisor", r"was lost \(signal 9 to its supervisor\)")],
)
def test_one_that_is_killed_later_is_reported_at_once(tmp_path: Path, fake: Fake, victim: str, message: str) -> None:
    with VLLMServer(MODEL, settings(), tmp_path / "vllm.log") as server:
        start = fake.starts[0]
        os.kill(start["pids"][0] if victim == "pids" else start["supervisor"], signal.SIGKILL)
        until(lambda: not server.alive, "the end of the server")
        with pytest.raises(ServerFailure, match=message) as raised:
            server.check_alive()
        assert raised.value.lines[0] == "loading weights: 100%"
    if victim == "pids":
        assert fake.left == []
    else:  # a process that left its group is not looked after any more
        until(lambda: fake.left == [start["pids"][2]], "the end of all but one")


def test_a_server_that_died_between_two_runs_is_restarted(tmp_path: Path, fake: Fake) -> None:
    server = VLLMServer(MODEL, settings(), tmp_path / "vllm.log")
    with Executor(RunConfig(model="tiny", bench="demo"), Display(), Telemetry([], Display())) as launching:
        launching.use(server)
        launching.use(server)
        assert len(fake.starts) == 1
        os.kill(fake.starts[0]["pids"][0], signal.SIGKILL)
        until(lambda: not server.alive, "the end of the server")
        launching.use(server)
        launching.check()
        assert len(fake.starts) == 2 and get(f"{server.base_url}/models")["data"][0]["id"] == "tiny"
    assert fake.left == []


def test_a_server_that_is_left_running_serves_the_next_one_and_ends_on_request(tmp_path: Path, fake: Fake) -> None:
    def made(log: str, **values: Any) -> VLLMServer:
        return VLLMServer(MODEL, settings(reuse=True, state=tmp_path / "servers", **values), tmp_path / log)

    with made("one.log") as first:
        url, pid = first.base_url, first.pid
        assert not first.reused
    assert pid is not None and len(fake.left) == 4
    with made("two.log") as second:
        assert (second.base_url, second.pid, second.reused) == (url, pid, True)
        assert second.log == (tmp_path / "one.log").resolve() and not (tmp_path / "two.log").exists()
    with made("three.log", dtype="half") as unlike:  # other arguments, another server
        assert unlike.base_url != url
        assert unlike.pid is not None
        os.kill(unlike.pid, signal.SIGTERM)
        until(lambda: len(fake.left) == 4, "the end of one of two servers")
    os.kill(fake.starts[0]["pids"][0], signal.SIGSTOP)  # hangs, and hears no SIGTERM
    os.kill(pid, signal.SIGTERM)
    nothing_left(fake)
    with made("four.log") as fourth:
        assert not fourth.reused
        fourth.check_alive()
        os.kill(fourth.pid or 0, signal.SIGTERM)
        nothing_left(fake)
        with pytest.raises(ServerFailure, match="the vLLM server is gone"):
            fourth.check_alive()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_owner_that_is_killed_leaves_a_server_only_once_it_is_ready(tmp_path: Path, fake: Fake, number: int) -> None:
    program = PARENT.replace("settings()", "settings(reuse=True, state=Path(sys.argv[2]))")
    words = [sys.executable, "-c", program.format(ending=f"os.kill(os.getpid(), {int(number)})")]
    words += [str(tmp_path / "vllm.log"), str(tmp_path / "servers")]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout == "ready\n" and len(fake.left) == 4
    with VLLMServer(MODEL, settings(reuse=True, state=tmp_path / "servers"), tmp_path / "two.log") as server:
        assert server.reused
    os.kill(server.pid or 0, signal.SIGTERM)
    nothing_left(fake)
    fake.order(never=True)
    with started(words, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as waiting:
        until(lambda: len(fake.starts) == 2, "a second start of the server")
        waiting.send_signal(number)
        waiting.communicate(timeout=PATIENCE)
    nothing_left(fake)


def test_of_two_owners_one_waits_and_may_give_up(tmp_path: Path) -> None:
    def gives_up() -> None:
        raise ServerFailure("it took too long")

    lock = tmp_path / "lock"
    with only_one(lock, gives_up), pytest.raises(ServerFailure, match="too long"), only_one(lock, gives_up):
        pass
    with only_one(lock, gives_up):
        pass


def test_what_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    for values, message in (
        ({"python": sys.executable}, r"vLLM is not installed for .*pip install 'guieval\[vllm\]'.*--base-url URL"),
        ({"python": "/no/python"}, "'/no/python' that should run vLLM cannot be started: No such file"),
        ({"command": "no-such-program serve"}, "vllm.command is 'no-such-program serve', but there is no such program"),
    ):
        with pytest.raises(UsageError, match=message):
            VLLMServer(MODEL, VLLMSettings.of(values), tmp_path / "vllm.log").start()
    assert not (tmp_path / "vllm.log").exists()


# the whole program

NAME = "qwen2.5-vl-7b"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Words:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def words(*more: str, out: str = "run") -> list[str]:
        start = ["run", "--bench", "demo"]
        for option, value in (("--engine", "vllm"), ("--model", NAME)):
            start += [] if option in more else [option, value]
        start += ["--set", "bench_options.episodes=4", "--data", str(tmp_path / "demo"), "--out", str(tmp_path / out)]
        return [*start, "--set", f"vllm.command={FAKE}", "--set", "vllm.stop_timeout=0.2", *more]

    return words


def program(words: Sequence[str]) -> AbstractContextManager[subprocess.Popen[str]]:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return started([sys.executable, "-m", "guieval", *words], **streams)  # type: ignore[arg-type]


def steps(folder: Path) -> int:
    return sum(record.finished for record in RunFolder(folder).records) if (folder / STEPS).exists() else 0


def test_one_server_serves_all_modes_of_a_run(tmp_path: Path, fake: Fake, run: Words, guieval: CommandLine) -> None:
    fake.order(answers={"model": NAME, "policy": "random"})
    done = guieval(*run("--mode", "offline", "--mode", "soeval"))
    assert done.code == 0, done
    assert len(fake.starts) == 1 and fake.left == []
    assert (tmp_path / "run" / "vllm.log").exists()
    assert steps(tmp_path / "run" / "offline") == steps(tmp_path / "run" / "soeval") > 0
    args = fake.starts[0]["args"]
    assert args[args.index("--allowed-local-media-path") + 1] == str((tmp_path / "demo").resolve())


@pytest.mark.parametrize("attempts", ["1", "5"])
def test_a_server_that_dies_midway_ends_the_run_which_then_goes_on(
    tmp_path: Path, fake: Fake, run: Words, attempts: str, guieval: CommandLine
) -> None:
    fake.order(answers={"model": NAME, "policy": "random", "hang_rate": 1.0, "faults_after": 4})
    folder = tmp_path / "run"

    def kill() -> None:
        until(lambda: steps(folder) >= 2, "two steps")
        os.kill(fake.starts[0]["pids"][0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    code, out, err = guieval(*run("--max-attempts", attempts, "--concurrency", "2"))
    killer.join()
    assert code == 1, err
    assert "guieval: the vLLM server was ended by SIGKILL (out of memory?); its log is" in err and "  ready or not\n" in err
    assert f"resume:   guieval run --resume {folder} " in out and f"run:      {folder}\n" in out
    assert "By group: exact match / type match" in out and (folder / METRICS).exists(), "what was answered is reported"
    kept = steps(folder)
    assert kept == len(list(RunFolder(folder).records)), "no step is called failed for a server that is gone"
    assert kept >= 2 and fake.left == []
    fake.order(answers={"model": NAME, "policy": "random"})
    (as_printed,) = [line for line in out.splitlines() if line.startswith("resume:")]
    again = shlex.split(as_printed.removeprefix("resume:"))[1:]
    done = guieval(*again)
    assert done.code == 0, done
    assert steps(folder) > kept and fake.left == []
    whole = done.out
    fake.order(crash=7)
    done = guieval(*again)
    assert done.code == 0 and len(fake.starts) == 2, "nothing is left to ask, so no server is needed"
    assert done.out.splitlines()[:5] == whole.splitlines()[:5]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopping_the_program_takes_the_server_along(tmp_path: Path, fake: Fake, run: Words, number: int) -> None:
    fake.order(answers={"model": NAME, "policy": "random", "hang_rate": 1.0, "faults_after": 4})
    with program(run("--concurrency", "2")) as process:
        until(lambda: steps(tmp_path / "run") >= 1, "a step", running=process)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    if number == signal.SIGKILL:
        assert process.returncode == -signal.SIGKILL
    else:
        assert process.returncode == 130 and "resume:" in out and "Traceback" not in err, err
        assert fake.left == []
    nothing_left(fake)


def test_a_server_that_does_not_start_is_reported(tmp_path: Path, fake: Fake, run: Words, guieval: CommandLine) -> None:
    fake.order(crash=7)
    done = guieval(*run())
    assert done.code == 1
    assert "ended with exit code 7" in done.err and done.err.endswith("  CUDA error: out of memory\n")
    assert done.out == f"resume:   guieval run --resume {tmp_path / 'run'} --set {shlex.quote(f'vllm.command={FAKE}')}\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopping_the_program_while_the_server_starts(tmp_path: Path, fake: Fake, run: Words, number: int) -> None:
    fake.order(never=True)
    with program(run()) as process:
        until(lambda: fake.starts, "a start of the server", running=process)
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    if number == signal.SIGKILL:
        return nothing_left(fake)
    assert (process.returncode, fake.left) == (130, []) and "Traceback" not in err, err
    assert out == f"resume:   guieval run --resume {tmp_path / 'run'} --set {shlex.quote(f'vllm.command={FAKE}')}\n"


def test_a_server_left_running_is_reported_and_used_again(fake: Fake, run: Words, guieval: CommandLine) -> None:
    fake.order(answers={"model": NAME, "policy": "random"})
    for out in ("one", "two"):
        done = guieval(*run("--reuse-server", out=out))
        assert done.code == 0, done
        assert f"is left running; `kill {fake.starts[0]['supervisor']}` ends it" in done.out
    assert len(fake.starts) == 1
    os.kill(fake.starts[0]["supervisor"], signal.SIGTERM)
    nothing_left(fake)


@every_row(
    ("more", "message"),
    [
        (("--base-url", "http://127.0.0.1:1/v1"), "--engine vllm starts its own server: leave out --base-url"),
        (("--set", "vllm.command=null", "--set", f"vllm.python={sys.executable}"), "pip install 'guieval[vllm]'"),
        (("--set", "vllm.port=1"), "vllm.port cannot be set"),
        (("--engine", "auto", "--reuse-server"), "--reuse-server is for --engine vllm"),
        (("--model", "ocr-baseline"), "answers by itself and needs no server"),
        (("--model", "gpt-4o"), "weights of 'gpt-4o' are"),
    ],
)
def test_a_mistake_is_one_sentence_before_anything_is_made(
    tmp_path: Path, run: Words, guieval: CommandLine, more: tuple[str, ...], message: str
) -> None:
    assert message in guieval.sentence(*run(*more))
    assert not (tmp_path / "run").exists()
