"""Sets up the environment that real vLLM runs in, once, and prints its interpreter: ``python tests/vllm/environment.py``.

It takes about 3.6 GB and three minutes, so it lies in the user's cache folder under a name that changes with its pins; later
calls find it there. guieval itself is installed in it as editable, from this checkout. Only the standard library is used here.
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
ROOT = HERE.parent.parent
REQUIREMENTS = HERE / "requirements.txt"
HOOK = HERE / "torchvision_operators.py"
CPU_WHEELS = "https://download.pytorch.org/whl/cpu"


def folder() -> Path:
    """Where the environment is, or will be: ``$GUIEVAL_VLLM_ENV``, else below the cache folder."""
    if given := os.environ.get("GUIEVAL_VLLM_ENV"):
        return Path(given)
    pins = hashlib.sha256(REQUIREMENTS.read_bytes() + HOOK.read_bytes() + sys.version.encode()).hexdigest()[:12]
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "guieval" / f"vllm-env-{pins}"


def set_up(environment: Path) -> Path:
    """Make the environment unless it is whole; its interpreter."""
    environment.parent.mkdir(parents=True, exist_ok=True)
    python = environment / "bin" / "python"
    with environment.with_name(environment.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        whole = environment / "whole"
        if not whole.exists():
            shutil.rmtree(environment, ignore_errors=True)
            _say(f"setting up vLLM in {environment} (3.6 GB, a few minutes)")
            subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
            pins = REQUIREMENTS.read_text(encoding="utf-8").splitlines()
            torch = next(line for line in pins if line.startswith("torch=="))
            try:
                _pip(python, "--no-deps", torch)
            except subprocess.CalledProcessError:  # the package index has no builds for CPUs; their makers' own has
                _pip(python, "--no-deps", "--index-url", CPU_WHEELS, torch)
            _pip(python, "--no-deps", "-r", str(REQUIREMENTS))
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
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True, stdout=sys.stderr)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    print(set_up(folder()))
