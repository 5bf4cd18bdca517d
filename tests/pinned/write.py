"""Makes the pinned folders and texts again, on purpose only: ``python -m tests.pinned.write [NAME...]``.

A NAME is a folder below ``runs/``, ``benchmark`` or ``expert``; without names all of :data:`FOLDERS` are made. ``--printed``
writes only the texts, of the folders as they are: for a change of figures that is intended and named in the changelog.
"""

from __future__ import annotations

import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from guieval.journal import MANIFEST, SWEEP
from tests.environment import folder as environment_folder
from tests.environment import set_up
from tests.pinned.episodes import make_benchmark, write_expert
from tests.pinned.folders import FOLDERS, RESUMED
from tests.pinned.place import BENCHMARK, HERE, PRINTED, RUNS, placed
from tests.pinned.printed import read_printed, resumed_printed


def make(names: Sequence[str]) -> None:
    """Make these folders anew; the others stay."""
    RUNS.mkdir(exist_ok=True)
    with TemporaryDirectory() as temporary, placed(Path(temporary), RUNS) as place:
        for name in names:
            folder = FOLDERS[name]
            shutil.rmtree(Path("runs", name), ignore_errors=True)
            if folder.kind == "training":
                train(folder.made)
                drop_weights(Path("runs", name))
            else:
                done = place(folder.made)
                if done.code not in (0, 1):  # 1: some steps were meant to fail
                    sys.exit(f"{name}: {done.err}")
            for manifest in (path for kind in (MANIFEST, SWEEP) for path in Path("runs", name).rglob(kind)):
                # which kernel they ran on tells nothing
                manifest.write_text(
                    manifest.read_text(encoding="utf-8").replace(platform.platform(), "Linux"), encoding="utf-8"
                )
            if not folder.screens:
                shutil.rmtree(Path("runs", name, "screens"))
            shutil.rmtree(RUNS / name, ignore_errors=True)
            shutil.copytree(Path("runs", name), RUNS / name)
            print(f"made {name}")


def train(command: str) -> None:
    """Run a training in the environment that the tests of trainings have."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    python = set_up("training", environment_folder("training"))
    subprocess.run([str(python), "-m", "guieval", *shlex.split(command)], check=True, env=environment)


def drop_weights(training: Path) -> None:
    """Leave of each checkpoint the mark that it is complete; no command that reads a training needs more."""
    for file in [*training.glob("checkpoints/**/*"), *training.glob("final/*")]:
        if file.is_file() and file.name != "complete":
            file.unlink()


def make_expert() -> None:
    """Let the expert of MiniWoB++ act in a Chromium."""
    tasks = " ".join(f"--task {name}" for name in (HERE / "pages.txt").read_text(encoding="utf-8").split())
    with TemporaryDirectory() as temporary, placed(Path(temporary), None) as place:
        done = place(f"data record --bench miniwob --agent expert --out recorded {tasks}")
        if done.code:
            sys.exit(done.err)
        write_expert(Path("recorded"), HERE / "expert.json")


def write_printed() -> None:
    """Write what every command prints of the committed folders."""
    with TemporaryDirectory() as temporary, placed(Path(temporary)) as place:
        texts = [*read_printed(place), *((f"resumed-{kind}", resumed_printed(place, kind)) for kind in RESUMED)]
    shutil.rmtree(PRINTED, ignore_errors=True)
    PRINTED.mkdir()
    for name, text in texts:
        (PRINTED / f"{name}.txt").write_text(text, encoding="utf-8")


def main(arguments: Sequence[str]) -> None:
    names = [name for name in arguments if name != "--printed"]
    if unknown := set(names) - {"benchmark", "expert", *FOLDERS}:
        sys.exit(f"no pinned folder is called {', '.join(sorted(unknown))}; there are {', '.join(FOLDERS)}")
    if "benchmark" in names:
        shutil.rmtree(BENCHMARK, ignore_errors=True)
        make_benchmark(BENCHMARK)
    if "expert" in names:
        make_expert()
    if names and not FOLDERS.keys() & names:
        return
    if "--printed" not in arguments:
        make([name for name in FOLDERS if not names or name in names])
    write_printed()


if __name__ == "__main__":
    main(sys.argv[1:])
