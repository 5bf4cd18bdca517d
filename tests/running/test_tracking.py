"""Reporting a run to other programs: what they receive, and that their failures are never the run's.

The three clients run against their own local stores where they are installed; how a client that fails or hangs is dealt with is
shown with a small module of wandb's interface.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from guieval.errors import UsageError
from guieval.journal import METRICS
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.running import tracking
from guieval.running.config import parse
from guieval.running.tracking import Tracking, check_tracking, final_metrics, flat
from guieval.secrets import Redaction
from guieval.settings import Tracking as Settings
from tests.command_line import CommandLine, Done
from tests.rows import every_row

MODEL = "ui-tars-7b"
KEY = "sk-very-secret-0123456789"
SHORT = "sk-secret-04"
Run = Callable[..., Done]
SMALL = ("--set", "bench_options.episodes=4", "--set", "bench_options.seed=4", "--concurrency", "2")
STAND_IN = """
import json, os
from pathlib import Path

def _write(kind, **values):
    with (Path(os.environ["STAND_IN"]) / "received.jsonl").open("a") as stream:
        stream.write(json.dumps({"kind": kind, **values}) + "\\n")

class Settings(dict):
    pass

class _Run:
    def __init__(self):
        self.summary = self
    def log(self, figures, step):
        _write("log", figures=figures, step=step)
    def update(self, figures):
        _write("summary", figures=figures)
    def finish(self, exit_code):
        _write("finish", code=exit_code)

def init(*, project, name, dir, config, reinit, settings):
    trouble = os.environ.get("STAND_IN_TROUBLE")
    if trouble == "fails":
        raise OSError("no network here")
    if trouble == "leaves":
        raise SystemExit(3)
    if trouble == "hangs":
        import threading
        threading.Event().wait()
    _write("init", project=project, name=name, dir=dir, config=config)
    return _Run()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with MockServer(MockSettings(model=MODEL, api_key=KEY)) as running:
        yield running.base_url


@pytest.fixture
def run(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guieval: CommandLine) -> Run:
    monkeypatch.setenv("MY_KEY", KEY)

    def run(*more: str, url: str = server, quiet: bool = True) -> Done:
        where = ("--base-url", url, "--api-key-env", "MY_KEY", "--out", tmp_path / "run")
        return guieval("run", "--model", MODEL, "--bench", "demo", *where, *SMALL, *["--quiet"] * quiet, *more)

    return run


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module of wandb's interface in its place; the folder where it writes down what it receives."""
    folder = tmp_path / "stand_in"
    folder.mkdir()
    (folder / "wandb.py").write_text(STAND_IN)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("STAND_IN", str(folder))
    real = sys.modules.pop("wandb", None)
    yield folder
    sys.modules.pop("wandb", None)
    if real is not None:
        sys.modules["wandb"] = real


def result(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "received.jsonl").read_text().splitlines()]


def figures_of(run: Path) -> Mapping[str, Any]:
    summary: Mapping[str, Any] = json.loads((run / METRICS).read_text())["summary"]
    return summary


def test_a_tracker_hears_what_the_run_is_where_it_stands_and_how_it_ended(run: Run, stand_in: Path, tmp_path: Path) -> None:
    done = run("--track", "wandb", "--set", "tracking.project=mine")
    assert done.code == 0 and "warning" not in done.out
    first, *logs, summary, last = result(stand_in)
    assert (first["kind"], first["project"], first["name"]) == ("init", "mine", f"{MODEL}-demo-offline")
    assert first["config"]["config.model"] == MODEL and first["config"]["protocol.name"] == "guievalkit"
    assert first["config"]["options.prompt"] == "androidcontrol", "the options of the model's entry too"
    assert {line["kind"] for line in logs} == {"log"}
    assert set(logs[0]["figures"]) >= {"steps_done", "steps_total", "right", "wrong", "prompt_tokens"}
    truth = figures_of(tmp_path / "run")
    assert summary["figures"]["exact_match"] == truth["metrics"]["exact match"]["value"]
    assert summary["figures"]["verdicts/planned"] == truth["verdicts"]["planned"]
    assert summary["figures"]["report"] == str(tmp_path / "run" / METRICS)
    assert last == {"kind": "finish", "code": 0}


