"""What a run shows while it goes: rates and the time left, the picture, plain lines, a real terminal, and bars of commands."""

from __future__ import annotations

import errno
import io
import re
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from guieval.actions import Stop
from guieval.engines import EndpointStats
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import benchmarks
from guieval.running.progress import dashboard as module
from guieval.running.progress.bar import progress_bar
from guieval.running.progress.counts import Load, RunProgress
from guieval.running.progress.dashboard import Dashboard, picture, plain_line
from guieval.running.progress.view import ProgressView, ProgressWatch, Rate, clock, part_done, spoken
from guieval.running.resolve import resolve
from guieval.running.runner.runner import Runner
from guieval.settings import RunConfig
from guieval.steps import Sample, StepError, StepOutcome, StepRecord, Usage, Verdict
from tests.command_line import CommandLine
from tests.outage import outage
from tests.reports.scripted_runs import made_run
from tests.reports.trajectories.made_online import online_run
from tests.rows import every_row
from tests.running.scripted_runs import scripted_runner
from tests.scripted import ACTIONS, ScriptedEngine, make_episode, reply_with
from tests.terminal import COLOUR, drawn_lines, interrupted_on_terminal, on_terminal
from tests.waiting import until

MODEL = "ui-tars-7b"
TASK = make_episode("e", [Stop()]).steps[0]


def record(verdict: Verdict, tokens: tuple[int, int] | None = None) -> StepRecord:
    outcome = StepOutcome(verdict=verdict, exact_match=verdict == "right", type_match=verdict == "right")
    usage = None if tokens is None else Usage(prompt_tokens=tokens[0], completion_tokens=tokens[1])
    failed = verdict == "infrastructure_failure"
    error = StepError(stage="generate", message="the server is gone") if failed else None
    sample = Sample(raw_response=None if failed else "", outcome=outcome, usage=usage, error=error)
    return StepRecord(task=TASK, samples=(sample,))


def rated(began: float, samples: Iterable[tuple[float, int]]) -> Rate:
    rate = Rate(began)
    for moment, count in samples:
        rate.sample(moment, count)
    return rate


def test_the_recent_rate_is_over_the_last_minute_and_the_mean_over_all() -> None:
    # one a second for a minute, then three a second
    rate = rated(100.0, ((100.0 + second, second if second <= 60 else 60 + 3 * (second - 60)) for second in range(121)))
    assert rate.recent == pytest.approx(3.0) and rate.mean == pytest.approx((60 + 180) / 120)
    assert rate.seconds_left(90, slots=4) == pytest.approx(30.0)
    assert (rated(5.0, [(5.0, 3)]).recent, rated(5.0, [(5.0, 3)]).mean) == (None, None), "without time there is no rate"
    assert rated(0.0, [(10.0, 100), (50.0, 100)]).quiet == 40.0


SILENT = [(10.0, 100), (50.0, 100), (70.0, 100)]


@every_row(
    ("samples", "left", "slots", "seconds"),
    [
        *[([(10.0, 9)], 100, 1, None), ([(10.0, 10)], 100, 1, 100.0)],  # no guess before every slot was answered twice
        *[([(10.0, 127)], 100, 64, None), ([(10.0, 128)], 100, 64, 100 / 12.8)],
        *[(SILENT[:2], 100, 1, 50.0), (SILENT, 100, 1, None), (SILENT, 0, 1, 0.0)],
        ([(100.0, 100), (160.0, 100), (161.0, 102), (165.0, 105)], 105, 1, 165.0),  # a few recent answers are no rate
    ],
)
def test_the_time_left(samples: list[tuple[float, int]], left: int, slots: int, seconds: float | None) -> None:
    found = rated(0.0, samples).seconds_left(left, slots)
    assert found == (None if seconds is None else pytest.approx(seconds))


@every_row(
    ("seconds", "sentence"),
    [(0.2, "1 s"), (7.4, "7 s"), (43, "45 s"), (61, "1 min"), (3000, "50 min"), (3601, "1 h"), (12100, "3 h 20 min")],
)
def test_a_time_is_shown_no_more_exactly_than_it_is_known(seconds: float, sentence: str) -> None:
    assert spoken(seconds) == sentence
    assert (clock(65.9), clock(3725)) == ("1:05", "1:02:05")


