"""``guieval mock-server``: its options reach the server, and a mistake in one is reported by the option's name."""

from __future__ import annotations

import pytest

from guieval.testing.mock_server import MockSettings
from tests.command_line import CommandLine
from tests.rows import every_row

KEY = "mock-key-0123456789"


@every_row(
    ("options", "settings"),
    [
        ("", {"port": 8000}),
        ("--port 0 --policy fixed --reply hi", {"port": 0, "policy": "fixed", "reply": "hi"}),
        ("--served-model a --served-model b --check-model", {"served_models": ("a", "b"), "check_model": True}),
        ("--api-key-env MOCK_KEY --longest-body 400", {"api_key": KEY, "longest_body": 400}),
        ("--first-fault 503 --first-fault html --faults-after 1", {"first_faults": ("503", "html"), "faults_after": 1}),
        ("--slots 3", {"concurrency": 3}),
    ],
)
def test_an_option_reaches_the_server(
    options: str, settings: dict[str, object], guieval: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What each setting does, and how a server runs and ends, is tested in tests/testing/test_mock_server.py."""
    served: list[MockSettings] = []
    monkeypatch.setenv("MOCK_KEY", KEY)
    monkeypatch.setattr("guieval.cli.running.mock_server.serve", served.append)
    assert guieval("mock-server", *options.split()).code == 0
    assert served == [MockSettings.model_validate({"port": 8000, **settings})]


def test_mistakes_name_the_option(guieval: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    for words, printed in (
        (("--slots", "0"), "--slots is 0"),
        (("--malformed-kind", "odd"), "--malformed-kind is 'odd'"),
        (("--first-fault", "odd"), "unknown fault 'odd'"),
        (("--api-key-env", "NO_SUCH_KEY"), "--api-key-env is 'NO_SUCH_KEY'"),
        (("--longest-body", "0"), "--longest-body is 0"),
    ):
        assert printed in guieval.sentence("mock-server", *words)
