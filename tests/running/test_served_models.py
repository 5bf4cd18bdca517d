"""Who answers a run: another model than the named one is marked, another set-up is announced, each server has its figures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from guieval.actions import Wait
from guieval.journal import METRICS, RunFolder
from guieval.journal.caveats import model_label, same_checkpoint, unconfirmed_models
from guieval.journal.run_files import RecordedConfig, RecordedModel
from guieval.journal.setup import EngineFacts, Setup
from guieval.playground.mock_server import MockServer, MockSettings
from tests.command_line import CommandLine
from tests.made_runs import record, step, write_run
from tests.rows import every_row

MODEL = "ui-tars-7b"
OTHER = "qwen2.5-vl-7b"
SMALL = ("--set", "bench_options.episodes=3", "--set", "bench_options.seed=4")
MARK = f"served: {OTHER}"


@contextmanager
def server(*served: str) -> Iterator[MockServer]:
    with MockServer(MockSettings(model=MODEL, policy="centre", served_models=served)) as running:
        yield running


def command(tmp_path: Path, running: MockServer, *more: str, out: str = "run") -> list[str | Path]:
    where: list[str | Path] = ["--data", tmp_path / "demo", "--base-url", running.base_url, "--out", tmp_path / out]
    return ["run", "--model", MODEL, "--bench", "demo", *where, *SMALL, *more]


def unwrapped(text: str) -> str:
    return " ".join(text.split())


def test_another_model_is_announced_and_marks_every_table(tmp_path: Path, guieval: CommandLine) -> None:
    run = tmp_path / "run"
    with server(OTHER) as running:
        done = guieval(*command(tmp_path, running))
        url = running.base_url
    assert done.code == 0, done
    lines = done.err.splitlines()
    assert "warning:" in lines[0] and repr(OTHER) in lines[0] and repr(MODEL) in lines[0], lines
    assert f"--served-model {OTHER}" in lines[0]
    assert f"served:   {OTHER} at {url}" in done.out and MARK in unwrapped(done.out)
    (entry,) = RunFolder(run).manifest.to_json()["setups"]
    assert entry["model"] == OTHER and not entry["named"] and entry["engines"][0]["models"] == [OTHER]
    assert json.loads((run / METRICS).read_text())["setups"] == [entry]
    for name, *further in (("score",), ("score", "--protocol", "all"), ("compare", run), ("leaderboard",), ("report",)):
        shown = guieval(name, run, *further)
        message = unwrapped(shown.out + shown.err)
        assert f"--served-model {OTHER}" in message, (name, further, shown)
        if name != "report" and "all" not in further:
            assert MARK in message, (name, further, shown)
    index = (run / "report" / "data" / "index.js").read_text()
    assert MARK in index and f"{OTHER} at {url}" in index
    assert MARK in (run / "report" / "index.html").read_text()


def test_the_user_confirms_it_at_once_or_later(tmp_path: Path, guieval: CommandLine) -> None:
    with server("evil\x1b[2J\u202ename") as running:  # its escapes do not reach the terminal
        done = guieval(*command(tmp_path, running, out="evil"))
    assert "evil [2J name" in done.err and not {"\x1b", "\u202e"} & set(done.err + done.out)
    with server(OTHER) as running:
        first = guieval(*command(tmp_path, running, "--served-model", OTHER, out="named"))
        guieval(*command(tmp_path, running))
        assert MARK in guieval("score", tmp_path / "run").out
        replay = ("run", "--model", MODEL, "--bench", "demo", "--data", tmp_path / "demo", *SMALL, "--replay", tmp_path / "run")
        replayed = guieval(*replay, "--out", tmp_path / "replayed")
        assert replayed.code == 0 and MARK in unwrapped(replayed.out), "a replay is marked as the run that it replays"
        again = guieval("run", "--resume", tmp_path / "run", "--served-model", OTHER)
    assert "does not match" not in first.err + first.out and MARK not in first.out
    (entry,) = RunFolder(tmp_path / "named").manifest.to_json()["setups"]
    assert entry["named"] and entry["engines"][0]["models"] == [OTHER]
    assert again.code == 0 and MARK not in again.out
    scored = guieval("score", tmp_path / "run")
    assert MARK not in scored.out and "--served-model" not in scored.err


def test_a_resume_with_another_server_is_refused_or_marked(tmp_path: Path, guieval: CommandLine) -> None:
    run = tmp_path / "run"
    with server(MODEL) as running:
        guieval(*command(tmp_path, running))
    assert [entry["model"] for entry in RunFolder(run).manifest.to_json()["setups"]] == [MODEL]
    journal = run / "steps.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-2]))
    with server(OTHER) as running:
        resume = ("run", "--resume", run, "--base-url", running.base_url)
        refused = guieval(*resume)
        assert refused.code == 2 and f"was '{MODEL}', now '{OTHER}'" in refused.err and "--accept-changes" in refused.err
        assert [entry["model"] for entry in RunFolder(run).manifest.to_json()["setups"]] == [MODEL]
        done = guieval(*resume, "--accept-changes")
    assert "warning:" in done.err and MARK in unwrapped(done.out) and "; mixed)" in unwrapped(done.out)
    assert [entry["model"] for entry in RunFolder(run).manifest.to_json()["setups"]] == [MODEL, OTHER]


@every_row("name", ["UI-TARS-7B", "bytedance-research/UI-TARS-7B-SFT", "/models/ui-tars-7b-sft/", "UI-TARS-7B-SFT"])
def test_the_checkpoint_under_its_own_names_is_not_marked(tmp_path: Path, guieval: CommandLine, name: str) -> None:
    with server(name) as running:
        done = guieval(*command(tmp_path, running))
    assert done.code == 0 and "does not match" not in done.err and "(served:" not in done.out
    assert [entry["model"] for entry in RunFolder(tmp_path / "run").manifest.to_json()["setups"]] == [name]


def test_what_makes_two_names_one_checkpoint(tmp_path: Path) -> None:
    cached = "/hub/models--Qwen--Qwen2.5-VL-7B-Instruct/snapshots/0123abcd"
    assert same_checkpoint(cached, "qwen/qwen2.5-vl-7b-instruct")
    assert not same_checkpoint("Qwen/Qwen2.5-VL-7B-Instruct", "Qwen/Qwen2.5-VL-7B-Instruct-AWQ")
    assert not same_checkpoint("", "/")
    made = RunFolder(write_run(tmp_path / "made", [record(step(Wait()), Wait())])).manifest
    model, config = RecordedModel(name="m", hf_id="Org/Model"), RecordedConfig.model_validate({"model": "m"})
    manifest = made.model_copy(update={"model": model, "config": config})
    listed = EngineFacts(url="http://a", models=("default",))
    unknown = Setup(model="default", engines=(listed,))
    alias = Setup(model="default", engines=(listed.model_copy(update={"root": "/weights/model"}),))
    assert unconfirmed_models(manifest.model_copy(update={"setups": [alias]})) == []
    elsewhere = Setup(model="default", engines=(listed.model_copy(update={"url": "http://b"}),))
    assert unknown.is_like(elsewhere) and not unknown.is_like(alias)
    assert model_label(manifest.model_copy(update={"setups": [unknown]})) == "m (served: default)"


def test_another_set_up_is_announced_recorded_and_marked(tmp_path: Path, guieval: CommandLine) -> None:
    def runs(*more: str | Path, **said: str | None) -> str:
        with MockServer(MockSettings(model=MODEL, policy="centre", served_models=(MODEL,), **said)) as running:
            resumed = ("run", "--resume", tmp_path / "run", "--base-url", running.base_url)
            done = guieval(*(command(tmp_path, running, *map(str, more), out="silent") if more else resumed))
        assert done.code == 0, done
        return unwrapped(done.out + done.err)

    with MockServer(MockSettings(model=MODEL, policy="centre", served_models=(MODEL,), fingerprint="fp-1")) as first:
        shown = unwrapped(guieval(*command(tmp_path, first, "--concurrency", "1")).out)
    images = "images png (original bytes, base64)"
    assert f"set-up: guieval's mock server 1.0, {images}, request " in shown and "system fingerprint fp-1" in shown
    assert "unknown: dtype, quantization, attention, pixels, chat template" in shown
    journal = tmp_path / "run" / "steps.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-2]))
    again = runs(engine_version="1.1", fingerprint="fp-2")
    for change in ("version (1.0, now 1.1)", "system fingerprint (fp-1, now fp-2)"):
        assert f"the set-up differs from that of the session before in {change}" in again
    old, new = RunFolder(tmp_path / "run").manifest.setups
    assert [each.engines[0].version for each in (old, new)] == ["1.0", "1.1"] and old.digest != new.digest
    assert old.request is not None and new.request is not None and old.request.id != new.request.id
    silent = runs("--concurrency", "1", engine_version=None)
    assert "guieval's mock server, " in silent and "unknown: version, dtype" in silent
    (other,) = RunFolder(tmp_path / "silent").manifest.setups
    assert other.request == old.request, "the first request of a run is the same whoever answers"
    compared = unwrapped(guieval("compare", tmp_path / "run", tmp_path / "silent").out)
    assert "set-up of B: guieval's mock server, " in compared and "differ in version" not in compared
    assert f"{MODEL} (mixed)" in compared and "different set-ups: version (1.0, then 1.1)" in compared
    listed = {each["name"]: each for each in json.loads(guieval("runs", tmp_path, "--json").out)["runs"]}
    assert listed["run"]["engine"] == "guieval's mock server 1.0 and guieval's mock server 1.1"
    board = unwrapped(guieval("leaderboard", tmp_path / "run", tmp_path / "silent").out)
    assert f"set-up of {MODEL} (mixed): guieval's mock server 1.0 and" in board


@pytest.mark.parametrize("concurrency", ["8", "auto"])
def test_every_server_has_its_figures(tmp_path: Path, guieval: CommandLine, concurrency: str) -> None:
    settings = MockSettings(model=MODEL, policy="centre", latency=0.01, served_models=(MODEL,))
    failing = settings.model_copy(update={"error_rate": 0.2, "seed": 2})
    with ExitStack() as stack:
        servers = [stack.enter_context(MockServer(each)) for each in (settings, failing)]
        urls = [server.base_url for server in servers]
        more = ("--base-url", urls[1], "--concurrency", concurrency, "--set", "bench_options.episodes=8", "--quiet")
        done = guieval(*command(tmp_path, servers[0], *more))
        served = [server.stats()["served"] for server in servers]
        failed = [server.stats()["failed"] for server in servers]
    assert done.code == 0, done
    steps = len(list(RunFolder(tmp_path / "run").records))
    figures = json.loads((tmp_path / "run" / METRICS).read_text())["servers"]
    assert [figure["name"] for figure in figures] == urls
    assert [figure["answered"] for figure in figures] == served and sum(served) == steps
    assert [figure["failed"] for figure in figures] == failed and failed[1] > 0
    assert sum(figure["retries"] for figure in figures) == sum(failed)
    assert [figure["prompt_tokens"] for figure in figures] == [3000 * count for count in served]
    assert all(0 < figure["busy"] <= 1 and 0 < figure["seconds_mean"] < 10 for figure in figures)
    for url, figure in zip(urls, figures, strict=True):
        line = f"server:   offline: {url}: {figure['requests']:,} requests, {figure['answered']:,} answered"
        assert line in done.out


def test_one_server_is_not_distinguished(tmp_path: Path, guieval: CommandLine) -> None:
    with server(MODEL) as running:
        done = guieval(*command(tmp_path, running, "--quiet"))
        before = (tmp_path / "run" / METRICS).read_text()
        assert guieval("run", "--resume", tmp_path / "run", "--quiet").code == 0
    assert done.code == 0 and "server:" not in done.out
    (figure,) = json.loads((tmp_path / "run" / METRICS).read_text())["servers"]
    assert figure["answered"] == len(list(RunFolder(tmp_path / "run").records))
    assert (tmp_path / "run" / METRICS).read_text() == before, "a resume that asked nothing leaves the last session's figures"