def count(progress: RunProgress, counted: StepRecord) -> None:
    """As a runner does: the tokens with the response, the rest with the record."""
    progress.tokens.add(counted)
    progress.count(counted)


def progress_of(*verdicts: Verdict, total: int = 20, **more: object) -> RunProgress:
    progress = RunProgress(total, **more)  # type: ignore[arg-type]
    for verdict in verdicts:
        count(progress, record(verdict, tokens=None if verdict == "infrastructure_failure" else (3000, 60)))
    return progress


def view_of(progress: RunProgress, seconds: float = 10.0) -> ProgressView:
    watch = ProgressWatch("a model on demo, offline", cost=lambda tokens: f"{tokens.prompt / 1e6:.3f} EUR [of many]")
    watch.look(RunProgress(progress.total), 0.0)
    return watch.look(progress, seconds)


def drawn(view: ProgressView, width: int, height: int = 40) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, height=height, force_terminal=True, no_color=True).print(picture(view))
    return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in out.getvalue().splitlines()]


ONE = EndpointStats("http://one:8000/v1", in_flight=5, answered=10, failed=0, seconds=12.5)
TWO = EndpointStats("http://two:8000/v1", in_flight=3, answered=0, failed=4, seconds=0.0, resting=True)
BUSY = Load(ready=7, waiting=80, endpoints=(ONE, TWO))
VERDICTS: tuple[Verdict, ...] = ("right", "right", "right", "wrong", "unparseable", "unsupported", "infrastructure_failure")


def test_the_picture_shows_everything_at_any_width() -> None:
    progress = progress_of(*VERDICTS, load=lambda: BUSY)
    progress.in_flight = 8
    view = view_of(progress)
    wide = "\n".join(drawn(view, 200))
    for sentence in (
        *["a model on demo, offline", "35 %, 7 of 20, 0:10 elapsed, time left not known yet", "0.7 steps/s, mean 0.7"],
        "8 steps in flight, episodes: 7 ready, 80 waiting",
        "right 3, wrong 1, unparseable 1, unsupported 1, failed 1, exact match 42.9 % of 7",
        "18,000 in, 360 out (36/s out), 0.018 EUR [of many]",
        "http://one:8000/v1: 5 in flight, 10 answered, 0 failed, 1.25 s mean",
        *["http://two:8000/v1: 3 in flight, 0 answered, 4 failed, resting", "generate: the server is gone"],
    ):
        assert sentence in wide
    for width in (80, 40, 24):
        lines = drawn(view, width)
        assert max(map(len, lines)) <= width
        words = re.sub(r"\W", "", "".join(lines))
        assert "unsupported1failed1exactmatch429of7" in words, "what does not fit is folded, not cut off"


def test_many_servers_do_not_push_the_rest_off_the_screen() -> None:
    servers = tuple(EndpointStats(f"http://server{n}/v1", 1, 1, 0, 1.0) for n in range(30))
    lines = drawn(view_of(progress_of("right", load=lambda: Load(0, 0, servers))), 120)
    assert sum("http://server" in line for line in lines) == 8
    assert any("and 22 more" in line for line in lines)


def test_the_time_left_is_a_bound_where_a_mode_may_end_early_and_silence_is_reported() -> None:
    rights: tuple[Verdict, ...] = ("right",) * 12
    assert view_of(progress_of(*rights)).time_left == "about 7 s left"
    assert view_of(progress_of(*rights, shrinks=True)).time_left == "at most 7 s left"
    assert view_of(progress_of(*rights, total=12)).time_left == "done"
    assert view_of(progress_of(*rights, halted="enough")).time_left == "ending"
    watch = ProgressWatch("t")
    watch.look(progress_of("right"), 0.0)
    assert watch.look(progress_of("right"), 45.0).time_left == "no answer for 45 s"


