"""A scaffold: everything between a checkpoint and its success rate that is not the weights, as one named, hashed value.

Prompt, screenshots kept, form of the history, sampling, steps a task may take, what ends it, retries, waits and how
screenshots are encoded: published numbers of one checkpoint differ by up to 18 points with these. One YAML file each in
``configs/scaffolds/``; a checkpoint names its default one, and ``--scaffold`` another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from guieval.settings import SETTINGS
from guieval.settings.sampling import check_sampling

NO_SCAFFOLD = "none"
"""The name of the scaffold that sets nothing: the family's and the environment's own defaults."""
OFFICIAL = "-official"
"""How the name ends of a scaffold that is read from a repository's commit."""
OF_TASKS = ("budget", "ending", "wait", "typing", "success", "tasks")
"""Fields that act in tasks alone."""
ACTING = (*OF_TASKS, "retries", "encoding", "fold")
"""Fields that are no options of a family, no sampling and no switch."""
OPTION_FIELDS = {"prompt": "prompt", "max_images": "images", "history": "history"}
"""Options of families that have a field of their own, by the option's name."""
DESCRIBING = frozenset({"name", "source", "families", "claimed", "notes"})
"""Fields that decide no number."""


_PILLOWS_QUALITY = 75


class _OfScaffold(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScaffoldSource(_OfScaffold):
    """Where the settings are published."""

    repository: str = Field(pattern=r"^[\w.-]+/[\w.-]+$", description="OWNER/NAME on GitHub")
    commit: str = Field(pattern=r"^[0-9a-f]{7,40}$")
    files: tuple[str, ...] = Field((), description="files of it that state them")


class Budget(_OfScaffold):
    """The most steps of a task; the environment's own if neither is given."""

    flat: int | None = Field(None, ge=1, le=1000, description="steps of every task")
    per_complexity: float | None = Field(None, gt=0, le=1000, description="steps for each point of a task's complexity")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if self.flat is not None and self.per_complexity is not None:
            raise ValueError("a budget is flat or per_complexity, not both")
        return self


class Loop(_OfScaffold):
    """What happens when a model repeats itself.

    ``stop`` ends the task as the step limit does, ``fail`` ends it as failed, and ``terminate`` carries out a stop as
    finished in the place of the last of the equal actions, which counts as the model's own.
    """

    equal: int = Field(ge=2, description="equal actions in a row that are a loop")
    effect: Literal["stop", "fail", "terminate"]


class Ending(_OfScaffold):
    """What ends a task besides the model, the environment and the budget."""

    unparseable: int = Field(3, ge=1, description="responses in a row without an action")
    loop: Loop | None = Field(None, description="equal actions in a row; no limit when not given")


class Retries(_OfScaffold):
    """How often something that failed is tried again; guieval's defaults if nothing is given."""

    request: int | None = Field(None, ge=1, le=100, description="attempts at each request; max_attempts if not given")
    parse: int = Field(0, ge=0, le=100, description="further requests for a step while its response has no action")
    task: int = Field(3, ge=1, le=100, description="attempts at a task whose environment fails")


class Waits(_OfScaffold):
    """Seconds before a screenshot is taken; the environment's own if nothing is given."""

    after_reset: float | None = Field(None, ge=0, le=3600)
    after_action: float | None = Field(None, ge=0, le=3600)

    @property
    def given(self) -> dict[str, float]:
        return self.model_dump(exclude_none=True)


class Typing(_OfScaffold):
    """How a text is typed: each key of ``escapes`` in it is replaced, e.g. a space by ``%s``."""

    escapes: dict[Annotated[str, Field(min_length=1)], str] = Field(default_factory=dict)

    def typed(self, text: str) -> str:
        """The text with every occurrence of a key replaced, the longest keys first, and nothing replaced twice."""
        keys = sorted(self.escapes, key=len, reverse=True)
        return re.sub("|".join(map(re.escape, keys)), lambda found: self.escapes[found.group()], text) if keys else text


class Success(_OfScaffold):
    """What counts as a success, by the environment's progress, in place of its own rule: no side effects, and more than
    ``above``. With ``needs_stop`` the model must also have ended the task itself."""

    above: float = Field(ge=0, lt=1)
    needs_stop: bool


class TaskList(_OfScaffold):
    """The tasks that a benchmark has in this scaffold, by id: ``only`` these, if any, and all others than ``without``."""

    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


class Encoding(_OfScaffold):
    """The form in which screenshots are sent: a file's own bytes or lossless PNG if no format is given."""

    format: Literal["png", "jpeg"] | None = None
    quality: int | None = Field(None, ge=1, le=100, description="JPEG quality; 75, Pillow's, when not given")

    @model_validator(mode="after")
    def _of_jpeg(self) -> Self:
        if self.quality is not None and self.format != "jpeg":
            raise ValueError("a quality is of format jpeg")
        return self

    @property
    def jpeg(self) -> int | None:
        """The quality of JPEG screenshots; ``None`` if they are none."""
        return (self.quality or _PILLOWS_QUALITY) if self.format == "jpeg" else None


AS_IT_IS = Encoding()
"""The encoding of a scaffold that names none."""


class Scaffold(_OfScaffold):
    """The settings in which a checkpoint is run. What is ``None`` is left to the family, the server or the environment."""

    name: str = Field(NO_SCAFFOLD, min_length=1, description="NAME-official, with repository and commit, or NAME-default")
    source: ScaffoldSource | None = None
    families: tuple[str, ...] = Field((), description="adapters that can be run with it; any when empty")
    prompt: str | None = Field(None, description="which of the family's prompts")
    images: int | None = Field(None, ge=1, description="screenshots in a request at most, the current one included")
    fold: int = Field(1, ge=1, description="oldest screenshots that are dropped at once, if there are more than images")
    history: str | None = Field(None, description="how the prompt shows earlier steps, in the family's words")
    options: dict[str, Any] = Field(default_factory=dict, description="further options of the family")
    thinking: bool | None = Field(None, description="thinking on or off; null if the family has no switch")
    sampling: Annotated[dict[str, Any], AfterValidator(check_sampling)] = Field(
        default_factory=dict, description="request parameters; what is not here is not sent"
    )
    budget: Budget = Budget()
    ending: Ending = Ending()
    retries: Retries = Retries()
    wait: Waits = Waits()
    encoding: Encoding = AS_IT_IS
    typing: Typing = Typing()
    success: Success | None = Field(None, description="what counts as a success; the environment's own rule when not given")
    tasks: TaskList = TaskList()
    claimed: tuple[str, ...] = Field((), description="numbers published with it, in words")
    notes: str = ""

    @model_validator(mode="after")
    def _sourced(self) -> Self:
        if self.name.endswith(OFFICIAL) and self.source is None:
            raise ValueError(f"a scaffold is called NAME{OFFICIAL} only with the repository and commit that it is read from")
        if self.fold > (self.images or 1):
            raise ValueError(f"fold: {self.fold} is more than images, {self.images or 'which is not set'}")
        return self

    def unshown(self, screens: int, most: int) -> int:
        """How many of an episode's ``screens`` so far, oldest first, a request does not show that may have ``most``."""
        fold = min(self.fold, most)
        return max(0, -((most - screens) // fold) * fold)

    @property
    def family_options(self) -> dict[str, Any]:
        named = {option: getattr(self, name) for option, name in OPTION_FIELDS.items()}
        return {**self.options, **{name: value for name, value in named.items() if value is not None}}

    @property
    def acts(self) -> dict[str, Any]:
        """The fields that decide numbers, as JSON-able values, without those at their defaults."""
        return self.model_dump(mode="json", exclude=set(DESCRIBING), exclude_defaults=True)

    @property
    def sha256(self) -> str:
        """Of the fields that decide numbers: equal for scaffolds that differ in name or source only. 16 digits."""
        return sha256(json.dumps(self.acts, sort_keys=True).encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        return {**self.model_dump(mode="json", exclude_defaults=True), "name": self.name, "sha256": self.sha256}


def named_as_in_scaffolds(options: Mapping[str, Any]) -> dict[str, Any]:
    """A family's options by the dotted names that they have in a scaffold."""
    return {OPTION_FIELDS.get(name, f"options.{name}"): value for name, value in options.items()}


def in_effect(acts: Mapping[str, Any], below: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What applies, by dotted names: the fields that a scaffold sets (:attr:`Scaffold.acts`), else ``below``, which a family
    sets by itself, else guieval's own defaults."""
    return {**_ours(), **(below or {}), **flat(acts)}


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """The settings in effect that differ, with both values; ``None`` if nothing sets it."""
    for name in sorted(one.keys() | other.keys()):
        if one.get(name) != other.get(name):
            yield name, one.get(name), other.get(name)


def _ours() -> dict[str, Any]:
    """guieval's own defaults, which hold if a scaffold does not set them."""
    found = flat(Scaffold().model_dump(mode="json", include={"fold", "ending", "retries"}, exclude_none=True))
    return {**found, "retries.request": SETTINGS["max_attempts"].default}


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested values by dotted names."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {f"{prefix}{name}": value}
    return found
