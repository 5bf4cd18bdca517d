from __future__ import annotations

from pathlib import Path


def resolve_split(spec: str) -> set[str]:
    path = Path(__file__).parent / "splits" / f"{spec}.txt"
    if not path.exists():
        raise FileNotFoundError(f"Split list file not found: {path}")
    return {line for line in path.read_text(encoding="utf-8").split("\n") if line and not line.startswith("#")}