def test_answers_of_earlier_sessions_are_in_the_counts_but_not_in_the_rate() -> None:
    ten: tuple[Verdict, ...] = ("right",) * 10
    progress = progress_of(*ten, total=100)
    progress.resumed = 10
    watch = ProgressWatch("t")
    watch.look(progress, 0.0)
    count(progress, record("wrong", tokens=(1000, 50)))
    view = watch.look(progress, 2.0)
    assert (view.progress.done, view.mean, view.tokens_rate) == (11, 0.5, 25.0)
    assert view.exact_match == "exact match 90.9 % of 11"


def test_a_plain_line_is_one_line_that_can_be_searched_for() -> None:
    line = plain_line(view_of(progress_of(*VERDICTS, load=lambda: BUSY)))
    assert line.startswith("progress: a model on demo, offline: 35 %, 7/20 steps; 0.7 steps/s (mean 0.7); ")
    assert "right 3, wrong 1, unparseable 1, unsupported 1, failed 1" in line
    assert "http://two:8000/v1: 3 in flight" in line and "\n" not in line
    assert "; last failed at generate: the server is gone; 0:10 elapsed; " in line
    over = plain_line(view_of(progress_of(*VERDICTS)), over=True)
    assert over.endswith("0:10 elapsed; stopped") and "in flight" not in over
    without = progress_of()
    assert view_of(without).tokens is None
    count(without, record("right"))
    assert view_of(without).tokens == "not reported", "a server may give no token counts"


def test_elsewhere_than_on_a_terminal_there_are_few_lines_and_warnings_come_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    progress = RunProgress(3)
    with Dashboard("t", quiet=False) as board:
        for _ in range(3):
            progress.count(record("right"))
            board.update(progress)
        progress.warnings.append("the answers are not what they seem")
        board.update(progress)
        board.update(progress)
        assert capsys.readouterr().err == "warning:  t: the answers are not what they seem\n"
    assert re.fullmatch(r"progress: t: 100 %, 3/3 steps; .*; done\n", capsys.readouterr().err)
    with Dashboard("t", quiet=True) as board:
        board.update(progress_of("right", warnings=["w"]))
        board.warn("w")
    assert capsys.readouterr().err == ""


