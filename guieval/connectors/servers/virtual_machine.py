"""What a machine needs to run an environment's virtual machine in a Docker container: KVM, Docker, the image, and the ports.

Nothing is started or changed: the device file is looked at, ``docker`` lists what it has, and a port is tried.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

KVM = Path("/dev/kvm")
SECONDS = 20.0
"""The most time for Docker's answer."""
_LISTENING = 2.0


def lacks_machine(image: str, build: str, kvm: Path = KVM) -> Iterator[str]:
    """A sentence for each of KVM, Docker and its ``image`` that is missing; ``build`` is the command that makes the image."""
    if not kvm.exists():
        yield (
            f"KVM is missing: there is no {kvm}; switch virtualization on in the firmware, or use a host that passes it on "
            "to its guests."
        )
    elif not os.access(kvm, os.R_OK | os.W_OK):
        yield f"KVM may not be used: {kvm} cannot be opened by this user; add the user to its group, usually kvm."
    if shutil.which("docker") is None:
        yield "Docker is missing: there is no program docker; install Docker Engine."
    elif (failed := _docker("version", "--format", "{{.Server.Version}}")) is not None:
        yield f"Docker does not answer ({failed}); start its service."
    elif _docker("image", "inspect", "--format", "{{.Id}}", image) is not None:
        yield f"The image is missing: Docker has no {image}; {build}."


def lacks_servers(addresses: Iterable[str], start: str) -> Iterator[str]:
    """A sentence for each of the ``addresses`` at which nobody listens; ``start`` says how a server is started."""
    for address in addresses:
        parts = urlsplit(address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            socket.create_connection((parts.hostname or "", port), _LISTENING).close()
        except OSError as error:
            yield f"The port is closed: nothing answers at {address} ({error.strerror or error}); {start}."


def _docker(*words: str) -> str | None:
    """``None`` if Docker does this, else why not, in one line without a final stop."""
    try:
        done = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return f"no answer in {SECONDS:g} seconds"
    except OSError as error:
        return str(error)
    lines = done.stderr.strip().splitlines()
    return None if done.returncode == 0 else (lines[-1][:300].rstrip(".") if lines else f"exit code {done.returncode}")
