"""Training data for other frameworks: prompts as the adapter writes them, screenshots as it sizes them, and the answer or step.

Formats, by the documentation of ms-swift (Customization/Custom-dataset) and of LLaMA-Factory (data/README.md): ``messages`` are
roles with contents, in which ``<image>`` is the place of the next path in ``images``; ``conversations`` are the ShareGPT form
of the same, with the system's text apart. A prompt may hold earlier turns of the assistant, on which nothing is to be trained:
LLaMA-Factory has ``mask_history`` for that, ms-swift ``--loss_scale last_round``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from guieval.errors import UsageError, known_name
from guieval.rewards.adapters.rows import TASK
from guieval.steps import StepTaskModel
from guieval.training.data.examples import Messages

Format: TypeAlias = Literal["ms-swift", "messages", "llama-factory", "sharegpt"]
FORMATS: tuple[Format, ...] = get_args(Format)
OF_CONVERSATIONS = frozenset({"llama-factory", "sharegpt"})
"""Formats that hold an answer for every prompt, and turns of user and assistant by turns."""
IMAGE = "<image>"
RESERVED = (IMAGE, "<video>", "<audio>", "<bbox>", "<ref-object>")
"""Texts that the frameworks replace."""
ROWS = "train.jsonl"


def check_format(name: str, *, answers: bool) -> Format:
    """The format of a name; :class:`UsageError` for another name, or one that cannot hold rows without ``answers``."""
    chosen = known_name("format", name, FORMATS)
    if chosen in OF_CONVERSATIONS and not answers:
        raise UsageError(
            f"format {name!r} has an answer for every prompt, and rows of reinforcement learning have none: use "
            "ms-swift or messages, or a training of kind sft"
        )
    return chosen


def check_folder(folder: Path) -> None:
    """Raise :class:`UsageError` for a folder that already has rows."""
    if (folder / ROWS).exists():
        raise UsageError(f"{str(folder)!r} already has {ROWS}: give another folder")


def write_rows(
    rows: Iterable[tuple[StepTaskModel, Messages, str | None]], folder: Path, form: Format, name: str
) -> Counter[str]:
    """Write the rows and their screenshots into ``folder``; how many were written, and why others were not.

    A row is a step, its prompt with decoded screenshots, and the answer or ``None``.
    """
    (folder / "images").mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    make: Callable[[Messages, str | None], dict[str, Any]] = _conversations if form in OF_CONVERSATIONS else _messages
    with (folder / ROWS).open("w", encoding="utf-8") as stream:
        for task, prompt, answer in rows:
            texts = [block["text"] for message in prompt for block in message["content"] if block["type"] == "text"]
            if taken := next((token for token in RESERVED for text in (*texts, answer or "") if token in text), None):
                counts[f"its text holds {taken}, which the frameworks replace"] += 1
                continue
            row = make(prompt, answer)
            row["images"] = [
                _saved(block["image"], folder) for message in prompt for block in message["content"] if block["type"] == "image"
            ]
            if answer is None:
                row[TASK] = task.model_dump_json()
            stream.write(json.dumps(row, ensure_ascii=False) + "\n")
            counts["written"] += 1
    if form == "llama-factory":
        (folder / "dataset_info.json").write_text(json.dumps({name: _DESCRIBED}, indent=2) + "\n", encoding="utf-8")
    return counts


_DESCRIBED = {
    "file_name": ROWS,
    "formatting": "sharegpt",
    "columns": {"messages": "conversations", "system": "system", "images": "images"},
    "tags": {"role_tag": "from", "content_tag": "value", "user_tag": "human", "assistant_tag": "gpt"},
}


def _messages(prompt: Messages, answer: str | None) -> dict[str, Any]:
    messages = [{"role": message["role"], "content": _text(message)} for message in prompt]
    return {"messages": messages if answer is None else [*messages, {"role": "assistant", "content": answer}]}


def _conversations(prompt: Messages, answer: str | None) -> dict[str, Any]:
    system = _text(prompt[0]) if prompt[0]["role"] == "system" else ""
    turns = [*prompt[bool(system) :], {"role": "assistant", "content": [{"type": "text", "text": answer}]}]
    for number, turn in enumerate(turns):
        if turn["role"] != ("user", "assistant")[number % 2]:
            raise UsageError(
                "the prompts of this model have two turns of one role in a row, which formats of conversations cannot hold: "
                "use ms-swift or messages"
            )
    speakers = {"user": "human", "assistant": "gpt"}
    return {"system": system, "conversations": [{"from": speakers[turn["role"]], "value": _text(turn)} for turn in turns]}


def _text(message: dict[str, Any]) -> str:
    return "".join(IMAGE if block["type"] == "image" else block["text"] for block in message["content"])


def _saved(image: Any, folder: Path) -> str:
    """The absolute path of a screenshot in the folder, written once."""
    digest = sha256(repr(image.size).encode() + image.tobytes()).hexdigest()[:24]
    file = (folder / "images" / f"{digest}.png").resolve()
    if not file.exists():
        image.save(file)
    return str(file)