def test_plain_lines_come_while_all_is_silent(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(module, "PLAIN_SECONDS", 0.01)
    with Dashboard("t", quiet=False) as board:
        board.update(RunProgress(3))
        lines = ""

        def three() -> bool:
            nonlocal lines
            lines += capsys.readouterr().err
            return lines.count("\n") >= 3

        until(three, "three lines")
    assert set(re.findall(r"^progress: t: 0 %, 0/3 steps", lines, re.M)) == {"progress: t: 0 %, 0/3 steps"}


def test_nobody_reading_ends_the_telling_and_not_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        writes = 0

        def write(self, text: str) -> int:
            Closed.writes += 1
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(sys, "stderr", Closed())
    with Dashboard("t", quiet=False) as board:
        board.update(progress_of("right", warnings=["w"]))
    assert Closed.writes == 1


def test_a_run_states_its_load_and_how_its_steps_ended(tmp_path: Path) -> None:
    seen: list[tuple[int, int, int, int]] = []
    last: list[RunProgress] = []

    def see(progress: RunProgress) -> None:
        load = progress.load()
        seen.append((progress.done, progress.in_flight, load.ready, load.waiting))
        last[:] = [progress]

    engine = ScriptedEngine(lambda request: reply_with(request.task.action if request.task.step_index else Stop()))
    episodes = [make_episode(f"e{n}", ACTIONS) for n in range(12)]
    run = scripted_runner(tmp_path / "run", episodes, engine, concurrency=2, settings={"mode": "sop"}, on_progress=see)
    run.execute(resume=False)
    assert seen[0] == (0, 0, 0, 12), "nothing is loaded before the first step"
    assert max(in_flight for _, in_flight, _, _ in seen) <= 2 and seen[-1][1:] == (0, 0, 0)
    assert [waiting for *_, waiting in seen] == sorted((waiting for *_, waiting in seen), reverse=True)
    assert last[0].shrinks and last[0].verdicts == {"wrong": 12} and last[0].total == 12


def test_an_engine_reports_its_servers_statistics(tmp_path: Path) -> None:
    with MockServer(MockSettings(model=MODEL, first_faults=("500",), latency=0.01, sigma=0.0)) as server:
        url = server.base_url
        config = RunConfig(model=MODEL, bench="demo", base_urls=(url,), bench_options={"episodes": 2, "seed": 4})
        loads: list[Load] = []
        run = Runner(resolve(config), tmp_path / "run", on_progress=lambda progress: loads.append(progress.load()))
        outcome = run.execute(resume=False)
    (stats,) = loads[-1].endpoints
    steps = sum(map(len, outcome.run.plan.values()))
    assert (stats.name, stats.in_flight, stats.answered, stats.failed) == (url, 0, steps, steps)
    assert stats.seconds_mean is not None and stats.seconds_mean >= 0.01
    assert not stats.resting and loads[0].endpoints[0].seconds_mean is None


@pytest.fixture(scope="module")
def slow_server() -> Iterator[str]:
    with MockServer(MockSettings(model=MODEL, latency=0.1, sigma=0.1)) as server:
        yield server.base_url


def arguments(out: Path, url: str, *more: str) -> tuple[str, ...]:
    small = ("--set", "bench_options.episodes=6", "--set", "bench_options.seed=4", "--concurrency", "2")
    return ("run", "--model", MODEL, "--bench", "demo", "--base-url", url, "--out", str(out), *small, *more)


def test_on_a_terminal_the_picture_is_drawn_in_place_and_wiped_at_the_end(slow_server: str, tmp_path: Path) -> None:
    code, written = on_terminal(*arguments(tmp_path / "run", slow_server), columns=60)
    assert code == 0, written
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") == 1, "the cursor is there again"
    assert "in flight" in written and "\x1b[2K" in written
    assert COLOUR.search(written)
    after = written[written.rindex("\x1b[2K") :]
    assert "progress: " in after and "servers" not in after


def test_a_wait_for_a_server_is_shown(tmp_path: Path) -> None:
    def make(port: int) -> MockServer:
        return MockServer(MockSettings(model=MODEL, latency=0.05, port=port))

    shown = threading.Event()
    with outage(make, after=4, back=shown) as url:
        command = arguments(tmp_path / "run", url, "--patience", "77")
        code, written = on_terminal(*command, columns=120, at={b" s of 77 s": shown.set})
    assert code == 0, written
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)
    assert re.search(rf"steps +\d+ %, \d+ of .*elapsed, waiting for {url} for \d+ s of 77 s", plain), plain
    assert "is back" in " ".join(plain.split())  # after how long is unknown when a request is answered before the probe


def test_ctrl_c_leaves_the_terminal_clean_and_no_color_is_honoured(slow_server: str, tmp_path: Path) -> None:
    code, written = interrupted_on_terminal(*arguments(tmp_path / "run", slow_server), at=b"servers", NO_COLOR="1")
    assert code == 130, written
    assert written.count("\x1b[?25l") == written.count("\x1b[?25h") == 1
    assert "stopped" in written and "Traceback" not in written
    assert not COLOUR.search(written)


def test_a_terminal_that_can_do_nothing_gets_plain_lines(slow_server: str, tmp_path: Path) -> None:
    code, written = on_terminal(*arguments(tmp_path / "run", slow_server), TERM="dumb")
    assert code == 0 and "\x1b" not in written
    assert re.fullmatch(r"progress: .*; done\r\n", written), written


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_run(tmp_path_factory.mktemp("made") / "run", {("e00", 1)})


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    benchmarks()["episodes"].write_example(folder, episodes=3)
    return folder


@every_row("columns", [100, 80, 40, 24])
def test_on_a_terminal_a_bar_with_the_percentage_fits_the_width(columns: int, run: Path, tmp_path: Path) -> None:
    code, written = on_terminal("report", run, "--out", tmp_path / "out", "--no-images", columns=columns)
    assert code == 0 and bool(COLOUR.search(written)) == (columns > 24)
    lines = drawn_lines(written)
    assert max(map(len, lines)) <= columns
    assert " 100 %" in lines[-1] and ("━" in lines[-1]) == (columns > 40)
    assert columns < 80 or "48 of 48 steps" in lines[-1]


