"""The namespace in which a desktop runs, and the programs that it needs.

Everything of a task is inside: the display, the applications, HOME and temporary files, which are in memory. There is no
network, of the machine's files only programs, fonts and a few settings can be read, and nothing of the user's environment is
passed on. It ends with the process that started it, and all that runs in it ends with it. It is made by bubblewrap,
https://github.com/containers/bubblewrap.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from guieval.data.files import read_bytes
from guieval.errors import UsageError

PACKAGES = {
    "bwrap": "bubblewrap",
    "Xvfb": "xvfb",
    "openbox": "openbox",
    "xdotool": "xdotool",
    "xclip": "xclip",
    "gedit": "gedit",
    "pcmanfm": "pcmanfm",
    "xterm": "xterm",
    "mate-calc": "mate-calc",
    "localc": "libreoffice-calc",
    "lowriter": "libreoffice-writer",
    "libvclplug_gtk3lo.so": "libreoffice-gtk3",
    "prlimit": "util-linux",
}
"""The programs, and LibreOffice's part for the settings of GTK, with their packages in Debian and Ubuntu; fonts come with
``make desktop``."""
HOME = "/home/user"
ACCOUNT = f"user:x:1000:1000::{HOME}:/bin/bash"
"""The line of /etc/passwd, without which LibreOffice does not start."""
SCREEN = "/screen/Xvfb_screen0"
"""Xvfb's picture of the screen."""
MEGABYTE = 1_000_000
NOBODY = 65534
_SETTINGS = ("fonts", "alternatives", "X11", "xdg", "gtk-3.0", "ld.so.cache", "ld.so.conf", "mime.types", "libreoffice")
"""What of /etc can be read inside."""
_ROOTS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
_FONTS = ("sans", "monospace", "sans:lang=zh-cn")
_VARIABLES = {
    "HOME": HOME,
    "USER": "user",
    "SHELL": "/bin/bash",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "DISPLAY": ":0",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "GSETTINGS_BACKEND": "keyfile",  # settings are a file that a judge can read
    "DBUS_SESSION_BUS_ADDRESS": "disabled:",
    "NO_AT_BRIDGE": "1",
}


class TaskLimits(NamedTuple):
    """What a task may use: ``memory`` in MB for all its processes, ``seconds``, and the number of ``processes``."""

    memory: int
    seconds: int
    processes: int


def require_programs() -> None:
    """Raise :class:`UsageError` if a program is missing."""
    missing = [package for program, package in PACKAGES.items() if _found(program) is None]
    if missing:
        raise UsageError(
            f"environment 'desktop' needs packages that are not installed: {', '.join(missing)}; `make desktop` installs them"
        )


def _found(program: str) -> Path | None:
    """A program, or a file in the folder of LibreOffice's programs."""
    path = shutil.which(program)
    if path is None and (office := shutil.which("soffice")) is not None:
        path = shutil.which(program, os.F_OK, str(Path(office).resolve().parent))
    return None if path is None else Path(path).resolve()


@cache
def programs_digest() -> str:
    """A digest of the programs and the fonts that decide what a screenshot shows."""
    digest = sha256()
    for program in ("Xvfb", "openbox", "gedit", "pcmanfm", "xterm", "mate-calc", "versionrc"):
        path = _found(program)
        digest.update(b"" if path is None else read_bytes(path))
    for font in _FONTS:
        with_style = ["fc-match", "--format=%{file}", font]
        digest.update(Path(subprocess.run(with_style, capture_output=True, text=True, check=False).stdout).name.encode())
    return digest.hexdigest()[:8]


def sandbox_command(limits: TaskLimits) -> list[str]:
    """The command of a shell in a new sandbox, which reads its commands from the standard input."""
    part = limits.memory * MEGABYTE
    inside = [
        *("prlimit", f"--as={4 * part}", f"--fsize={part // 4}", f"--nproc={limits.processes}", "--core=0"),
        *("timeout", "-s", "KILL", str(limits.seconds), "sh"),
    ]
    # as root, the limit of processes would not hold
    below = [] if os.geteuid() else ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return [*below, "bwrap", *_namespaces(), *_files(part // 8), *inside]


def _namespaces() -> Iterable[str]:
    yield from ("--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
    yield from ("--hostname", "desktop", "--uid", "1000", "--gid", "1000", "--clearenv")
    for name, value in _VARIABLES.items():
        yield from ("--setenv", name, value)


def _files(size: int) -> Iterable[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for root in map(Path, _ROOTS):
        if root.is_symlink():
            yield from ("--symlink", str(root.readlink()), str(root))
        elif root.exists():
            yield from ("--ro-bind", str(root), str(root))
    for name in _SETTINGS:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    yield from ("--ro-bind-try", "/var/cache/fontconfig", "/var/cache/fontconfig", "--proc", "/proc", "--dev", "/dev")
    for folder in ("/tmp", HOME, str(Path(SCREEN).parent)):
        yield from ("--size", str(size), "--tmpfs", folder)
    yield from ("--chdir", HOME)
