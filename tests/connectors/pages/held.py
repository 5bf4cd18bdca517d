"""A process of its own that has begun the first task of an environment and is killed in the middle of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.programs import started

SCRIPT = """
import asyncio
from guieval.actions import Type
from guieval.online.find import load_environment

async def hold():
    environment = load_environment({name!r}, **{options!r})
    device = await environment.open()
    await device.reset(environment.tasks()[0], 0)
    print("ready", flush=True)
    await {then}

asyncio.run(hold())
"""


@contextmanager
def held(name: str, *, then: str = "asyncio.sleep(600)", **options: Any) -> Iterator[subprocess.Popen[str]]:
    """The process, which awaits ``then`` on its ``device``."""
    script = SCRIPT.format(name=name, options=options, then=then)
    with started([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield process
