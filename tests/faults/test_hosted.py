"""Native APIs of hosted models.

Each row holds for the makers' three SDKs against the mock server, which speaks their wire formats.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from guieval.journal import RunFolder
from guieval.registry import model_config
from guieval.running.engine_choice import native_api
from tests.faults import test_outages, test_secrets, test_servers
from tests.faults.program import Program, tries_again
from tests.faults.rows import Row, rows
from tests.faults.test_outages import TELLS, WAITS, prices
from tests.faults.test_secrets import KEY, encodings
from tests.faults.test_servers import AGAIN, LIMITED, SPEAKS_LATER
from tests.running.records import figures

MODELS = ("gpt-6.2-sol-computer", "claude-sonnet-5-computer", "gemini-3.8-flash-computer")
KINDS = ("cut-json", "html", "empty-choices", "reset", "flood")


@pytest.fixture(scope="module", params=MODELS)
def hosted(request: pytest.FixtureRequest, program: Program, tmp_path_factory: pytest.TempPathFactory) -> Program:
    config = model_config(request.param)
    clean = tmp_path_factory.mktemp("clean") / "run"
    served, variable = config.served_as or config.name, native_api(config.engine).key_env
    made = replace(program, clean=clean, model=config.name, served=served, variable=variable)
    with made.server() as server:
        made.run(server.base_url, clean)
    assert figures(clean)["complete"] and figures(clean)["verdicts"]["unparseable"] == 0
    return made


@rows(
    Row(
        "hosted: damaged answers (cut off, HTML, without their content, a reset connection, more than 8 MiB)",
        f"the same as for other servers: {AGAIN}",
        SPEAKS_LATER,
        server={"malformed_rate": 0.2, "malformed_kinds": KINDS},
    ),
    Row(
        "hosted: requests that hang, and HTTP 500",
        "the same",
        SPEAKS_LATER,
        server={"hang_rate": 0.05, "error_rate": 0.05},
        options=LIMITED,
    ),
)
def test_a_passing_fault_of_a_hosted_api_changes_nothing(hosted: Program, tmp_path: Path, row: Row) -> None:
    """The fault occurred and cost exactly as many attempts; no record is lost or doubled; answers and figures equal those of a
    clean run."""
    test_servers.test_a_passing_fault_changes_nothing(hosted, tmp_path, row)


@rows(
    Row(
        "hosted: small compressed answers that unpack to 256 MiB",
        "the same: the SDK is handed at most 8 MiB",
        SPEAKS_LATER,
        server={"malformed_rate": 0.3, "malformed_kinds": ("gzip-bomb",)},
    )
)
def test_a_bomb_of_a_hosted_api_does_not_go_off(hosted: Program, tmp_path: Path, row: Row) -> None:
    """However many arrive, the program needs less memory than two of them would take; each costs an attempt; answers and
    figures equal those of a clean run."""
    test_servers.test_a_bomb_does_not_go_off(hosted, tmp_path, row)


@rows(
    Row(
        "hosted: answers that are compressed or sent twice",
        "the same: takes the first answer, unpacked",
        "as usual",
        server={"malformed_rate": 0.5, "malformed_kinds": ("gzip", "twice")},
    )
)
def test_an_answer_of_a_hosted_api_that_needs_no_other_try_is_taken(hosted: Program, tmp_path: Path, row: Row) -> None:
    """It occurred, cost no attempt, and answers and figures equal those of a clean run."""
    test_servers.test_an_answer_that_needs_no_other_try_is_taken(hosted, tmp_path, row)


@rows(
    Row(
        "hosted: HTTP 429 with Retry-After",
        "waits that long, at most 60 s, then retries",
        SPEAKS_LATER,
        server={"retry_after": "1"},
    )
)
def test_the_wait_a_hosted_api_asks_for_is_kept(hosted: Program, tmp_path: Path, row: Row) -> None:
    """By the server's own log no attempt came sooner than the header allows; answers and figures equal those of a clean run."""
    test_servers.test_the_wait_a_server_asks_for_is_kept(hosted, tmp_path, row)


