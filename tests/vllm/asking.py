"""The three ways to query the tiny model, with one function, so that a test holds for each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from guieval.models import Engine, Request, Response

Ask: TypeAlias = Callable[[Sequence[Request]], list[Response]]
"""All requests at once, each through the same engine; the replies in their order."""


class MakeEngine(Protocol):
    def __call__(self) -> Engine: ...


def asking(make: MakeEngine) -> Ask:
    """Ask through an engine that is made for this one call, in an event loop of its own, as every mode of a run has."""

    def ask(requests: Sequence[Request]) -> list[Response]:
        async def main() -> list[Response]:
            engine = make()
            try:
                return list(await asyncio.gather(*(engine.generate(request) for request in requests)))
            finally:
                await engine.close()

        return asyncio.run(main())

    return ask


def texts(replies: Sequence[Response]) -> list[str]:
    return [reply.text for reply in replies]


def counts(reply: Response) -> tuple[Any, ...]:
    """What must be equal for every engine: tokens of prompt and answer, and why it ended."""
    usage = reply.usage
    return (usage.prompt_tokens, usage.completion_tokens, reply.finish_reason) if usage is not None else ()
