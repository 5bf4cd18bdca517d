"""One desktop: a display with a window manager in a sandbox, driven by commands that a shell in it reads from a pipe."""

from __future__ import annotations

import asyncio
import base64
import io
import os
import struct
import tarfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from PIL import Image

from guieval.connectors.desktop.home import SETTINGS
from guieval.connectors.desktop.sandbox import ACCOUNT, HOME, MEGABYTE, SCREEN, TaskLimits, sandbox_command
from guieval.errors import EnvironmentFailure

MOST_BYTES = 64 * MEGABYTE
"""The most bytes that a command may print, in base64."""
_NOT_READ = "--exclude=./.cache --exclude=./.config/libreoffice"
MOST_HOME_BYTES = 16 * MEGABYTE
"""How much of HOME is read."""
QUIET_LOOKS = 4
"""The screen has settled when so many looks in a row show the same picture and no process that works."""
LOOK_SECONDS = 0.05
MOST_LOOKS = 160
WATCH_SECONDS = 1.0
"""How often the memory of a task is compared with its limit while nothing else happens."""
PAGE_BYTES = 4096
_OWN = frozenset({"sh", "grep", "cksum", "base64", "timeout", "bwrap"})
"""Names of the processes that look, which say nothing about the desktop."""
_BEGIN = f"""exec 2>/dev/null
mkdir -p /tmp/.X11-unix
Xvfb :0 -screen 0 {{width}}x{{height}}x24 -fbdir {SCREEN.rpartition("/")[0]} -nolisten tcp -noreset > /dev/null &
until xdotool getmouselocation; do sleep 0.05; done > /dev/null
openbox > /dev/null &
until xdotool get_num_desktops; do sleep 0.05; done > /dev/null
"""


class _Look(NamedTuple):
    """The screen's digest, the processor time of all threads, whether one works, and their memory in bytes."""

    screen: bytes
    ticks: int
    working: bool
    memory: int