@rows(Row("hosted: a service that is away for a moment", WAITS, TELLS, options=("--max-attempts", "1")))
def test_an_outage_of_a_hosted_api_costs_no_step(hosted: Program, tmp_path: Path, row: Row) -> None:
    """The server is stopped with requests in flight and comes back empty on the same port; no step fails, no attempt counts,
    and the run ends by itself with the answers and figures of a clean run."""
    test_outages.test_an_outage_costs_no_step(hosted, tmp_path, row)


@rows(
    Row(
        "hosted: a service that goes away for good",
        "waits for `--patience` seconds, then stops in order",
        "the table so far, and `no answer from http://127.0.0.1:`, `the run waits for 1 s at most (--patience)`, "
        "`guieval run --resume`",
        1,
        options=("--patience", "1"),
    )
)
def test_a_hosted_api_that_stays_away_ends_the_run_in_order(hosted: Program, tmp_path: Path, row: Row) -> None:
    """No step is recorded as failed; a resume against a healthy server runs no answered step again and ends with the answers
    and figures of a clean run."""
    test_outages.test_patience_ends(hosted, tmp_path, row)


@rows(
    Row(
        "hosted: a key that is not accepted (HTTP 401)",
        "stops at once, naming the variable of that API's key",
        "one sentence: `refuses access (status 401); the environment variable`",
        2,
        {"api_key": "another"},
    ),
    Row(
        "hosted: a model that the service does not have (HTTP 404)",
        "stops at once",
        "one sentence: `has no model 'wrong-name' (status 404); --served-model sets its name there`",
        2,
        {"check_model": True},
        ("--served-model", "wrong-name"),
    ),
    Row(
        "hosted: a model that does not take the computer tool (HTTP 400)",
        "stops at once, since every request offers the same tool",
        "one sentence: `this computer tool (status 400)`, with the server's message, and `--set options.tool=NAME`",
        2,
        {"refused_tools": ("computer", "computer_toolset_20260801", "computerUse")},
    ),
)
def test_what_a_hosted_api_will_never_answer_stops_the_run(hosted: Program, tmp_path: Path, row: Row) -> None:
    """No request is sent twice, no step is recorded, and a resume with the mistake corrected ends with the answers and figures
    of a clean run."""
    with hosted.server(**row.server) as server:
        message = hosted.run(server.base_url, tmp_path / "run", *row.options, code=row.code)
        counts = server.stats()
    row.check_seen(message)
    assert hosted.variable in message or "401" not in row.fault
    assert not list(RunFolder(tmp_path / "run").records) and counts["failed"] <= 8, "more was asked than was in flight"
    mended = ("--served-model", hosted.served) if "404" in row.fault else ()
    hosted.check_resumed(tmp_path / "run", *mended)


@rows(
    Row(
        "hosted: refusals (HTTP 401) that repeat the key",
        "writes `[API key]` in its place",
        "one sentence: `refuses access (status 401)`, with `[API key]` in the server's message",
        2,
        {"api_key": "another", "echo_key": True},
    ),
    Row(
        "hosted: errors (HTTP 500) that repeat the key",
        "the same, in the journal too",
        "`steps at generate`, with `[API key]` in the server's message",
        1,
        {"error_rate": 0.2, "sticky_errors": True, "echo_key": True},
    ),
    Row(
        "hosted: answers of the model that repeat the key",
        "the same, before the answer is parsed or recorded: these words end the task",
        "as usual",
        0,
        server={"policy": "fixed", "reply": "the keys are " + " ".join(whole for whole, _ in encodings(KEY))},
    ),
)
def test_what_a_hosted_api_repeats_is_not_passed_on(
    hosted: Program, tmp_path: Path, row: Row, caplog: pytest.LogCaptureFixture
) -> None:
    """No ten characters of the key, plain or encoded, in any file of the run, in what is printed, or in any library's log at
    debug level, the SDKs' included."""
    test_secrets.test_what_a_server_repeats_is_not_passed_on(hosted, tmp_path, row, caplog)


