"""Checks the environment of a training: the extra is installed, and TRL or verl is a supported version.

Neither has a public hook for semi-online rollouts or the choice of groups (TRL's ``rollout_func`` keeps one row per prompt, and
its environments cannot rewrite the policy's own turns), so private methods are overridden or called as they are in these
versions. Of transformers and accelerate newer versions may be installed: :mod:`.trainers.behaviour` tests them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from importlib.metadata import version

from guieval.errors import UsageError

SUPPORTED = "trl>=1.16,<1.17"
PACKAGES = ("torch", "transformers", "trl", "accelerate", "peft", "datasets", "torchvision")
SUPPORTED_VERL = "verl>=0.9.1,<0.10"
VERL_PACKAGES = ("torch", "transformers", "ray", "tensordict", "transfer_queue", "verl")


def require_extra() -> None:
    """:class:`UsageError` with the pip line unless all packages of the extra are installed; none of them is imported."""
    _require_packages("training", PACKAGES, "train")


def require_trl() -> None:
    """:class:`UsageError` naming the supported versions unless one of them is installed."""
    _require_version(SUPPORTED)


def require_verl() -> None:
    """:class:`UsageError` unless the extra is installed, with a supported version of verl."""
    _require_packages("training with verl", VERL_PACKAGES, "verl")
    _require_version(SUPPORTED_VERL)


def require_behaviour(holds: bool, name: str, does: str) -> None:
    """:class:`UsageError` unless an internal ``holds``; ``does`` completes the sentence "NAME no longer ..."."""
    if not holds:
        raise UsageError(f"{name} no longer {does}: {_advice(SUPPORTED)}")


def _require_packages(purpose: str, packages: Iterable[str], extra: str) -> None:
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(f"{purpose} needs the package {missing[0]!r}: pip install 'guieval[{extra}]'")


def _require_version(supported: str) -> None:
    from packaging.requirements import Requirement  # all packages of both extras need it

    wanted = Requirement(supported)
    if not wanted.specifier.contains(version(wanted.name), prereleases=True):
        raise UsageError(_advice(supported))


def _advice(supported: str) -> str:
    package = supported.partition(">")[0]
    return (
        f"the installed {package} is {version(package)}, and guieval relies on internals as they are in {supported}: "
        f"pip install '{supported}'"
    )
