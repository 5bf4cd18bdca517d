"""What the files of a checkpoint and its prompts say of its wire format, for ``guieval dev new-adapter --from``.

Nothing is guessed here: what no file says is ``None`` or empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from guieval.data.files import read_text
from guieval.errors import UsageError

CONFIG = "config.json"
PROCESSORS = ("preprocessor_config.json", "processor_config.json")
TEMPLATES = ("chat_template.jinja", "chat_template.json", "tokenizer_config.json")
INSTRUCTION = ("instruction", "task", "goal", "query", "user_query", "user_task", "overall_goal", "description")
PAST = ("history", "previous_actions", "past_actions", "action_history", "progress")
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_ORIGIN = "# origin:"

Notation = Literal["tags", "json", "point", "object"]


@dataclass(frozen=True)
class PromptFile:
    """A prompt file: its name without ending, its text, and the line that states its origin."""

    name: str
    text: str
    origin: str

    @property
    def placeholders(self) -> list[str]:
        return list(dict.fromkeys(_PLACEHOLDER.findall(self.text)))

    def first(self, names: Sequence[str]) -> str | None:
        """The first of these placeholders that the text has."""
        return next((name for name in self.placeholders if name in names), None)


@dataclass(frozen=True)
class CheckpointFolder:
    """The files of a checkpoint, and its prompts: a ``system`` one, a ``user`` one, or both."""

    config: Mapping[str, Any]
    processor: Mapping[str, Any]
    template: str
    system: PromptFile | None
    user: PromptFile | None
    found_in: Mapping[str, str] = field(default_factory=dict)
    """The file in which ``config``, ``processor`` and ``template`` were found."""

    @classmethod
    def read(cls, folder: Path) -> CheckpointFolder:
        """Raises :class:`UsageError` if there is no prompt, or a file is not JSON."""
        if not folder.is_dir():
            raise UsageError(f"the folder {str(folder)!r} {'is a file' if folder.exists() else 'does not exist'}")
        prompts = [_prompt(file) for file in sorted(folder.glob("*.txt"))]
        if not prompts:
            raise UsageError(
                f"{str(folder)!r} has no prompt: put the makers' system and user prompts in it, e.g. system.txt and user.txt"
            )
        systems = [each for each in prompts if "system" in each.name]
        users = [each for each in prompts if each not in systems]
        for several in (systems, users):
            if len(several) > 1:
                names = ", ".join(f"{each.name}.txt" for each in several)
                raise UsageError(
                    f"{str(folder)!r} has several prompts for one turn: {names}; leave one, others are options of the adapter"
                )
        found: dict[str, str] = {}
        config = _first_json(folder, (CONFIG,), "config", found)
        processor = _first_json(folder, PROCESSORS, "processor", found)
        template = ""
        for name in TEMPLATES:
            if not template and (folder / name).is_file():
                text = read_text(folder / name)
                template = text if name.endswith(".jinja") else str(_object(folder / name, text).get("chat_template") or "")
                found["template"] = name
        image = processor.get("image_processor", processor)
        system, user = (each[0] if each else None for each in (systems, users))
        return cls(config, image, template, system, user, found)

    def of(self, family: str) -> CheckpointFolder:
        """The same for a family, whose name is put before that of a prompt which is called ``system`` or ``user`` alone."""
        system, user = (
            replace(each, name=f"{family}-{each.name}") if each is not None and each.name in ("system", "user") else each
            for each in (self.system, self.user)
        )
        return replace(self, system=system, user=user)

    @property
    def prompts(self) -> list[PromptFile]:
        return [each for each in (self.system, self.user) if each is not None]

    @property
    def words(self) -> str:
        """The texts of all prompts."""
        return "\n".join(each.text for each in self.prompts)

    @property
    def patch(self) -> int | None:
        """Side of the square of pixels that one image token covers."""
        vision = part if isinstance(part := self.config.get("vision_config"), Mapping) else {}
        side, merged = (
            self.processor.get(name) or vision.get(other)
            for name, other in (("patch_size", "patch_size"), ("merge_size", "spatial_merge_size"))
        )
        return side * merged if isinstance(side, int) and isinstance(merged, int) else None

    @property
    def pixels(self) -> tuple[int, int] | None:
        """Least and most pixels of an image."""
        size = edges if isinstance(edges := self.processor.get("size"), Mapping) else {}
        least = self.processor.get("min_pixels") or size.get("shortest_edge")
        most = self.processor.get("max_pixels") or size.get("longest_edge")
        return (least, most) if isinstance(least, int) and isinstance(most, int) and least < most else None

    @property
    def scale(self) -> tuple[int | None, str]:
        """The extent of the screen in a response, 999, 1000 or 1 and 0 for pixels, and the words that say so; ``None`` if no
        prompt says it."""
        for extent, words in _SCALES:
            if (found := re.search(words, self.words, re.IGNORECASE)) is not None:
                return extent, found[0]
        return None, ""

    @property
    def notation(self) -> Notation:
        """How a call is written: in tags of its own, as JSON in tags, a place alone, or an object of no known form."""
        for notation, mark in _NOTATIONS:
            if mark in self.words or (notation == "tags" and mark in self.template and "<tools>" in self.words):
                return notation
        of_an_agent = self.actions or _OF_AN_AGENT.search(self.words) or any(each.first(PAST) for each in self.prompts)
        return "object" if of_an_agent else "point"

    @property
    def actions(self) -> list[str]:
        """The names of actions that the tool of a prompt has."""
        return self._choices("action")

    @property
    def buttons(self) -> list[str]:
        return self._choices("button")

    def _choices(self, argument: str) -> list[str]:
        found = re.search(rf'"{argument}": \{{(?:[^{{}}]|\{{[^{{}}]*\}})*?"enum": \[([^\]]*)\]', self.words)
        return re.findall(r'"([^"\\]+)"', found[1]) if found else []

    @property
    def tool(self) -> str | None:
        found = re.search(r'"name": "(\w+)"', self.words)
        return found and found[1]

    def argument(self, *names: str) -> str | None:
        """The first of these names that the tool has an argument of."""
        return next((name for name in names if re.search(rf'"{name}": \{{', self.words)), None)

    @property
    def thinking_variable(self) -> str | None:
        """The chat template's switch of thinking."""
        found = re.search(r"\b(enable_thinking|thinking)\b", self.template)
        return found and found[1]


