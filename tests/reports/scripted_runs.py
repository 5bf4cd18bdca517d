"""Runs of scripted models for the reports: who misses which steps is decided here."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from guieval.actions import Press
from guieval.journal import MANIFEST
from guieval.models import Request
from guieval.settings import RunConfig
from guieval.steps import Usage
from tests.scripted import ACTIONS, ScriptedEngine, make_episode, reply_with, run_scripted

HOME = Press(button="HOME")
EPISODES = tuple(f"e{number:02}" for number in range(12))
Missed = Callable[[str, int], bool]


def made_run(
    directory: Path,
    missed: Missed | Collection[tuple[str, int]] = (),
    *,
    episodes: Sequence[str] = EPISODES,
    rewrite: Callable[[dict[str, Any]], None] | None = None,
    usage: Callable[[Request], Usage | None] | None = None,
    **settings: Any,
) -> Path:
    """A run over episodes of four steps that presses HOME at the ``missed`` ones and is right at all others.

    ``rewrite`` changes the manifest afterwards, e.g. the model's name. ``usage``: the tokens that the server reports.
    """

    def policy(request: Request) -> str:
        task = request.task
        name = (task.episode_id, task.step_index)
        wrong = missed(*name) if callable(missed) else name in missed
        return reply_with(HOME if wrong else task.action)

    run_scripted(directory, [make_episode(name, ACTIONS) for name in episodes], ScriptedEngine(policy, usage=usage), **settings)
    if rewrite is not None:
        with edited(directory / MANIFEST) as manifest:
            rewrite(manifest)
    return directory


@contextmanager
def edited(file: Path) -> Iterator[Any]:
    """What is in a JSON file, or the lines of a ``.jsonl`` file without their sums: written back as it is left."""
    text, several = file.read_text(), file.suffix == ".jsonl"
    values = [json.loads(line) for line in (text.splitlines() if several else [text])]
    for value in values:
        value.pop("crc32", None)
    yield values if several else values[0]
    file.write_text("".join(json.dumps(value) + "\n" for value in values))


def named(model: str, **more: Any) -> Callable[[dict[str, Any]], None]:
    """Gives a run another model's name, and its configuration ``more``."""

    def rewrite(manifest: dict[str, Any]) -> None:
        manifest["model"]["name"] = model
        manifest["config"] = RunConfig(**manifest["config"]).having(model=model, **more).model_dump(mode="json")

    return rewrite


def reported(prompt: int, completion: int) -> Callable[[Request], Usage]:
    """A server that counts so many tokens of every request."""
    return lambda _: Usage(prompt_tokens=prompt, completion_tokens=completion)
