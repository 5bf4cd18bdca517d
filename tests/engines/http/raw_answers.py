"""A server that sends whatever bytes a test gives it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from guieval.models import Request, Response
from tests.engines.asking import asked, engine_for, listening


def ask_raw(payloads: list[bytes], request: Request, **changes: Any) -> Response:
    """Ask a server that answers its n-th connection with the n-th of ``payloads`` (the last one for all later), then closes."""

    async def main() -> Response:
        served = 0

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal served
            head = await reader.readuntil(b"\r\n\r\n")
            lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
            if not lengths:  # a probe: the server is there
                writer.write(response(b"{}"))
            else:
                await reader.readexactly(int(lengths[0]))
                writer.write(payloads[min(served, len(payloads) - 1)])
                served += 1
            writer.close()

        async with listening(handle) as port:
            return (await asked(engine_for(f"http://127.0.0.1:{port}/v1", **changes), request))[0]

    return asyncio.run(main())


def response(body: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n".encode() + body


def completion(message: Any, **more: Any) -> bytes:
    return response(json.dumps({"choices": [{"message": message, "finish_reason": None}], **more}).encode())
