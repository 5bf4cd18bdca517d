"""Connects to a Ray cluster: imports Ray, checks the address, and counts the GPUs that one worker needs."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from guieval.data.files import read_text
from guieval.errors import UsageError
from guieval.settings import RunConfig

GPU_ENGINES = frozenset({"vllm", "vllm-inprocess", "transformers"})
PARALLEL = ("tensor-parallel-size", "pipeline-parallel-size", "data-parallel-size")
"""Arguments of vLLM whose product is the number of GPUs that one server takes."""
CONNECT_SECONDS = 5.0
"""How long the head of a cluster may take to accept a connection."""
_OTHER_MACHINES = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Environment variable by which Ray lets other machines join, or (0) keeps to this one."""


def import_ray(*, alone: bool) -> Any:
    """Import Ray; ``alone``: for this machine only, so that its processes listen on loopback alone.

    Ray reads the variable when it is imported, under a name that is older than its use on Linux.

    Raises :class:`UsageError` when Ray is missing, or was imported before with ports open to other machines.
    """
    if alone and "ray" not in sys.modules:
        os.environ[_OTHER_MACHINES] = "0"
    try:
        import ray
        from ray._private.ray_constants import ENABLE_RAY_CLUSTER
    except ImportError:
        raise UsageError("--cluster ray needs Ray: pip install 'guieval[cluster]'") from None
    if alone and ENABLE_RAY_CLUSTER and not ray.is_initialized():
        raise UsageError(
            f"Ray was imported before guieval, so that its ports would be open to other machines: set {_OTHER_MACHINES}=0 "
            "before importing it, or start a cluster yourself and give its --cluster-address"
        )
    return ray


def connect(ray: Any, address: str) -> bool:
    """Connect to the cluster at ``address``; ``False`` if Ray is connected already.

    Raises :class:`UsageError` when no cluster can be reached there.
    """
    if ray.is_initialized():
        return False
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    more: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
    reached = address
    try:
        reached = _resolved(address)
        with _signals_as_they_are():
            ray.init(address=reached, log_to_driver=False, logging_level="ERROR", **more)
    except (OSError, RuntimeError, ValueError) as error:
        why = " ".join(str(error).split())[:200]
        if address == "auto":
            raise UsageError(
                f"no Ray cluster is found from here ({why}); start one with `ray start --head`, name it with "
                "--cluster-address HOST:PORT, or say --cluster-address local for this machine alone"
            ) from None
        raise UsageError(f"--cluster-address {reached!r} cannot be used: {why}") from None
    return True


def gpus_of_one(config: RunConfig) -> int:
    """GPUs that one worker takes: as many as its server is spread over, none if servers run elsewhere."""
    if config.server.engine not in GPU_ENGINES:
        return 0
    if config.server.engine == "transformers":
        return 1
    from guieval.registry import model_config

    given = {**model_config(config.model.name, config.model.adapter).vllm, **config.server.vllm}
    named = {str(name).replace("_", "-"): value for name, value in given.items()}
    return math.prod(int(named.get(name) or 1) for name in PARALLEL)


def _resolved(address: str) -> str:
    """The address for Ray, after a test connection: Ray itself would wait for minutes, or for ever.

    Raises ``ValueError`` for a malformed address, and ``OSError`` when no server answers.
    """
    if address == "local" or address.startswith("ray://"):
        return address
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or _latest()
        if address in ("auto", "local") or address.startswith("ray://"):
            return address
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"expected auto, local or HOST:PORT, got {address!r}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise OSError(f"no server answers at {address}: {error.strerror or error}") from None
    return address


def _latest() -> str:
    """The address of the cluster that this machine joined last, from Ray's own file; ``auto`` if there is no such file."""
    file = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray" / "ray_current_cluster"
    try:
        return read_text(file).strip() or "auto"
    except OSError:
        return "auto"


@contextlib.contextmanager
def _signals_as_they_are() -> Iterator[None]:
    """Restore the handler of SIGTERM: Ray replaces it by one that ends the process before the command line can report."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)