_SCALES = (
    (999, r"\b999\s?[x×]\s?999\b|\b0 (?:to|and|-) 999\b|\[0, ?999\]"),
    (1000, r"\b1000\s?[x×]\s?1000\b|\b0 ?(?:to|and|-) ?1000\b|\[0, ?1000\]"),
    (1, r"\b0 (?:to|and) 1(?:\.0)?\b(?!\.?\d)|\[0, ?1\]"),
    (0, r"\{width\} ?[x×] ?\{height\}|\bpixels? (?:from|coordinate)"),
)
_OF_AN_AGENT = re.compile(r"\b(?:scroll|swipe|drag)\b", re.IGNORECASE)
"""What a prompt that asks for a place alone does not speak of."""
_NOTATIONS: tuple[tuple[Notation, str], ...] = (("tags", "<function="), ("json", "<tool_call>"))


def _prompt(file: Path) -> PromptFile:
    text = read_text(file)
    first, _, rest = text.partition("\n")
    if first.startswith(_ORIGIN):
        return PromptFile(file.stem, rest, first)
    return PromptFile(file.stem, text, f"{_ORIGIN} not stated; copied from {file.name}")


def _object(file: Path, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{str(file)!r} is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise UsageError(f"{str(file)!r} must be a JSON object")
    return value


def _first_json(folder: Path, names: Sequence[str], what: str, found: dict[str, str]) -> dict[str, Any]:
    for name in names:
        if (folder / name).is_file():
            found[what] = name
            return _object(folder / name, read_text(folder / name))
    return {}
