"""The rows in a checkpoint: they come back equal, and a checkpoint of others runs no code."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch

from guieval.training.data.examples import SizedPicture
from guieval.training.trainers.groups import KEPT, Batch
from guieval.training.trainers.rows import CompletedPrompt


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path("ran"),)


def load(file: Path) -> object:
    with torch.serialization.safe_globals(KEPT):
        return torch.load(file, weights_only=True)


def test_rows_of_a_checkpoint_come_back_and_run_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pictures = (SizedPicture(Path("/screens"), "a.png", (8, 8), None),)
    types, tokens = {"types": torch.tensor([0, 1])}, {"old": torch.tensor([0.25])}
    row = CompletedPrompt(torch.tensor([1, 2]), torch.tensor([3]), 0.5, pictures, types, tokens)
    torch.save(Batch([[row]], 1, 3), tmp_path / "rows.pt")
    kept = load(tmp_path / "rows.pt")
    assert isinstance(kept, Batch) and (kept.trained, kept.tokens) == (1, 3)
    (back,) = kept.chunks[0]
    assert back.pictures == pictures and back.prompt.tolist() == [1, 2] and back.tokens["old"].tolist() == [0.25]
    torch.save(Evil(), tmp_path / "evil.pt")
    with pytest.raises(pickle.UnpicklingError):
        load(tmp_path / "evil.pt")
    assert not (tmp_path / "ran").exists()
