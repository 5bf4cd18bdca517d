"""Servers that misbehave."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

from guieval.data.benchmark import ABCBenchmark
from guieval.journal import RunFolder
from guieval.playground.mock_server import MockServer, MockSettings
from guieval.registry import load_benchmark
from guieval.running.engine_choice import GIVE_UP_AFTER
from guieval.settings import RunConfig
from tests.faults.program import MODEL, Program, guieval, most_memory, tries_again, wait_for_lines
from tests.faults.rows import Row, rows
from tests.outage import held, limits_pass
from tests.running.records import figures, final
from tests.scripted import opened_run
from tests.waiting import PATIENCE

AGAIN = "retries up to `--max-attempts` attempts, with exponential backoff and jitter"
SPEAKS_LATER = "as usual; the record of each step holds its number of attempts"
LIMITED = ("--timeout", str(PATIENCE))
MOST_MEMORY = 500 * 1024 * 1024
"""Bytes that a run among bombs may hold; one unpacks to 256 MiB."""


def check_attempts(directory: Path, counts: Mapping[str, int]) -> None:
    """The faults cost one attempt each, and nothing else cost one."""
    faults, again = sum(counts[kind] for kind in ("failed", "malformed", "hung")), tries_again(directory)
    assert again == faults > 0 and again == counts["requests"] - sum(record.finished for record in RunFolder(directory).records)


@rows(
    Row("5 % of requests answered with HTTP 500", AGAIN, SPEAKS_LATER, server={"error_rate": 0.05}),
    Row(
        "connections reset in the middle of an answer",
        f"closes the connection and {AGAIN}",
        SPEAKS_LATER,
        server={"malformed_rate": 0.1, "malformed_kinds": ("reset",)},
    ),
    Row(
        "requests that hang",
        f"limits one attempt to `--timeout` seconds from connecting to the last byte, then {AGAIN}",
        SPEAKS_LATER,
        server={"hang_rate": 0.1},
        options=LIMITED,
    ),
    Row(
        "answers whose last bytes arrive slowly",
        f"limits these to `--timeout` seconds too, and {AGAIN}",
        SPEAKS_LATER,
        server={"malformed_rate": 0.1, "malformed_kinds": ("drip",)},
        options=LIMITED,
    ),
    Row("truncated JSON", AGAIN, SPEAKS_LATER, server={"malformed_rate": 0.1, "malformed_kinds": ("cut-json",)}),
    Row("HTML in place of JSON", AGAIN, SPEAKS_LATER, server={"malformed_rate": 0.1, "malformed_kinds": ("html",)}),
    Row("answers without choices", AGAIN, SPEAKS_LATER, server={"malformed_rate": 0.1, "malformed_kinds": ("empty-choices",)}),
    Row(
        "answers of more than 8 MiB",
        f"stops reading there, closes the connection and {AGAIN}",
        SPEAKS_LATER,
        server={"malformed_rate": 0.05, "malformed_kinds": ("flood",)},
    ),
)
def test_a_passing_fault_changes_nothing(program: Program, tmp_path: Path, row: Row) -> None:
    """The fault occurred and cost exactly as many attempts; no record is lost or doubled; answers and figures equal those of a
    clean run."""
    with program.server(**row.server) as server, limits_pass(server, PATIENCE) if row.options == LIMITED else nullcontext():
        row.check_seen(program.run(server.base_url, tmp_path / "run", *row.options, code=row.code))
        check_attempts(tmp_path / "run", server.stats())
    program.check_whole(tmp_path / "run")


@rows(
    Row(
        "small compressed answers that unpack to 256 MiB",
        f"requests uncompressed answers; if a compressed one arrives anyway, unpacks at most 8 MiB of it and {AGAIN}",
        SPEAKS_LATER,
        server={"malformed_rate": 0.3, "malformed_kinds": ("gzip-bomb",)},
    )
)
def test_a_bomb_does_not_go_off(program: Program, tmp_path: Path, row: Row) -> None:
    """However many arrive, the program needs less memory than two of them would take; each costs an attempt; answers and
    figures equal those of a clean run."""
    all_but_one = len(final(program.clean)) - 1
    with program.server(**row.server) as server:
        with held(server, after=all_but_one):  # or it could be over before it is looked at
            process = program.start(server.base_url, tmp_path / "run")
            wait_for_lines(process, tmp_path / "run", all_but_one)
            most = most_memory(process)
        row.check_seen(program.end(process))
        bombs = server.stats()["malformed"]
    assert tries_again(tmp_path / "run") == bombs > 0
    assert 0 < most < MOST_MEMORY
    program.check_whole(tmp_path / "run")


def waits(log: Path) -> list[tuple[float, float]]:
    """Of every try that failed at once: when it came, and when the next one came (Unix seconds)."""
    tries: dict[str, list[dict[str, Any]]] = {}
    for line in log.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        tries.setdefault(entry["tag"], []).append(entry)
    return [
        (first["arrival"], second["arrival"])
        for each in tries.values()
        for first, second in pairwise(each)
        if first["outcome"] == "failed"
    ]


@rows(
    Row(
        "HTTP 429 with Retry-After in seconds",
        "waits that long, at most 60 s, then retries",
        SPEAKS_LATER,
        server={"retry_after": "1"},
    ),
    Row(
        "HTTP 429 with Retry-After as a date",
        "waits until then by the clock in the server's Date header, at most 60 s, then retries",
        SPEAKS_LATER,
        server={"retry_after_date": 1.0},
    ),
)
def test_the_wait_a_server_asks_for_is_kept(program: Program, tmp_path: Path, row: Row) -> None:
    """By the server's own log no attempt came sooner than the header allows; answers and figures equal those of a clean run."""
    with program.server(error_rate=0.06, error_status=429, log=tmp_path / "log", **row.server) as server:
        row.check_seen(program.run(server.base_url, tmp_path / "run"))
    waited = waits(tmp_path / "log")
    assert waited and all(came - failed > 0.99 for failed, came in waited)
    program.check_whole(tmp_path / "run")


