"""Secrets and safety."""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest

from tests.faults.program import Program, guieval, journal_lines, wait_for_lines
from tests.faults.rows import Row, rows
from tests.outage import held
from tests.rows import every_row

KEY = "sk-proj+Zm9v/42=~very-secret"
VARIABLE = {"OPENAI_API_KEY": KEY}


def encodings(key: str) -> Iterator[tuple[str, str]]:
    """A key as it may turn up in what a server echoes: the whole text, and the part of it that only the key decides."""
    percent = quote(key, safe="")
    lower = re.sub("%..", lambda escape: escape.group().lower(), percent)
    escaped = "".join(f"\\u{ord(each):04x}" for each in key)
    for whole in (
        key,
        percent,
        lower,
        key.encode().hex(),
        quote(percent, safe=""),
        escaped,
        key[::-1],
        f"{key[:14]}\n{key[14:]}",
    ):
        yield whole, whole
    for before in ("", "Bearer ", ":", "user:"):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            whole = encode((before + key).encode()).decode()
            yield whole, whole[(len(before) + 2) // 3 * 4 : -4]


PIECES = {part[start : start + 10].encode() for _, part in encodings(KEY) for start in range(len(part) - 9)}
LEAK = re.compile(b"|".join(map(re.escape, sorted(PIECES))))
"""Ten characters in a row of the key, in any of its forms."""


def leaks(folder: Path, *texts: str) -> list[str]:
    """Which files below a folder, or which of the texts, hold a piece of the key, by name or by what stands around it."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files, "nothing was searched"
    found = [str(path) for path in files if LEAK.search(path.read_bytes())]
    return found + [text for text in texts if LEAK.search(text.encode())]


@every_row("form", sorted({whole for whole, _ in encodings(KEY)}))
def test_a_leak_would_be_found(tmp_path: Path, form: str) -> None:
    (tmp_path / "clean").write_text("the [API key] and sk-proj", encoding="utf-8")
    assert not leaks(tmp_path, "QmVhcmVyI")
    (tmp_path / "file").write_text(f"x{form[3:-2]}y", encoding="utf-8")
    assert leaks(tmp_path, f"x{form}y") == [str(tmp_path / "file"), f"x{form}y"]


@rows(
    Row(
        "a key in the environment",
        "sends it to the server and nowhere else",
        "as usual",
        server={"api_key": KEY, "error_rate": 0.05},
    )
)
def test_the_key_is_shown_to_nobody(program: Program, tmp_path: Path, row: Row) -> None:
    """No ten characters of the key, plain or encoded, in any file that `guieval run`, `score` and `report` leave, in what they
    print, or in the process list; the server accepted the key in every request."""
    message = []
    with program.server(**row.server) as server:
        with held(server, after=10):
            process = program.start(server.base_url, tmp_path / "run", env=VARIABLE)
            wait_for_lines(process, tmp_path / "run", 10)
            listed = "\0".join(psutil.Process(process.pid).cmdline())
        message.append(program.end(process))
    row.check_seen(message[0])
    message += [guieval(*command, folder=tmp_path, env=VARIABLE) for command in (["score", "run"], ["report", "run"])]
    assert "guieval" in listed and (tmp_path / "run" / "report").is_dir()
    assert not leaks(tmp_path, listed, *message)
    program.check_whole(tmp_path / "run")


@rows(
    Row(
        "refusals of the key (HTTP 401) that repeat it",
        "writes `[API key]` wherever the key would stand: as it is, in hexadecimal or inside of base64, forwards or backwards, "
        "and also where that is percent-encoded (once or more often), escaped as in JSON or broken by line breaks; other "
        "encodings are not recognised",
        "one sentence: `refuses access (status 401); the environment variable OPENAI_API_KEY has a key it does not accept`, "
        "with `Bearer [API key]` in the server's message",
        2,
        {"api_key": "another", "echo_key": True},
    ),
    Row(
        "errors (HTTP 500) that repeat the key",
        "the same, in the journal too",
        "`steps at generate`, with `Bearer [API key]` in the server's message",
        1,
        {"error_rate": 0.2, "sticky_errors": True, "echo_key": True},
    ),
    Row(
        "refused requests (HTTP 400) that repeat the key",
        "the same",
        "`refuses this request`, with `Bearer [API key]` in the server's message",
        1,
        {"error_rate": 0.1, "error_status": 400, "echo_key": True},
    ),
    Row(
        "answers of the model that repeat the key",
        "the same, before the answer is parsed or recorded",
        "`responses could be read as an action`: these hold nothing but the key",
        1,
        server={"policy": "fixed", "reply": "the keys are " + " ".join(whole for whole, _ in encodings(KEY))},
    ),
)
def test_what_a_server_repeats_is_not_passed_on(
    program: Program, tmp_path: Path, row: Row, caplog: pytest.LogCaptureFixture
) -> None:
    """No ten characters of the key, plain or encoded, in any file of the run, in what is printed, or in any library's log at
    debug level."""
    env = {program.variable: KEY}
    with caplog.at_level(logging.DEBUG), program.server(**row.server) as server:
        message = program.run(server.base_url, tmp_path / "run", "--max-attempts", "2", code=row.code, env=env)
    row.check_seen(message)
    assert not leaks(tmp_path, message, caplog.text)
    if row.code != 2:
        assert "[API key]" in (tmp_path / "run" / "steps.jsonl").read_text(encoding="utf-8")


@rows(
    Row(
        "lists of models that repeat the key",
        "writes `[API key]` there too",
        "one sentence: `there is no model to ask` or which ones there are, with `[API key]`",
        2,
        {"served_models": (f"a-{KEY}", f"b-{quote(KEY, safe='')}")},
    )
)
def test_what_a_server_lists_is_not_passed_on(program: Program, tmp_path: Path, row: Row) -> None:
    """No ten characters of the key, plain or encoded, in any file of the run or in what is printed."""
    with program.server(**row.server) as server:
        message = program.run(server.base_url, tmp_path / "run", code=row.code, env=VARIABLE)
    assert message.count("[API key]") == 2 and message.count("\n") == 1
    assert not leaks(tmp_path, message)


def test_a_key_that_stands_where_its_variables_name_should_is_refused_unseen(program: Program, tmp_path: Path) -> None:
    for given in ("hf_aBcDeFgHiJkLmNoP", KEY):
        message = program.run("http://127.0.0.1:9/v1", tmp_path / "run", "--api-key-env", given, code=2)
        assert "name of an environment variable" in message and given not in message
    assert not (tmp_path / "run").exists()


QUOTED = quote(KEY, safe="")


@every_row(
    "url",
    [
        f"http://user:{QUOTED}@127.0.0.1:9/v1",
        f"http://127.0.0.1:9/v1?key={QUOTED}",
        f"http://127.0.0.1:9/v1#{QUOTED}",
        f"user:{QUOTED}@127.0.0.1:9/v1",
        f"http:/user:{QUOTED}@127.0.0.1:9/v1",
        f"http//user:{QUOTED}@127.0.0.1:9/v1",
        f"http://user:{KEY}@127.0.0.1:9/v1",
        f"http://user:{KEY[:16]}/{KEY[16:]}@127.0.0.1:9/v1",
        f"127.0.0.1:9/v1?key={KEY}",
    ],
)
def test_a_key_in_the_base_url_is_refused_unseen(program: Program, tmp_path: Path, url: str) -> None:
    """Also where the URL is misspelt, so that nobody can tell its parts apart; also as a setting."""
    message = program.run(url, tmp_path / "run", code=2)
    assert "base URL" in message and "must" in message and message.count("\n") == 1 and not LEAK.search(message.encode())
    plain = ["--model", "qwen3-vl-8b-instruct", "--bench", "demo", "--out", str(tmp_path / "run")]
    for value in (url, f"[[{url}]]"):
        message = guieval("run", *plain, "--set", f"base_urls={value}", folder=tmp_path, code=2)
        assert "must" in message and message.count("\n") == 1 and not LEAK.search(message.encode())
    assert not (tmp_path / "run").exists()


@every_row(
    "name",
    [
        "sampling.extra_headers.Authorization",
        "sampling.extra_body.headers.x-api-key",
        "sampling.api_key",
        "resampling.token",
        "vllm.api-key",
        "vllm.hf_token",
        "bench_options.password",
    ],
)
def test_a_setting_that_is_a_secret_is_refused_unseen(program: Program, tmp_path: Path, name: str) -> None:
    """As the manifest has all settings; by its name, since nobody can know every key by its looks."""
    message = program.run("http://127.0.0.1:9/v1", tmp_path / "run", "--set", f"{name}=Bearer {KEY}", code=2)
    assert "cannot be given as a setting, for it is a secret" in message and not LEAK.search(message.encode())
    assert not (tmp_path / "run").exists()


@every_row("name", ["sampling.user", "sampling.extra_body.notes", "served_model", "bench_options.x", "vllm.x"])
def test_the_key_under_another_name_is_refused_unseen(program: Program, tmp_path: Path, name: str) -> None:
    message = program.run("http://127.0.0.1:9/v1", tmp_path / "run", "--set", f"{name}=x {KEY}", code=2, env=VARIABLE)
    assert "holds the key that the environment variable OPENAI_API_KEY holds" in message and not LEAK.search(message.encode())
    assert not (tmp_path / "run").exists()


WORDS = "I accept unverified certificates"


@rows(
    Row(
        "an https server with an untrusted certificate",
        "stops at once, before a key or a screenshot is sent",
        "one sentence that names the remedies: `has no valid certificate (self-signed certificate)`, `SSL_CERT_FILE`, "
        f"`--set insecure_tls='{WORDS}'`",
        2,
    ),
    Row("a certificate for another machine", "the same", "`has no valid certificate (Hostname mismatch`", 2),
    Row(
        "insecure_tls set to true instead of its confirmation",
        "refuses the setting",
        f"one sentence with the expected words: `setting 'insecure_tls' is True: expected '{WORDS}'`",
        2,
        options=("--set", "insecure_tls=true"),
    ),
)
def test_an_unproven_server_is_not_asked(program: Program, tmp_path: Path, row: Row, certificate: Path) -> None:
    """Nothing was sent to the server, and no step was recorded."""
    with program.server(certificate=certificate) as server:
        url, env = server.base_url, {}
        if "another" in row.fault:
            url, env = url.replace("127.0.0.1", "localhost"), {"SSL_CERT_FILE": str(certificate)}
        row.check_seen(program.run(url, tmp_path / "run", *row.options, code=row.code, env=env))
        assert server.stats()["requests"] == 0
    assert journal_lines(tmp_path / "run") == 0


@rows(
    Row(
        "a base URL with https for an http server",
        "stops at once",
        "one sentence: `does not answer in TLS; if the server speaks http, its base URL is http://`",
        2,
    ),
    Row("a base URL with an impossible port", "the same", "one sentence: `Port out of range 0-65535`", 2),
    Row(
        "a proxy with a password in the setting `proxy`, which a run would store",
        "refuses the setting, and does not repeat it",
        "one sentence: `the setting 'proxy' must not hold a user or a password; set trust_env=true`",
        2,
        options=("--set", "proxy=http://user:sk-proj+Zm9v@127.0.0.1:3128"),
    ),
)
def test_an_address_that_cannot_work_is_one_sentence(program: Program, tmp_path: Path, row: Row) -> None:
    """No step was recorded, and no part of a password is printed."""
    with program.server() as server:
        url = server.base_url.replace("http:", "https:") if "https" in row.fault else server.base_url
        url = re.sub(r":\d+/", ":99999/", url) if "port" in row.fault else url
        message = program.run(url, tmp_path / "run", *row.options, code=row.code)
    row.check_seen(message)
    assert "Zm9v" not in message and not any(path.read_bytes() for path in tmp_path.glob("run/steps.jsonl"))


@rows(
    Row("a self-signed certificate in SSL_CERT_FILE", "verifies the server against the file in SSL_CERT_FILE", "as usual"),
    Row(
        "an https server without a valid certificate, accepted by `insecure_tls`",
        "sends requests without verification; the manifest has the setting",
        "as usual",
        options=("--set", f"insecure_tls={WORDS}"),
    ),
)
def test_a_server_is_trusted_when_the_user_confirms_it(program: Program, tmp_path: Path, row: Row, certificate: Path) -> None:
    """Answers and figures equal those of a clean run."""
    env = {} if row.options else {"SSL_CERT_FILE": str(certificate)}
    with program.server(certificate=certificate) as server:
        row.check_seen(program.run(server.base_url, tmp_path / "run", *row.options, env=env))
    assert (WORDS in (tmp_path / "run" / "manifest.json").read_text(encoding="utf-8")) is bool(row.options)
    program.check_whole(tmp_path / "run")