@pytest.mark.parametrize("command", ["report", "data prepare"])
def test_no_color_is_respected_by_the_bar(command: str, run: Path, release: Path, tmp_path: Path) -> None:
    given = (run, "--no-images") if command == "report" else ("episodes", "--source", release)
    code, written = on_terminal(*command.split(), *given, "--out", tmp_path / "out", NO_COLOR="1")
    assert code == 0 and not COLOUR.search(written), repr(written)
    assert "━" in written and ("100 %" if command == "report" else "3 episodes") in drawn_lines(written)[-1]


@every_row("command", ["score {run}", "runs {run}", "models", "benchmarks", "--help", "data push --help", "scor"])
def test_no_color_is_respected_by_what_is_printed(command: str, run: Path) -> None:
    code, written = on_terminal(*command.format(run=run).split(), output=True, columns=80, NO_COLOR="1")
    assert code == (2 if command == "scor" else 0) and written.strip()
    assert not COLOUR.search(written), repr(written)
    assert command != "--help" or COLOUR.search(on_terminal(command, output=True)[1])


def test_piped_output_is_plain_lines_with_a_percentage(run: Path, release: Path, tmp_path: Path, guieval: CommandLine) -> None:
    def piped(*arguments: str | Path) -> str:
        done = guieval(*arguments)
        assert done.code == 0 and "progress:" not in done.out
        return done.err

    reported = piped("report", run, "--no-images", "--out", tmp_path / "report")
    assert re.fullmatch(r"progress: writing the report: 100 %, 48 of 48 steps, \d:\d\d elapsed\n", reported)
    limited = ("--limit", "2")
    prepared = piped("data", "prepare", "episodes", "--source", release, "--out", tmp_path / "data", *limited)
    assert re.fullmatch(r"progress: preparing episodes: 100 %, 2 of 2 episodes, \d:\d\d elapsed\n", prepared)
    tasks = piped("report", online_run(tmp_path / "online"), "--no-images")
    assert re.fullmatch(r"progress: writing the report: 100 %, 8 of 8 tasks, \d:\d\d elapsed\n", tasks)
    # a terminal that cannot move its cursor gets plain lines
    code, written = on_terminal("report", run, "--no-images", "--out", tmp_path / "dumb", TERM="dumb")
    assert code == 0 and "\x1b" not in written and "100 %, 48 of 48 steps" in written


def test_lines_come_while_work_goes_on(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    # of this module only: a server in a thread that reads the clock now would sleep for as long as the machine has been up
    monkeypatch.setattr("guieval.running.progress.bar.time", SimpleNamespace(monotonic=lambda: now))
    with progress_bar("writing", "steps") as update:
        for done in range(301):
            now = done / 10
            update(done, 300)
    states = re.findall(r"^progress: writing: (.*) steps, (.*) elapsed$", capsys.readouterr().err, re.M)
    assert states == [("33 %, 100 of 300", "0:10"), ("66 %, 200 of 300", "0:20"), ("100 %, 300 of 300", "0:30")]
    counts = ((0, 10), (1, 30_000), (29_999, 30_000), (30_000, 30_000), (31, 30))
    assert [part_done(*each) for each in counts] == ["0 %", "0 %", "99 %", "100 %", "100 %"]


def test_work_that_fails_has_no_total_or_no_reader(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="broken"), progress_bar("writing", "steps") as update:
        update(1, 2)
        raise ValueError("broken")
    assert capsys.readouterr().err == ""
    with progress_bar("preparing", "episodes") as update:  # without a total the number is shown
        update(1200, None)
    assert capsys.readouterr().err.startswith("progress: preparing: 1,200 episodes, 0:0")

    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(sys, "stderr", Closed())
    with progress_bar("writing", "steps") as update:  # a closed pipe does not end the work
        update(1, 1)