class DesktopSession:
    """A desktop whose shell is ``process``. Methods raise :class:`EnvironmentFailure` when it has ended."""

    def __init__(self, process: Process, size: tuple[int, int], limits: TaskLimits) -> None:
        self.size, self._process, self._limits = size, process, limits
        self._turn = asyncio.Lock()
        self._failure = "the desktop has ended"
        self._watch = asyncio.create_task(self._watched())

    @classmethod
    async def start(cls, size: tuple[int, int], limits: TaskLimits, files: Mapping[str, str | bytes]) -> DesktopSession:
        """A new desktop of ``size`` in pixels, with ``files`` in HOME (a name that ends in ``/`` is a folder)."""
        process = await asyncio.create_subprocess_exec(
            *sandbox_command(limits),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            limit=MOST_BYTES,
            env={"PATH": os.environ.get("PATH", os.defpath)},  # inside, the environment of the first process can be read
        )
        session = cls(process, size, limits)
        try:
            await session.run(f"echo {ACCOUNT} > /etc/passwd; tar x -C {HOME}", _packed({**SETTINGS, **files}))
            width, height = size
            assert process.stdin is not None
            process.stdin.write(_BEGIN.format(width=width, height=height).encode())
            await session.run("true")
        except BaseException as error:
            await session.close()
            if isinstance(error, EnvironmentFailure) and process.stderr is not None:
                said = (await process.stderr.read()).decode(errors="replace").strip()
                raise EnvironmentFailure(f"no sandbox can be made for a desktop: {said[:300] or error}") from None
            raise
        return session

    async def run(self, script: str, given: bytes = b"") -> bytes:
        """What a shell script prints in the sandbox, with ``given`` as its standard input."""
        assert self._process.stdin is not None and self._process.stdout is not None
        encoded = base64.b64encode(given).decode()
        async with self._turn:
            try:
                self._process.stdin.write(f"base64 -d <<'' | ( {script} ) | base64 -w0; echo\n{encoded}\n\n".encode())
                await self._process.stdin.drain()
                line = await self._process.stdout.readline()
            except (OSError, ValueError):  # ValueError: more than MOST_BYTES
                line = b""
            except asyncio.CancelledError:
                self._end("the desktop was interrupted")
                raise
        if not line.endswith(b"\n"):
            raise EnvironmentFailure(self._failure)
        return base64.b64decode(line)

    async def launch(self, command: str) -> None:
        """Start an application and wait for its window."""
        count = "xdotool search --onlyvisible --name . | wc -l"
        before = int(await self.run(count))
        await self.run(f"cd {HOME}; {command} > /dev/null < /dev/null &")
        for _ in range(MOST_LOOKS):
            if int(await self.run(count)) > before:
                break
            await asyncio.sleep(LOOK_SECONDS)

    async def begin(self, script: str) -> None:
        """Run a script in the shell itself, so that its variables are those of all that runs after it."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{script}\n".encode())
        await self.run("true")

    async def settled(self) -> bytes:
        """The screen as PNG, once nothing moves in it and no process works, or after :data:`MOST_LOOKS` looks."""
        last, quiet = await self._look(), 0
        for _ in range(MOST_LOOKS):
            await asyncio.sleep(LOOK_SECONDS)
            now = await self._look()
            same = (now.screen, now.ticks) == (last.screen, last.ticks) and not now.working
            last, quiet = now, quiet + 1 if same else 0
            if quiet == QUIET_LOOKS:
                break
        return await asyncio.to_thread(_png, await self.run(f"cat {SCREEN}"), self.size)

    async def home(self) -> dict[str, bytes]:
        """Files below HOME by their paths, those of applications left out; a folder ends in ``/`` and is empty.

        An executable file has a second entry, ``PATH//executable``. Links and other special files are left out.
        """
        packed = await self.run(f"tar c -C {HOME} {_NOT_READ} . | head -c {MOST_HOME_BYTES}")
        return _unpacked(packed)

    async def clipboard(self) -> bytes:
        """The text on the clipboard; empty if there is none, or its owner does not give it within two seconds."""
        return await self.run("timeout 2 xclip -o -selection clipboard | head -c 65536")

    async def close(self) -> None:
        """End the desktop and every process in it."""
        self._watch.cancel()
        self._end(self._failure)
        await self._process.wait()

    async def _look(self) -> _Look:
        out = await self.run(f"cksum < {SCREEN}; grep -s . /proc/[0-9]*/task/[0-9]*/stat")
        screen, *lines = out.split(b"\n")
        ticks = memory = 0
        working = False
        for line in lines:  # /proc/PROCESS/task/THREAD/stat:THREAD (NAME) STATE ...
            path, _, rest = line.partition(b"(")
            name, _, rest = rest.rpartition(b")")
            fields = rest.split()
            if len(fields) < 22 or name.decode(errors="replace") in _OWN:
                continue
            _, _, process, _, thread, _ = path.split(b"/")
            ticks += int(fields[11]) + int(fields[12])
            memory += int(fields[21]) * PAGE_BYTES * (process == thread)
            working |= fields[0] in (b"R", b"D")
        if memory > self._limits.memory * MEGABYTE:
            self._end(f"the task's processes use {memory // MEGABYTE:,} MB; the limit is {self._limits.memory:,}")
        return _Look(screen, ticks, working, memory)

    async def memory(self) -> int:
        """The resident memory of all processes in bytes; pages that several share count once for each."""
        return (await self._look()).memory

    async def _watched(self) -> None:
        with suppress(EnvironmentFailure):
            while True:
                await asyncio.sleep(WATCH_SECONDS)
                await self._look()

    def _end(self, why: str) -> None:
        self._failure = why
        with suppress(ProcessLookupError):
            self._process.kill()


def _packed(files: Mapping[str, str | bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(path.rstrip("/"))
            content = text if isinstance(text, bytes) else text.encode()
            if path.endswith("/"):
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def _unpacked(packed: bytes) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    # an archive that was cut has what comes before the cut
    with suppress(tarfile.TarError, EOFError), tarfile.open(fileobj=io.BytesIO(packed), mode="r|") as archive:
        for entry in archive:
            path = entry.name.removeprefix("./")
            if entry.isdir() and path != ".":
                found[f"{path}/"] = b""
            elif entry.isreg() and (file := archive.extractfile(entry)) is not None:
                found[path] = file.read()
                if entry.mode & 0o100:
                    found[f"{path}//executable"] = b""
    return found


def _png(screen: bytes, size: tuple[int, int]) -> bytes:
    """Xvfb's picture (an XWD file of 32 bits a pixel: blue, green, red, nothing) as PNG."""
    width, height = size
    try:
        header = struct.unpack(">25I", screen[:100])
        start, row = header[0] + 12 * header[19], header[12]
        pixels = np.frombuffer(screen, np.uint8, row * height, start).reshape(height, row // 4, 4)[:, :width, 2::-1]
    except (struct.error, ValueError):
        raise EnvironmentFailure("the desktop shows no screen") from None
    stream = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(stream, "PNG", compress_level=1)
    return stream.getvalue()
