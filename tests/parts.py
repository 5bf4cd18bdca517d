"""The parts of a tier, timed: ``python tests/parts.py core|ci|all [PART...]``; `make test`, `test-ci` and `test-all` call it.

A part is a target of the Makefile. Its output goes to build/parts/PART.log, and is shown when it ends (that of the first lane
as it comes). All parts run even if one fails; the table at the end says how long each took. Parts of the tier ``all`` that
passed on the same files are not repeated, so that it can be stopped and called again. Only the standard library is used here.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "parts"
PASSED = LOGS / "passed.json"
TIERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "core": (("check",), ("lint", "types", "wheel")),
    "ci": (("check-ci",), ("test-vllm", "test-trainers")),
    "all": (
        ("check", "check-ci", "check-full", "kills", "fuzz"),
        (
            *("lint", "types", "types-all", "coverage", "wheel", "test-vllm", "test-gpu", "test-train", "test-verl"),
            *("test-learning", "test-plugins", "test-formats", "test-alone", "pyright", "resolve", "lowest"),
        ),
    ),
}
"""Targets in lanes: lanes run next to each other, the targets of a lane one after the other."""


@dataclass
class Done:
    """How a part ended."""

    part: str
    code: int
    seconds: float
    repeated: bool = True


def fingerprint() -> str:
    """Of every file that git tracks or would track, so that a part is repeated after any change."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    state = hashlib.sha256(sys.version.encode())
    for name in sorted(filter(None, listed.split(b"\0"))):
        file = ROOT / name.decode()
        state.update(name + b"\0" + (file.read_bytes() if file.is_file() else b"") + b"\0")
    return state.hexdigest()


def passed_before() -> list[str]:
    """The parts that passed on these same files."""
    try:
        kept = json.loads(PASSED.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return list(kept["parts"]) if kept["files"] == fingerprint() else []


def run(part: str, shown: bool) -> Done:
    """Make a target; its output goes to its log, and to the screen as it comes or, unless ``shown``, at the end."""
    start = time.monotonic()
    with (LOGS / f"{part}.log").open("w", encoding="utf-8") as log:
        target = subprocess.Popen(
            ["make", "--no-print-directory", part],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        assert target.stdout is not None
        for line in target.stdout:
            log.write(line)
            log.flush()
            if shown:
                print(line, end="", flush=True)
    done = Done(part, target.wait(), time.monotonic() - start)
    if not shown:
        text = (LOGS / f"{part}.log").read_text(encoding="utf-8")
        print(f"\n--- {part} ({done.seconds:.0f} s)\n{text if done.code else text[-600:]}", end="", flush=True)
    return done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tier", choices=TIERS)
    parser.add_argument("parts", nargs="*", help="only these parts of the tier")
    parser.add_argument("--again", action="store_true", help="repeat what has passed on the same files")
    given = parser.parse_args()
    lanes = TIERS[given.tier]
    names = [part for lane in lanes for part in lane]
    if unknown := set(given.parts) - {*names}:
        parser.error(f"no part {', '.join(sorted(unknown))} in {given.tier}; there are {', '.join(names)}")
    LOGS.mkdir(parents=True, exist_ok=True)
    files = fingerprint() if given.tier == "all" else ""
    kept = passed_before() if given.tier == "all" and not given.again else []
    ended: list[Done] = []
    recording = threading.Lock()

    def follow(lane: tuple[str, ...], shown: bool) -> None:
        for part in lane:
            if given.parts and part not in given.parts:
                continue
            done = Done(part, 0, 0, repeated=False) if part in kept else run(part, shown)
            with recording:
                ended.append(done)
                if given.tier == "all" and done.code == 0:
                    passed = {"files": files, "parts": sorted({*kept, *(each.part for each in ended if not each.code)})}
                    PASSED.write_text(json.dumps(passed), encoding="utf-8")

    start = time.monotonic()
    threads = [threading.Thread(target=follow, args=(lane, number == 0), daemon=True) for number, lane in enumerate(lanes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"\n{'part':16s} {'seconds':>8s}")
    for done in ended:
        took = f"{done.seconds:8.0f}  passed" if done.repeated else "          passed before"
        print(f"{done.part:16s} " + (f"{done.seconds:8.0f}  FAILED, see build/parts/{done.part}.log" if done.code else took))
    print(f"{'in all':16s} {time.monotonic() - start:8.0f}")
    return int(any(done.code for done in ended))


if __name__ == "__main__":
    sys.exit(main())
