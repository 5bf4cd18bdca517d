"""Why a vLLM server did not start: the last exception of its worker or engine process, which its log's last lines bury.

The API process only says that the engine failed; the processes that load the model say why, far above.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

_CAUSE = re.compile(
    r"^\((?P<process>EngineCore|\w*Worker)[^)]*\)\s+(?:ERROR [^\]]*\]\s+)?"
    r"(?P<cause>(?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt)\b(?::.*)?)$"
)
_MODULE = re.compile(r"No module named '(?P<module>[^'.]+)")


def cause(lines: list[str]) -> str | None:
    """The last exception in a server's log that a worker printed, else the engine; ``None`` if there is none.

    When a worker fails, the engine's own exception only says that it did.
    """
    found = {match["process"] == "EngineCore": match["cause"] for line in lines if (match := _CAUSE.match(line))}
    return found.get(False, found.get(True))


def missing_packages() -> Iterator[str]:
    """A line for each package that the installed vLLM requires and this Python lacks; none without vLLM."""
    try:
        needed = [Requirement(each) for each in requires("vllm") or []]
    except PackageNotFoundError:
        return
    for requirement in needed:
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            version(requirement.name)
        except PackageNotFoundError:
            name = requirement.name
            yield f"{name} (needed by vllm) is not installed: pip install '{name}{requirement.specifier}'"


def told_before(found: str) -> str | None:
    """The line of ``guieval doctor`` that names the module which the exception misses."""
    module = _MODULE.search(found)
    if module is None:
        return None
    return next((line for line in missing_packages() if _plain(line.split()[0]).startswith(_plain(module["module"]))), None)


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