@rows(
    Row(
        "answers compressed although uncompressed ones were requested",
        "unpacks gzip and deflate, up to 8 MiB, and takes the answer",
        "as usual",
        server={"malformed_rate": 0.5, "malformed_kinds": ("gzip",)},
    ),
    Row(
        "answers that are sent twice",
        "takes the first, and closes a connection with more than one answer before it is reused; an answer whose id names "
        "another request, as vLLM's does, is rejected too. A second answer that names no request and arrives after the next "
        "request was sent cannot be detected",
        "as usual",
        server={"malformed_rate": 0.5, "malformed_kinds": ("twice",)},
    ),
)
def test_an_answer_that_needs_no_other_try_is_taken(program: Program, tmp_path: Path, row: Row) -> None:
    """It occurred, cost no attempt, and answers and figures equal those of a clean run."""
    assert program.tried(row, tmp_path / "run")["malformed"] > 0 == tries_again(tmp_path / "run")
    program.check_whole(tmp_path / "run")


@rows(
    Row(
        "requests that fail at every attempt",
        "records the step as an infrastructure failure with the last reason, and continues with other episodes",
        "`failed: soeval:` and how many `steps at generate`, the first for `status 500`; `resume: guieval run --resume`",
        1,
        {"error_rate": 0.1, "sticky_errors": True},
        ("--max-attempts", "2"),
    ),
    Row(
        "prompts longer than the model's context (HTTP 400)",
        "does not repeat a request that is refused for its content; the step is an infrastructure failure",
        "`refuses this request (status 400): This model's maximum context length is 4096 tokens`; "
        "`resume: guieval run --resume`",
        1,
    ),
)
def test_a_lasting_failure_is_no_wrong_answer(program: Program, tmp_path: Path, row: Row) -> None:
    """Failed steps are counted apart and stay in the denominators; every other answer is that of the clean run; a resume
    against a healthy server ends with the figures of a clean run, no step doubled."""
    settings = dict(row.server)
    if "context" in row.fault:
        settings["longest_body"] = program.requests[len(program.requests) // 2]
    with program.server(**settings) as server:
        row.check_seen(program.run(server.base_url, tmp_path / "run", *row.options, code=row.code))
    assert program.check_honest(tmp_path / "run") > 0
    program.check_resumed(tmp_path / "run")


@rows(
    Row(
        "a wrong model name (HTTP 404)",
        "stops at once: no request could succeed",
        "one sentence: `has no model 'wrong-name'`, with the server's message: `does not exist`",
        2,
        {"check_model": True},
        ("--served-model", "wrong-name"),
    ),
    Row(
        "a key that is not accepted (HTTP 401)",
        "stops at once, naming the variable that holds the key, never the key",
        "one sentence: `refuses access (status 401); the environment variable OPENAI_API_KEY is not set`",
        2,
        {"api_key": "sk-the-right-one"},
    ),
    Row(
        "a key that expires in the middle of a run (HTTP 401)",
        "stops at once and keeps what was answered",
        "the table so far, `refuses access (status 401)` and `every answer before is kept`, and how to resume",
        2,
        {"error_rate": 1.0, "error_status": 401, "faults_after": 15},
    ),
)
def test_what_can_never_work_stops_at_once(program: Program, tmp_path: Path, row: Row) -> None:
    """No request is sent twice, no step is recorded as answered or failed for it, and a resume with the mistake corrected
    ends with the answers and figures of a clean run."""
    counts = program.tried(row, tmp_path / "run")
    assert all(record.finished for record in RunFolder(tmp_path / "run").records)
    assert counts["failed"] <= 8, "more was asked than was in flight"
    mended = ("--served-model", MODEL) if "model" in row.fault else ()
    key = "sk-the-right-one"
    program.check_resumed(tmp_path / "run", *mended, server={"api_key": key}, env={"OPENAI_API_KEY": key})


ASIDE = "puts that server aside for the rest of the run, and sends its refused requests to the others"
NAMED = "a warning that names the server: `{}`, `this server is put aside, and the others go on`"


@rows(
    Row(
        "one of several servers does not accept the key (HTTP 401)",
        ASIDE,
        NAMED.format("refuses access (status 401)"),
        server={"api_key": "sk-another"},
    ),
    Row(
        "one of several servers has another model or another path (HTTP 404)",
        ASIDE,
        NAMED.format("(status 404)"),
        server={"error_rate": 1.0, "error_status": 404},
    ),
    Row(
        "one of several servers redirects elsewhere (HTTP 302)",
        ASIDE,
        NAMED.format("redirects elsewhere (status 302)"),
        server={"error_rate": 1.0, "error_status": 302},
    ),
    Row(
        "one of several servers refuses what the others answer (HTTP 400)",
        "tries another server before it accepts a refusal; after three refusals in a row of requests that another one "
        "answered, puts the server aside for the rest of the run",
        NAMED.format("refuses this request (status 400)"),
        server={"error_rate": 1.0, "error_status": 400},
    ),
)
def test_one_bad_server_of_several_costs_nothing(program: Program, tmp_path: Path, row: Row) -> None:
    """No step fails and no request counts as a second attempt; answers and figures equal those of a clean run."""
    with program.server(**row.server) as bad, program.server(latency=0.02) as good:
        row.check_seen(program.run(good.base_url, tmp_path / "run", "--base-url", bad.base_url))
        assert bad.stats()["failed"] <= 16
    assert tries_again(tmp_path / "run") == 0
    program.check_whole(tmp_path / "run")


@rows(
    Row(
        "answers that hold no text, or half a call",
        "scores them as the model's response: unparseable, not a failure",
        "`unparseable` in the table of verdicts",
        server={"malformed_rate": 0.2, "malformed_kinds": ("null-content", "cut-text")},
    )
)
def test_an_empty_answer_is_the_models_and_stays_in_the_denominator(program: Program, tmp_path: Path, row: Row) -> None:
    """As many steps are unparseable as such answers were sent, and every denominator still holds all planned steps: leaving
    them out would raise the score."""
    odd_replies = program.tried(row, tmp_path / "run", mode="offline")["malformed"]
    summary = figures(tmp_path / "run")
    verdicts, exact, coverage = summary["verdicts"], summary["metrics"]["exact match"], summary["metrics"]["coverage"]
    assert summary["complete"] and verdicts["unparseable"] == odd_replies > 0
    assert exact["n"] == verdicts["planned"] == coverage["n"] > coverage["count"]


@rows(
    Row(
        "impossible token counts and log-probabilities (2^64-1, negative, 1e308, a number of 400 digits)",
        "keeps the answer and stores these numbers as unknown; none of them lowers a cost or a budget",
        "as usual; `reported for` how many answers came with usable token counts",
        server={"malformed_rate": 0.5, "malformed_kinds": ("absurd-numbers",)},
    )
)
def test_absurd_numbers_are_unknown(program: Program, tmp_path: Path, row: Row) -> None:
    """No request is repeated; the other answers keep their token counts; `guieval score` and a resume read the
    journal; apart from token counts, the figures are those of a clean run."""
    with program.server(**row.server) as server:
        row.check_seen(program.run(server.base_url, tmp_path / "run"))
        odd = server.stats()["malformed"]
        guieval("score", "run", folder=tmp_path)
        row.check_seen(program.run(server.base_url, tmp_path / "run", resume=True))
    summary, clean = figures(tmp_path / "run"), figures(program.clean)
    _, tokens = ([each["metrics"].pop(f"{kind} tokens") for each in (summary, clean)] for kind in ("prompt", "completion"))
    assert odd > 0 and tokens[0]["n"] == tokens[1]["n"] - odd and summary == clean
    assert tries_again(tmp_path / "run") == 0


def test_no_text_of_a_server_controls_the_terminal(program: Program, tmp_path: Path) -> None:
    name = "wrong\x1b[2J\u202e\x07name"  # the server repeats it
    with program.server(check_model=True) as server:
        message = program.run(server.base_url, tmp_path / "run", "--served-model", name, code=2)
    assert "The model `wrong [2J name` does not exist" in message and not {"\x1b", "\u202e", "\x07"} & set(message)


def test_a_run_gives_up_when_nobody_answers_any_more(tmp_path: Path) -> None:
    options = {"episodes": 20, "seed": 3}
    large: ABCBenchmark = load_benchmark("demo", tmp_path / "demo", **options)
    with MockServer(MockSettings(policy="fixed", error_rate=1.0, served_models=(MODEL,))) as dead:
        config = RunConfig(
            model=MODEL,
            bench="demo",
            bench_options=options,
            data=str(large.root),
            base_urls=(dead.base_url,),
            concurrency=4,
            max_attempts=1,
        )
        outcome = opened_run(config, tmp_path / "run").execute(resume=False)
    assert outcome.gave_up and not outcome.interrupted
    failed = outcome.progress.by_stage["generate"]
    assert GIVE_UP_AFTER <= failed.count <= GIVE_UP_AFTER + 4 and "500" in failed.example