@rows(
    Row(
        "hosted: an https server with an untrusted certificate",
        "stops at once, before a key or a screenshot is sent",
        "one sentence: `has no valid certificate (self-signed certificate)`, `SSL_CERT_FILE`",
        2,
    )
)
def test_an_unproven_hosted_api_is_not_asked(hosted: Program, tmp_path: Path, row: Row, certificate: Path) -> None:
    """Nothing was sent to the server, and no step was recorded; with the certificate in SSL_CERT_FILE, the resume ends with the
    answers and figures of a clean run."""
    with hosted.server(certificate=certificate) as server:
        row.check_seen(hosted.run(server.base_url, tmp_path / "run", code=row.code))
        assert server.stats()["requests"] == 0 and not list(RunFolder(tmp_path / "run").records)
        hosted.run(server.base_url, tmp_path / "run", resume=True, env={"SSL_CERT_FILE": str(certificate)})
    hosted.check_whole(tmp_path / "run")


@rows(
    Row(
        "hosted: a budget that is reached",
        "records the answers in flight, and starts no further step once the estimated cost reaches `--budget`",
        "`stopped: soeval:`, the budget, and `resume: guieval run --resume`",
        1,
    )
)
def test_a_budget_ends_a_run_of_a_hosted_api(hosted: Program, tmp_path: Path, row: Row) -> None:
    """The answers that were paid for cost the budget and no more than the requests in flight above it; a resume without the
    budget ends with the answers and figures of a clean run."""
    options = ("--budget", "30", "--prices", prices(tmp_path, hosted.served), "--concurrency", "4")
    with hosted.server() as server:
        row.check_seen(hosted.run(server.base_url, tmp_path / "run", *options, code=row.code))
    answers = sum(record.finished for record in RunFolder(tmp_path / "run").records)
    assert 30 / 3.06 <= answers <= 30 / 3.06 + 5
    hosted.check_resumed(tmp_path / "run", "--set", "budget=null")


@rows(
    Row(
        "hosted: answers without words and calls, and answers that end at the limit of tokens",
        "scores them as the model's response: unparseable, not a failure",
        "`unparseable` in the table of verdicts",
        server={"malformed_rate": 0.2, "malformed_kinds": ("null-content", "cut-text")},
    )
)
def test_an_empty_answer_of_a_hosted_api_is_the_models(hosted: Program, tmp_path: Path, row: Row) -> None:
    """As many steps are unparseable as such answers were sent, none is taken for the end of the task, and every denominator
    still holds all planned steps."""
    test_servers.test_an_empty_answer_is_the_models_and_stays_in_the_denominator(hosted, tmp_path, row)


@rows(
    Row(
        "hosted: impossible token counts",
        "keeps the answer and stores these numbers as unknown; none of them lowers a cost or a budget",
        "as usual; `reported for` how many answers came with usable token counts",
        server={"malformed_rate": 0.5, "malformed_kinds": ("absurd-numbers",)},
    )
)
def test_absurd_numbers_of_a_hosted_api_are_unknown(hosted: Program, tmp_path: Path, row: Row) -> None:
    """No request is repeated; the other answers keep their token counts; `guieval score` reads the journal; apart from token
    counts, the figures are those of a clean run."""
    test_servers.test_absurd_numbers_are_unknown(hosted, tmp_path, row)


@rows(
    Row(
        "hosted: requests that fail after the model has looked at the screen",
        "repeats the requests of the step from its beginning",
        SPEAKS_LATER,
        server={"looks": 1, "error_rate": 0.1},
    )
)
def test_a_look_is_repeated_with_its_step(hosted: Program, tmp_path: Path, row: Row) -> None:
    """Each failure cost an attempt; every reply holds one look and the action of the clean run."""
    failed = hosted.tried(row, tmp_path / "run")["failed"]
    assert tries_again(tmp_path / "run") == failed > 0
    actions = {record.task.key: record.sample.action for record in RunFolder(hosted.clean).records}
    for record in RunFolder(tmp_path / "run").records:
        assert record.sample.action == actions[record.task.key]
        assert (record.sample.raw_response or "").count("I look first.") == 1
