"""The viewer's server: tokens, origins, addresses, figures, notes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from guieval.actions import Stop
from guieval.journal import STEPS, Journal, RunFolder
from guieval.journal.directory import TASKS
from guieval.reports.notes import NOTES, read_notes
from guieval.reports.server.app import ViewerApp
from guieval.reports.server.library import Library
from guieval.reports.server.overview import failures_section, judged_run, online_failures
from guieval.reports.trajectories.reading import read_online
from guieval.steps import StepKey
from tests.command_line import CommandLine
from tests.reports.opened.test_opened_run import drawn
from tests.reports.scripted_runs import edited
from tests.reports.trajectories.made_online import online_run
from tests.reports.viewer.made_run import at, end, failed, record, task, write_run
from tests.reports.viewer.test_writing import value_in
from tests.rows import every_row

BASE = "http://127.0.0.1:8770"


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    data = drawn(tmp_path / "data", "e1/0.png", "../secret.png")
    steps = [task(step=number) for number in range(3)]
    answers = {"a": (at(500, 500), at(0, 0)), "b": (at(500, 500), at(500, 500))}
    for name, (first, second) in answers.items():
        records = [record(steps[0], first), record(steps[1], second), failed(steps[2], "the server is gone")]
        write_run(tmp_path / "runs" / name, records, data=data)
    return tmp_path / "runs"


@pytest.fixture
def app(runs: Path) -> ViewerApp:
    return ViewerApp(Library([runs], data=runs.parent / "data"))


def ask(
    app: ViewerApp,
    path: str,
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    token: bool = True,
    body: Any = None,
) -> httpx.Response:
    """One request as a browser with the cookie sends it."""

    async def sent() -> httpx.Response:
        cookies = {"guieval": app.token} if token else {}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=BASE, cookies=cookies) as client:
            return await client.request(method, path, headers=headers, json=body)

    return asyncio.run(sent())


def ids(app: ViewerApp) -> dict[str, str]:
    return {row["name"]: row["id"] for row in ask(app, "/data/runs").json()}


def part(app: ViewerApp, name: str) -> Any:
    answer = ask(app, name)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_nothing_is_answered_without_the_token(app: ViewerApp, runs: Path) -> None:
    for path in ("/", "/app.js", "/data/runs", "/nothing"):
        answer = ask(app, path, token=False)
        assert answer.status_code == 403 and "guieval view" in answer.text
        assert ask(app, path, token=False, headers={"cookie": "guieval=guess"}).status_code == 403
    assert ask(app, "/?token=guess", token=False).status_code == 403
    assert ViewerApp(Library([runs])).token != app.token, "each start has its own"


def test_the_address_with_the_token_sets_the_cookie_and_leads_away_from_it(app: ViewerApp) -> None:
    answer = ask(app, f"{BASE}//evil.example/%0d%0aset-cookie:x/?token={app.token}", token=False)
    assert answer.status_code == 303 and answer.headers["location"] == "/evil.example/%0D%0Aset-cookie%3Ax/"
    cookie = answer.headers["set-cookie"]
    assert f"guieval={app.token}" in cookie and "HttpOnly" in cookie and "SameSite=Lax" in cookie
    assert ask(app, "/", token=False, headers={"cookie": cookie.split(";")[0]}).status_code == 200
    code = app.once()
    assert [ask(app, f"/?token={code}", token=False).status_code for _ in range(2)] == [303, 403]


def test_a_name_that_was_bound_to_this_machine_is_refused(app: ViewerApp) -> None:
    bound = dict.fromkeys(("evil.example", "127.0.0.1.evil.example:8770", "0.0.0.0:8770", "127.0.0.1:8770@evil", ""), 403)
    hosts = bound | dict.fromkeys(("127.0.0.1:9999", "localhost:8770", "localhost", "[::1]:8770"), 200)
    assert {host: ask(app, "/", headers={"host": host}).status_code for host in hosts} == hosts


def test_pages_of_other_origins_get_nothing(app: ViewerApp) -> None:
    """A page on another port of this machine is sent the cookie, so the cookie alone is not enough."""
    for site in ("cross-site", "same-site"):
        assert ask(app, "/data/runs", headers={"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}).status_code == 403
        assert ask(app, "/", headers={"sec-fetch-site": site, "sec-fetch-mode": "navigate"}).status_code == 200  # a link
    assert ask(app, "/data/runs", headers={"sec-fetch-site": "same-origin"}).status_code == 200
    run = ids(app)["a"]
    for origin in ({}, {"origin": "http://127.0.0.1:9000"}, {"origin": "null"}):
        assert ask(app, f"/runs/{run}/note", method="POST", headers=origin, body={"text": "x"}).status_code == 403
    assert ask(app, "/", method="DELETE").status_code == 405


def test_every_answer_forbids_what_the_pages_do_not_need(app: ViewerApp) -> None:
    run = ids(app)["a"]
    for path in ("/", "/nothing", f"/runs/{run}/", f"/runs/{run}/steps/", f"/runs/{run}/steps/images/{0:016x}"):
        headers = ask(app, path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff" and headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["referrer-policy"] == "no-referrer"


def test_a_step_that_failed_in_every_start_is_listed_once(runs: Path) -> None:
    """And one that was answered later, or before, not at all."""
    folder = runs / "b"
    lines = (folder / STEPS).read_bytes().splitlines(keepends=True)
    (failed,) = (line for line in lines if b"the server is gone" in line)
    (folder / STEPS).write_bytes(b"".join([*lines, failed, failed]))
    assert [failure["count"] for failure in failures_section(judged_run(folder).failures, folder)["failures"]] == [1]
    record = next(record for record in RunFolder(folder).steps if record.finished)
    late = record.model_copy(update={"samples": next(each for each in RunFolder(folder).steps if not each.finished).samples})
    with Journal(folder) as journal:
        journal.append(late)  # an answer is not replaced by a failure
    assert judged_run(folder).failures.counts.total() == 1


def test_kinds_of_errors_lead_to_their_steps(app: ViewerApp, runs: Path) -> None:
    """Each filter of the step viewer lists as many steps as the row says."""
    steps = [task(step=number, length=4) for number in range(4)]
    answers = [record(steps[0], Stop()), record(steps[1], at(0, 0)), record(steps[2], None), record(steps[3], Stop())]
    write_run(runs / "c", answers)
    run = ids(app)["c"]
    tables = part(app, f"/runs/{run}/data/breakdowns")["tables"]
    (errors,) = [table for table in tables if table["title"].startswith("What goes wrong")]
    found = {row[0]["text"]: (row[3]["text"], link) for row, link in zip(errors["rows"], errors["links"], strict=True)}
    unparseable = ("1", "steps/#?verdict=unparseable")
    assert found == {"type": ("2", "steps/#?kind=wrong+type"), "far": ("1", None), "unparseable": unparseable}
    index = value_in(ask(app, f"/runs/{run}/steps/data/index.js").text)
    assert index["ends"] == [["2132"]]  # WRONG_TYPE, MISS, UNPARSEABLE, WRONG_TYPE


def test_stored_figures_are_shown_at_once_while_they_are_those_of_the_journal(app: ViewerApp, runs: Path) -> None:
    head, section = (f"/runs/{ids(app)['a']}/data/{name}" for name in ("head", "metrics"))
    assert part(app, head)["stored"] is None
    end(runs / "a")
    stored, figures = part(app, head)["stored"], part(app, section)
    assert stored["cards"] == figures["cards"] and any(each["ends"] for each in figures["cards"])
    assert (stored["verdicts"], stored["planned"]) == (figures["verdicts"], figures["planned"])
    assert "incomplete: 1 of 3 steps" in stored["notes"][0]
    write_run(runs / "a", [record(task(step=2), at(500, 500))])
    assert part(app, head)["stored"] is None


def test_who_was_right_where(app: ViewerApp, runs: Path) -> None:
    names = ids(app)
    both = f"/runs/{names['a']},{names['b']}"
    who = part(app, f"{both}/data/patterns")["tables"][0]
    found = {row[0]["text"]: (row[1]["text"], link) for row, link in zip(who["rows"], who["links"], strict=True)}
    assert found == {"A, B": ("1", "steps/#?flipped=all"), "B": ("1", "steps/#?flipped=onlyB")}
    difference = part(app, f"{both}/data/against-1")
    assert "1 are exact in A alone" not in str(difference) and "1 in B alone" in str(difference)
    index = value_in(ask(app, f"{both}/steps/data/index.js").text)
    assert [column[0] for column in index["ends"]] == ["015", "005"]
    write_run(runs / "b", [record(task(step=1), at(0, 0))])  # the later record of a step counts
    assert "0 in B alone" in str(part(app, f"{both}/data/against-1"))
    assert ask(app, f"{both}/data/against-2").status_code == ask(app, f"{both}/data/against-0").status_code == 404


def test_steps_come_in_parts_and_screenshots_when_they_are_asked_for(app: ViewerApp, runs: Path) -> None:
    steps = f"/runs/{ids(app)['a']}/steps"
    rows = value_in(ask(app, f"{steps}/data/steps-00000.js").text)["rows"]
    assert [row["image"] for row in rows] == [f"{0:016x}", "", ""] and "does not exist" in rows[1]["why"]
    assert str(value_in(ask(app, f"{steps}/data/text-00000.js").text)[0]).endswith("a reply")
    image = ask(app, f"{steps}/images/{0:016x}")
    assert image.headers["content-type"] == "image/png" and image.content == (runs.parent / "data/e1/0.png").read_bytes()
    thumbnail = ask(app, f"{steps}/thumbs/{0:016x}")
    assert thumbnail.headers["content-type"] == "image/jpeg" and len(thumbnail.content) < len(image.content)


IMAGES = ("secret.png", "..%2F..%2Fsecret.png", "0000000000000003")
FILES = ("data/steps-00001.js", "data/steps--0001.js", "data/manifest.json", "../../../manifest.json")
STEPS_OF = (*FILES, *(f"images/{name}" for name in IMAGES))
OF_RUN = ("", ",{run}/", "/data/nothing", "/data/online", "/trajectories/", *(f"/steps/{path}" for path in STEPS_OF))


@every_row("path", ["nothing/", "..%2F..%2Fetc%2Fpasswd/", *(f"{{run}}{path}" for path in OF_RUN)])
def test_there_are_no_other_addresses(app: ViewerApp, path: str) -> None:
    assert ask(app, f"/runs/{path.format(run=ids(app)['a'])}").status_code == 404


def test_notes_are_saved_beside_the_run_and_nothing_else_is_written(app: ViewerApp, runs: Path) -> None:
    def state() -> dict[str, tuple[int, bytes]]:
        return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in runs.rglob("*") if path.is_file()}

    before = state()
    run = ids(app)["a"]
    for path in ("", "steps/", "steps/data/index.js", "steps/data/steps-00000.js", "data/metrics", "data/breakdowns"):
        assert ask(app, f"/runs/{run}/{path}").status_code == 200
    assert state() == before
    origin = {"origin": BASE}

    def write(path: str, **note: Any) -> int:
        return ask(app, f"/runs/{run}/{path}", method="POST", headers=origin, body=note).status_code

    assert write("steps/note", run=0, step=["demo", "", "e1", 1], text="<b>look</b>") == 200
    assert write("note", tags=["paper"]) == 200 and write("note", text="a run") == 200
    assert write("steps/note", run=0, step=["demo", "", "e1", 7], text="x") == 400
    assert write("steps/note", run=1, step=["demo", "", "e1", 1], text="x") == 400
    assert write("note", tags=["two words"]) == 400 and write("note", text="x" * 10_001) == 400
    assert write("note", text="x" * 300_000) == 413 and write("note", file="/etc/passwd") == 400
    notes = read_notes(runs / "a")
    assert notes.steps == {StepKey("demo", "", "e1", 1): "<b>look</b>"} and (notes.text, notes.tags) == ("a run", ["paper"])
    assert {path for path in state() if path not in before} == {str(runs / "a" / NOTES)}
    assert value_in(ask(app, f"/runs/{run}/steps/data/index.js").text)["noted"] == [{"1": "<b>look</b>"}]
    (row,) = [each for each in part(app, "/data/runs") if each["name"] == "a"]
    assert (row["tags"], row["note"], row["noted"]) == (["paper"], "a run", 1)


def test_a_run_that_goes_on_is_read_again(app: ViewerApp, runs: Path) -> None:
    run = ids(app)["b"]
    assert part(app, f"/runs/{run}/data/metrics")["verdicts"][0]["count"] == 2
    write_run(runs / "b", [record(task(step=2), at(500, 500))])
    verdicts = [{"name": "right", "count": 3, "link": "steps/#?verdict=right"}]
    assert part(app, f"/runs/{run}/data/metrics")["verdicts"] == verdicts
    write_run(runs / "c", [record(task(length=1), Stop())])
    assert set(ids(app)) == {"a", "b", "c"}


def test_no_program_or_adapter_that_only_a_folder_names_is_used(app: ViewerApp, runs: Path) -> None:
    marker = runs.parent / "ran"
    evil = runs / "a" / "evil.py"
    evil.write_text(f"open({str(marker)!r}, 'w')\n")
    with edited(runs / "a" / "manifest.json") as manifest:
        manifest["model"]["adapter"] = str(evil)
        manifest["config"] = {"adapter": str(evil), "bench_options": {"path": str(evil)}, "bench": str(evil)}
    run = ids(app)["a"]
    for path in ("data/head", "data/metrics", "data/failures", "steps/", "steps/data/steps-00000.js"):
        ask(app, f"/runs/{run}/{path}")
    assert not marker.exists()


def test_a_broken_run_is_listed_with_its_problem(app: ViewerApp, runs: Path) -> None:
    (runs / "a" / "manifest.json").write_text("{")
    broken, fine = sorted(part(app, "/data/runs"), key=lambda row: str(row["state"]))
    assert broken["state"] == "broken" and broken["problem"] and fine["name"] == "b"
    assert ask(app, f"/runs/{broken['id']}/").status_code == 404


def test_a_mistake_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guieval: CommandLine) -> None:
    monkeypatch.chdir(tmp_path)
    assert "there is no folder 'nowhere'" in guieval.sentence("view", "nowhere")
    assert "there is no run in '.'" in guieval.sentence("view", ".")
    assert "expected 0 to 65535" in guieval.sentence("view", "--port", "70000")


def test_a_task_without_an_outcome_leads_to_its_trajectory(tmp_path: Path) -> None:
    """The emulator of the second task was gone."""
    run = online_run(tmp_path, limit=2)
    with edited(run / TASKS) as lines:
        lines[1]["samples"] = [{"error": {"stage": "environment", "message": "no emulator"}}]
    failures = failures_section(online_failures(read_online(run)), run)["failures"]
    (found,) = [each for each in failures if "no emulator" in each["reason"]]
    assert found["count"] == 1 and found["steps"][0]["link"].startswith("trajectories/#")
