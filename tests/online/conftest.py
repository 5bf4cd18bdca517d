"""Limits that end a hang, out of the reach of what only takes long on a busy machine."""

from __future__ import annotations

import pytest

from tests.waiting import PATIENCE


@pytest.fixture(autouse=True)
def distant_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here lets one of these pass."""
    for name in (
        "conformance.environments.SECONDS",
        "connectors.pages.browsergym.LISTING_SECONDS",
        "connectors.pages.webarena_infinity.START_SECONDS",
        "connectors.pages.webarena_infinity.VERIFY_SECONDS",
        "connectors.servers.service.LISTING_SECONDS",
    ):
        monkeypatch.setattr(f"guieval.{name}", PATIENCE)
