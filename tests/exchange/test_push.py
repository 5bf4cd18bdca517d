"""``guieval data push`` to a hub on this machine, with the real client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from guieval.errors import EngineError, UsageError
from guieval.exchange.exported import exported
from guieval.exchange.parcel import check_secrets, pack, write_card
from guieval.journal import MANIFEST, RunFolder, journal_file
from guieval.models import Request
from guieval.online.trajectory import TRAJECTORIES, read_trajectories
from guieval.reports.opened import OpenedRun, open_run
from tests.data.hub.local_hub import LocalHub, serving
from tests.json_values import read_json
from tests.reports.scripted_runs import edited, made_run
from tests.reports.trajectories.made_online import online_run
from tests.scripted import ACTIONS, ScriptedEngine, make_episode, reply_with, run_scripted

REPOSITORY = "me/results"
TOKEN = "hf_" + "a" * 34


def push(hub: str, *arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("huggingface_hub")
    names = {name: value for name, value in os.environ.items() if not name.startswith("HF_") and "proxy" not in name.lower()}
    own = {"HF_ENDPOINT": hub, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1", "HF_TOKEN": TOKEN, "COLUMNS": "200"}
    command = [sys.executable, "-m", "guieval", "data", "push", *map(str, arguments), "--repo", REPOSITORY]
    return subprocess.run(command, capture_output=True, text=True, env={**names, **own, **variables})


def private(manifest: dict[str, Any]) -> None:
    manifest["config"]["data"]["folder"] = "/home/ann/secret-project"
    manifest["config"]["server"].update(base_urls=["http://10.1.2.3:8000/v1"], proxy="http://p:1")
    manifest["platform"] = "ann's laptop"
    servers = [{"url": "http://10.1.2.3:8000/v1", "root": "/home/ann/m", "models": ["m"]}]
    manifest["served"] = [{"asked": "m", "named": True, "servers": servers}]


def test_nothing_is_sent_unless_it_is_asked_for(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", {("e00", 1)}, rewrite=private)
    with serving(LocalHub(REPOSITORY, {})) as hub:
        shown = push(hub.url, run)
        assert shown.returncode == 0 and "Nothing was sent; add --yes to upload." in shown.stdout
        assert hub.created is None and not hub.uploads
        done = push(hub.url, run, "--yes")
        assert done.returncode == 0, done.stderr
        assert f"to {hub.url}/datasets/{REPOSITORY}/commit/" in done.stdout
        assert hub.created is not None and (hub.created.get("private") or hub.created["visibility"] == "private")
        assert {name.split()[-1] for name in shown.stdout.splitlines()[:-1]} == set(hub.uploads)
        everything = b"".join(hub.uploads.values())
    for word in (b"/home", b"laptop", b"10.1.2.3", b"http://p:1", TOKEN.encode(), b"PNG"):
        assert word not in everything, word
    assert "exact match" in hub.uploads["README.md"].decode()


def test_a_published_run_gives_the_same_figures(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", {("e00", 1)}, rewrite=private)
    pack(exported(run), tmp_path / "out")
    (published,) = (tmp_path / "out" / "runs").iterdir()
    first, second = open_run(run), open_run(published)
    assert isinstance(first, OpenedRun) and isinstance(second, OpenedRun)
    assert dict(first.metrics()) == dict(second.metrics())


PLACES = ("gpu7", "internal.lab", ":8000", "/home", "/ann", "secret", "10.1.2.3")
FAILURE = (
    "http://gpu7.internal.lab:8000/v1/chat/completions could not be reached (10.1.2.3:8000 refused it); the file "
    "'/home/ann/secret project/x.png' and /home/ann/secret-project/y.png, see ~/secret/log or gpu7"
)


@pytest.mark.parametrize("compact", [False, True])
def test_the_error_of_a_failed_step_names_no_server_and_no_path(compact: bool, tmp_path: Path) -> None:
    def policy(request: Request) -> str:
        if request.task.step_index == 2:
            raise EngineError(FAILURE)
        return reply_with(request.task.action)

    run = tmp_path / "run"
    run_scripted(run, [make_episode("e00", ACTIONS)], ScriptedEngine(policy), compact=compact)
    with edited(run / MANIFEST) as manifest:
        manifest["config"] = {"base_urls": ["http://gpu7:8000/v1"], "data": "/home/ann/secret-project"}  # of an earlier version
        manifest["changes"] = [{"when": "2026-01-02", "what": ["data (/home/ann/a, then ../secret/b)"]}]
    assert any(FAILURE in str(record.sample.error) for record in RunFolder(run).records)

    public = pack(exported(run), tmp_path / "out")
    write_card([public], tmp_path / "out")
    records = RunFolder(public.run.directory).records
    files = [path.read_text() for path in (tmp_path / "out").rglob("*.*") if path.suffix != ".packed"]
    for text in [*map(repr, records), *files]:
        assert not [place for place in PLACES if place in text], text
    assert not records.damaged and len(list(records)) == len(list(RunFolder(run).records))
    (failed,) = (record.sample for record in records if not record.sample.answered)
    shortened = "[...] could not be reached ([...] refused it); the file '[...]' and [...], see [...] or [...]"
    assert failed.error is not None and failed.error.message == failed.outcome.reason == shortened
    opened, before = public.run, open_run(run)
    assert isinstance(opened, OpenedRun) and isinstance(before, OpenedRun)
    assert dict(opened.metrics()) == dict(before.metrics())


def test_only_what_is_private_is_changed(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", {("e00", 1)})
    public = pack(exported(run), tmp_path / "out")
    assert journal_file(public.run.directory).read_bytes() == journal_file(run).read_bytes()


def test_the_error_of_an_environment_names_no_server(tmp_path: Path) -> None:
    run = online_run(tmp_path / "made")
    with edited(run / TRAJECTORIES) as lines:
        lines[0]["error"] = {"stage": "environment", "message": FAILURE}
    public = pack(exported(run), tmp_path / "out")
    for path in (path for path in (tmp_path / "out").rglob("*") if path.is_file()):
        assert not [place for place in ("internal.lab", "/home/ann", str(tmp_path)) if place in path.read_text()], path
    assert sum(step.error is not None for step in read_trajectories(public.run.directory)) >= 1
    replies, before = ([step.raw_response for step in read_trajectories(of)] for of in (public.run.directory, run))
    assert replies == before


@pytest.mark.parametrize("images", [False, True])
def test_screenshots_are_published_when_asked(tmp_path: Path, images: bool) -> None:
    pack(exported(online_run(tmp_path / "made")), tmp_path / "out", images=images)
    assert bool(list((tmp_path / "out").rglob("*.png"))) == images
    assert list((tmp_path / "out" / "trajectories").rglob("*.trajectory.json"))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("key: sk-" + "x" * 40, "'a/b.txt', line 2, holds what looks like a key: nothing was uploaded"),
        ("the word pomegranate", "line 2, holds the value of the variable MY_API_KEY"),
        ("-----BEGIN RSA PRIVATE KEY-----", "what looks like a key"),
    ],
)
def test_a_key_is_refused(line: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "pomegranate")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.txt").write_text(f"harmless\n{line}\n")
    with pytest.raises(UsageError, match=words):
        check_secrets(tmp_path)


def test_a_key_in_a_reply_stops_the_upload(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", rewrite=lambda manifest: manifest["model"].update(notes=f"used {TOKEN}"))
    assert TOKEN in json.dumps(read_json((run / MANIFEST).read_text()))
    with serving(LocalHub(REPOSITORY, {})) as hub:
        refused = push(hub.url, run, "--yes")
        assert refused.returncode == 2 and "holds the value of the variable HF_TOKEN" in refused.stderr
        assert hub.created is None and not hub.uploads


def test_a_refusal_of_the_hub_is_one_sentence(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run")
    with serving(LocalHub(REPOSITORY, {}, error=(403, "Forbidden"))) as hub:
        refused = push(hub.url, run, "--yes")
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1
    assert "did not take the upload (set HF_TOKEN to an account that may write)" in refused.stderr