def test_a_tracker_hears_no_secret(run: Run, stand_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = (f"extra.note={SHORT}", "extra.prompt_key=password-7", "top_k=5")
    hidden = (word for each in settings for word in ("--set", f"sampling.{each}"))
    monkeypatch.setenv("MY_KEY", SHORT)  # a longer one would be refused as a setting
    with MockServer(MockSettings(model=MODEL, api_key=SHORT)) as open_to_it:
        done = run("--track", "wandb", *hidden, url=open_to_it.base_url)
    assert done.code == 0
    text = (stand_in / "received.jsonl").read_text()
    assert SHORT not in text and "password-7" not in text and "MY_KEY" not in text
    assert '"config.sampling.top_k": 5' in text


@pytest.mark.parametrize(("trouble", "message"), [("fails", "OSError: no network here"), ("leaves", "SystemExit: 3")])
def test_a_tracker_that_fails_is_warned_of_once_and_the_run_goes_on(
    run: Run, stand_in: Path, monkeypatch: pytest.MonkeyPatch, trouble: str, message: str
) -> None:
    monkeypatch.setenv("STAND_IN_TROUBLE", trouble)
    done = run("--track", "wandb", quiet=False)
    assert done.code == 0 and "Traceback" not in done.err
    sentence = f"tracking with wandb failed, the run goes on without it: {message}"
    assert done.out.count(sentence) == 1 and f"warning:  offline: {sentence}" in done.out


def test_a_tracker_that_hangs_is_not_waited_for(run: Run, stand_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STAND_IN_TROUBLE", "hangs")
    monkeypatch.setattr(tracking, "PATIENCE", 0.05)
    done = run("--track", "wandb")
    assert done.code == 0
    assert "warning:  offline: tracking with wandb did not end in time; its data may be incomplete" in done.out


def test_a_run_that_stops_with_an_error_ends_as_failed(run: Run, stand_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "wrong")
    assert run("--track", "wandb").code != 0
    assert result(stand_in)[-1] == {"kind": "finish", "code": 1}


class Slow:
    """A client that is busy until it is let go."""

    go = threading.Event()
    logged: list[int]

    def __init__(self, result: tracking.TrackedRun) -> None:
        Slow.logged = []

    def log(self, figures: Mapping[str, float], step: int) -> None:
        Slow.go.wait(30)
        Slow.logged.append(step)

    def finish(self, figures: Mapping[str, float], facts: Mapping[str, str], *, failed: bool) -> None:
        Slow.logged.append(-1)


def test_live_metrics_come_rarely_and_a_slow_tracker_gets_the_latest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "_CLIENTS", {"slow": Slow})
    now = [0.0]
    asked: list[int] = []
    guests = Tracking(Settings(track=("slow",)), tmp_path, {}, clock=lambda: now[0])
    for step in range(100):
        now[0] = float(step)
        guests.live(lambda step=step: asked.append(step) or {"step": float(step)}, step)  # type: ignore[misc, func-returns-value]
    assert asked == list(range(0, 100, 5)), "figures are computed only when they are reported"
    Slow.go.set()
    guests.finish({}, {})
    assert Slow.logged[-1] == -1, "the end is reported whatever was left out"
    assert len(Slow.logged) <= 3


def test_a_configuration_is_reported_flat_and_without_secrets() -> None:
    inner = {"b": 1, "c": None, "d": [1, "x"], "api_key_env": "K", "max_tokens": 5, "token": "t", "Authorization": "t"}
    values = {"a": inner, "e": "holds abcdef inside", "empty": "", "hf_token": "t", "keyboard": True}
    assert flat(values, Redaction(["abcdef", ""])) == {"a.b": 1, "a.d": "1, x", "a.max_tokens": 5, "keyboard": True}


def test_final_metrics_are_those_of_the_whole_run() -> None:
    metrics = {"exact match": {"value": 0.5, "n": 2}, "success rate": {"value": None, "n": 0}}
    own, verdicts = {"PG": {"value": 0.25, "n": 2}}, {"right": 1, "planned": 2}
    by_type = {"CLICK": {"n": 2}}
    summary = {"metrics": metrics, "own": own, "further": {}, "verdicts": verdicts, "by_action_type": by_type}
    assert final_metrics(summary) == {"exact_match": 0.5, "PG": 0.25, "verdicts/right": 1, "verdicts/planned": 2}


@every_row(
    ("settings", "message"),
    [
        ({"track": "wandbb"}, r"unknown tracker 'wandbb' \(did you mean 'wandb'\?\)"),
        ({"projct": "x"}, r"unknown setting 'tracking.projct' \(did you mean 'tracking.project'\?\)"),
        ({"project": 5}, "'project' is 5: expected text"),
        ({"uri": "http://me:pass@host"}, "must not hold a user, a password or a query"),
        ({"uri": "HTTPS://host/?token=pass@"}, "must not hold a user, a password or a query"),
        ({"uri": "https://host/?token=pass"}, "must not hold a user, a password or a query"),
    ],
)
def test_mistakes_give_one_sentence(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        check_tracking(parse({"model": "m", "bench": "b", "tracking": settings}).tracking)
    assert "pass@" not in str(raised.value) and "=pass" not in str(raised.value)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="pip install mlflow"):
        check_tracking(Settings(track=("mlflow",)))


def test_mlflow_really_holds_the_run(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    store = (tmp_path / "store").as_uri()
    done = run("--track", "mlflow", "--set", f"tracking.uri={store}", "--set", "tracking.project=mine")
    assert done.code == 0 and "warning" not in done.out, done.out
    client = mlflow.MlflowClient(tracking_uri=store)
    (kept,) = client.search_runs([client.get_experiment_by_name("mine").experiment_id])
    assert kept.info.status == "FINISHED" and kept.data.params["config.model"] == MODEL
    assert kept.data.metrics["final/exact_match"] == figures_of(tmp_path / "run")["metrics"]["exact match"]["value"]
    assert kept.data.tags["report"] == str(tmp_path / "run" / METRICS)
    assert not any(KEY.encode() in file.read_bytes() for file in (tmp_path / "store").rglob("*") if file.is_file())


def test_wandb_really_writes_the_run_down_offline(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    done = run("--track", "wandb")
    assert done.code == 0 and "warning" not in done.out, done.out
    (log,) = (tmp_path / "run" / "wandb").glob("offline-run-*/*.wandb")
    data = log.read_bytes()
    assert b"steps_done" in data and str(tmp_path / "run" / METRICS).encode() in data and KEY.encode() not in data


def test_trackio_really_holds_the_run(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    pytest.importorskip("trackio")
    done = run("--track", "trackio", "--set", "tracking.project=mine")
    assert done.code == 0 and "warning" not in done.out, done.out
    data = b"".join(file.read_bytes() for file in (tmp_path / "trackio").rglob("*") if file.is_file())
    assert b"steps_done" in data and b"final/exact_match" in data and KEY.encode() not in data
