"""Sets up an environment that heavy tests run in, once, and prints its interpreter: ``python tests/environment.py NAME``.

``NAME`` is a folder of tests with a ``requirements.txt``: ``vllm`` (real vLLM), ``training`` (TRL), ``training_verl``,
``plugins`` (Inspect, lmms-eval, evalscope, verifiers); ``gpu`` is vLLM with TRL. Such an environment takes gigabytes and
minutes, so it lies in the user's cache folder under a name that changes with its pins; later calls find it there. guieval
itself is installed in it as editable, from this checkout. Only the standard library is used here.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
HOOK = HERE / "torchvision_operators.py"
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"
SIZES = {"vllm": "3.6 GB", "training": "1.8 GB", "training_verl": "2.2 GB", "gpu": "3.9 GB", "plugins": "2.4 GB"}
"""The environments there are, and what each takes on disk."""


def requirements(name: str) -> list[Path]:
    """The pins of everything in the environment, its own torch included."""
    return [HERE / part / "requirements.txt" for part in (("vllm", "gpu") if name == "gpu" else (name,))]


def folder(name: str) -> Path:
    """Where the environment is, or will be: ``$GUIEVAL_NAME_ENV``, else below the cache folder."""
    if given := os.environ.get(f"GUIEVAL_{name.upper()}_ENV"):
        return Path(given)
    pinned = b"".join(file.read_bytes() for file in (*requirements(name), HOOK))
    pins = hashlib.sha256(pinned + sys.version.encode()).hexdigest()[:12]
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "guieval" / f"{name}-env-{pins}"


def set_up(name: str, environment: Path) -> Path:
    """Make the environment unless it is whole; its interpreter."""
    environment.parent.mkdir(parents=True, exist_ok=True)
    python = environment / "bin" / "python"
    with environment.with_name(environment.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        whole = environment / "whole"
        if not whole.exists():
            shutil.rmtree(environment, ignore_errors=True)
            _say(f"setting up the environment {name!r} in {environment} ({SIZES[name]}, a few minutes)")
            subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
            pins = requirements(name)
            torch = next(line for line in pins[0].read_text(encoding="utf-8").splitlines() if line.startswith("torch=="))
            try:
                _pip(python, "--no-deps", torch)
            except subprocess.CalledProcessError:  # the package index has no builds for CPUs; their makers' own has
                _pip(python, "--no-deps", "--index-url", CPU_WHEELS, torch)
            _pip(python, "--no-deps", *(word for file in pins for word in ("-r", str(file))))
            packages = _packages(environment)
            shutil.copy(HOOK, packages / "guieval_torchvision_operators.py")
            (packages / "guieval_torchvision_operators.pth").write_text("import guieval_torchvision_operators\n")
            whole.touch()
        if _installed_from(_packages(environment)) != ROOT:
            _pip(python, "--no-deps", "--no-build-isolation", "-e", str(ROOT))
    return python


def _packages(environment: Path) -> Path:
    return next((environment / "lib").glob("python3*")) / "site-packages"


def _installed_from(packages: Path) -> Path | None:
    for file in packages.glob("guieval-*.dist-info/direct_url.json"):
        return Path(json.loads(file.read_text(encoding="utf-8"))["url"].removeprefix("file://"))
    return None


def _pip(python: Path, *arguments: str) -> None:
    # Tests import a small part of these packages, whose bytecode Python writes then; pip would compile all of them.
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", *arguments]
    subprocess.run(command, check=True, stdout=sys.stderr)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] in SIZES:
        print(set_up(sys.argv[1], folder(sys.argv[1])))
    else:
        sys.exit(f"usage: python tests/environment.py {'|'.join(SIZES)}")
