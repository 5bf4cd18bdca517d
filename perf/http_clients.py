"""CPU per request of three HTTP clients at the load of a run: 64 at once, one screenshot of 460 KiB whose base64 is ready.

The server is a process of its own that answers at once. The clients take turns, so that other work on the machine disturbs
all of them alike; the figure is the process's own CPU time.

    pip install httpx 'openai[aiohttp]'
    python -m perf.http_clients
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

IN_FLIGHT = 64
REQUESTS, ROUNDS = 400, 5
IMAGE = "data:image/png;base64," + base64.b64encode(os.urandom(460 * 1024)).decode()
MESSAGES: list[Any] = [
    {"role": "user", "content": [{"type": "text", "text": "go"}, {"type": "image_url", "image_url": {"url": "@"}}]}
]
BEFORE, AFTER = json.dumps({"model": "m", "messages": MESSAGES}).encode().split(b"@")
HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "Content-Type": "application/json"}
ANSWER = json.dumps(
    {
        **{"id": "chatcmpl-x", "object": "chat.completion", "created": 1, "model": "m"},
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "click(5, 5)"}, "finish_reason": "stop"}],
    }
)
SERVER = """
import asyncio, sys

async def handle(reader, writer):
    while head := await reader.readline():
        while not head.endswith(b"\\r\\n\\r\\n"):
            head += await reader.readline()
        await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\\r\\n")[0]))
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\n")
        writer.write(b"Content-Length: %d\\r\\n\\r\\n%s" % (len(sys.argv[1]), sys.argv[1].encode()))

async def main():
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""
Ask = Callable[[], Awaitable[object]]
IMAGE_BYTES = IMAGE.encode()


@asynccontextmanager
async def over_httpx(url: str) -> AsyncIterator[Ask]:
    """One client for each connection: a pool that all share scans its 64 connections twice for each request."""
    import httpx

    idle: list[httpx.AsyncClient] = []

    async def ask() -> None:
        client = idle.pop() if idle else httpx.AsyncClient(verify=False, timeout=None, trust_env=False)
        await client.post(f"{url}/chat/completions", content=b"".join((BEFORE, IMAGE_BYTES, AFTER)), headers=HEADERS)
        idle.append(client)

    yield ask
    for client in idle:
        await client.aclose()


@asynccontextmanager
async def over_aiohttp(url: str) -> AsyncIterator[Ask]:
    """The client of this toolkit."""
    from guieval.engines.http.connections import Connections

    connections = Connections(url, trust_env=False, verify_tls=True)

    async def ask() -> None:
        body = b"".join((BEFORE, IMAGE_BYTES, AFTER))
        await connections.exchange("POST", f"{url}/chat/completions", HEADERS, body, 65_536)

    yield ask
    await connections.close()


@asynccontextmanager
async def over_openai(url: str) -> AsyncIterator[Ask]:
    """The openai SDK with its aiohttp transport, which writes the body itself."""
    from openai import AsyncOpenAI, DefaultAioHttpClient

    messages = json.loads(json.dumps(MESSAGES).replace("@", IMAGE))
    async with AsyncOpenAI(base_url=url, api_key="k", http_client=DefaultAioHttpClient()) as client:
        yield lambda: client.chat.completions.create(model="m", messages=messages)


def cpu() -> float:
    """CPU milliseconds of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return 1000 * (usage.ru_utime + usage.ru_stime)


async def measure(client: Callable[[str], Any], url: str) -> float:
    """CPU milliseconds per request."""
    left = iter(range(REQUESTS))
    async with client(url) as ask:

        async def work() -> None:
            for _ in left:
                await ask()

        await ask()
        start = cpu()
        await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
        return (cpu() - start) / REQUESTS


def main() -> None:
    """Measure the clients in turn and print the median of each."""
    clients = {"httpx": over_httpx, "aiohttp": over_aiohttp, "openai SDK over aiohttp": over_openai}
    figures: dict[str, list[float]] = {name: [] for name in clients}
    with subprocess.Popen([sys.executable, "-c", SERVER, ANSWER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        try:
            for _ in range(ROUNDS):
                for name, client in clients.items():
                    figures[name].append(asyncio.run(measure(client, url)))
        finally:
            server.terminate()
    for name, values in figures.items():
        print(f"{name:24} {statistics.median(values):.2f} ms ({min(values):.2f} to {max(values):.2f})")


if __name__ == "__main__":
    main()
