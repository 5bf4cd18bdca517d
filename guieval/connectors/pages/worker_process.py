"""A worker in a Python of its own, which has packages that guieval's lacks: it answers each line of JSON with another."""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from typing import Any

from guieval.errors import EnvironmentFailure

MOST_BYTES = 64 * 1024 * 1024
"""The most bytes of an answer."""


class WorkerProcess:
    """A running worker; ``name`` is what it works for, in sentences about it."""

    def __init__(self, process: Process, name: str) -> None:
        self._process, self._name = process, name

    @classmethod
    async def begun(cls, command: Sequence[str], name: str, environment: Mapping[str, str] | None = None) -> WorkerProcess:
        """Start it; ``environment`` are all its variables, by default those of this process."""
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=MOST_BYTES, env=environment
        )
        return cls(process, name)

    async def ask(self, **request: Any) -> dict[str, Any]:
        """Its answer; :class:`EnvironmentFailure` if it has ended or says that it failed."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            await self._process.stdin.drain()
            answer: dict[str, Any] = json.loads(await self._process.stdout.readline())
        except (OSError, ValueError):
            raise EnvironmentFailure(f"{self._name}: the process has ended") from None
        if "failed" in answer:
            raise EnvironmentFailure(f"{self._name} failed: {answer['failed']}")
        return answer

    async def close(self) -> None:
        """Let it end, for at most ten seconds."""
        if self._process.returncode is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                await asyncio.wait_for(self._process.wait(), timeout=10)
            except TimeoutError:
                self._process.kill()
                await self._process.wait()
