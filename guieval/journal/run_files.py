"""The JSON files of a run directory as validated models.

People exchange and edit run directories, so these files are read only through :func:`read_file`: a value of the wrong type
gives one sentence with the file and the field. Unknown fields of a section are kept, so that a file of a later version can be
read and amended.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, TypeVar

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, RootModel, ValidationError, model_validator

from guieval.actions import ActionSpace, ActionType, Button, StopStatus
from guieval.data.editions import Edition
from guieval.data.files import read_bytes
from guieval.errors import UsageError, first_problem
from guieval.history import HistorySource
from guieval.history.modes import MODES, NO_PATCH, Mode, PatchMethod, PatchPolicy, StopPolicy
from guieval.journal.setup import Setup, describe
from guieval.settings import Placement, placed

IMPORTED = "imported"
"""The benchmark of imported rows that are steps of their own."""
NOT_RECORDED = "not recorded"
"""In place of a scaffold's name: the run is of a version that did not record it."""
MOST_STEPS = 100_000
"""Limit of an episode's steps; a file that plans more is damaged."""

_Read = TypeVar("_Read", bound=BaseModel)


class Section(BaseModel):
    """A group of recorded values. Known fields are validated; unknown ones are kept, since later versions add fields."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow", protected_namespaces=())

    def to_json(self) -> dict[str, Any]:
        """The JSON in the file, including unknown values."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class _Model(Section):
    name: str = ""
    thinking: bool | None = None
    options: dict[str, Any] | None = None


class _Data(Section):
    bench: str = ""
    folder: str | None = None
    bench_options: dict[str, Any] | None = None
    perturb: str | None = None
    perturb_strength: float = 1.0
    perturb_placement: Placement = "auto"
    perturb_seed: int = 0


class _History(Section):
    fixed_thoughts: str | None = None
    mix: dict[str, Any] | None = None
    mix_artifacts: str | None = None
    mix_decisions: str | None = None


class _Online(Section):
    max_steps: int | None = None


class _Sampling(Section):
    request: dict[str, Any] | None = None


class _Server(Section):
    engine: str | None = None
    served_model: str | None = None
    grounder_served_model: str | None = None
    max_attempts: int | None = None


class _Tracking(Section):
    name: str | None = None
    tags: list[str] = []
    note: str | None = None


class RecordedConfig(Section):
    """The settings of a run that readers of its metrics use, in groups; a resume validates all settings."""

    model: _Model = _Model()
    data: _Data = _Data()
    history: _History = _History()
    sampling: _Sampling = _Sampling()
    server: _Server = _Server()
    tracking: _Tracking = _Tracking()
    online: _Online = _Online()

    @model_validator(mode="before")
    @classmethod
    def _placed(cls, values: Any) -> Any:
        return placed(values, lenient=True) if isinstance(values, dict) else values  # earlier versions had no groups


class RecordedModel(Section):
    """The checkpoint, as given in ``configs/models``; earlier versions recorded ``thinking`` and ``sampling`` with it."""

    name: str = ""
    adapter: str | None = None
    hf_id: str | None = None
    thinking: bool | None = None
    sampling: dict[str, Any] | None = None


class RecordedScaffold(Section):
    """The scaffold (:class:`guieval.models.scaffold.Scaffold`), and the digest of its fields that decide numbers."""

    name: str
    sha256: str = ""
    options: dict[str, Any] | None = None
    prompt: str | None = None
    images: int | None = None
    history: str | None = None
    thinking: bool | None = None
    sampling: dict[str, Any] | None = None
    retries: dict[str, int] | None = None


class RecordedBenchmark(Section):
    """The benchmark, with fingerprints of the planned steps and of their data, and the edition of their labels; online the
    environment's version, and what its screens depend on besides; what is drawn into screenshots, and how."""

    name: str
    fingerprint: str | None = None
    content: str | None = None
    edition: Edition | None = None
    environment: str | None = None
    identity: dict[str, str] = {}
    perturbation: dict[str, str] = {}

    def unlike(self, other: RecordedBenchmark) -> dict[str, tuple[str, str]]:
        """The parts of the environment's identity that both runs know and that differ."""
        both = self.identity.keys() & other.identity.keys()
        pairs = {name: (self.identity[name], other.identity[name]) for name in sorted(both)}
        return {name: pair for name, pair in pairs.items() if len(set(pair)) == 2 and "unknown" not in pair}

    @property
    def perturbation_line(self) -> str:
        """What is drawn into the screenshots, in words, next to a number of the run; "" of a run on clean ones."""
        variant, *others = self.perturbation.items() or [("", "")]
        return ", ".join([variant[1], *(f"{name} {value}" for name, value in others)])

    @property
    def edition_line(self) -> str:
        """The edition in words, next to a number of the run; "" if it is not known, or of a data set with a single one."""
        return "" if self.edition is None else self.edition.line


class RecordedSelection(Section):
    """The chosen steps: a short title and a description, and the digest of the sample set, if they are one."""

    title: str = ""
    text: str | None = None
    sample_set_sha256: str | None = None


class RecordedOverlay(Section):
    """The overlay of accepted actions."""

    file: str
    sha256: str
    steps: int


class RecordedThoughts(Section):
    """The run whose thoughts were given; ``form`` is a fingerprint of how."""

    run: str = ""
    model: str
    sha256: str = ""
    form: str | None = None


class RecordedArtifacts(Section):
    """The answers in mixed histories."""

    sha256: str


class RecordedDecisions(Section):
    """The diversities of an adaptive mix."""

    sha256: str


class RecordedMixing(Section):
    """What a run with mixed histories took its artifacts from."""

    artifacts: RecordedArtifacts
    decisions: RecordedDecisions | None = None


class RecordedPrompts(Section):
    """Fingerprints of the adapter's prompts; earlier versions did not record them."""

    fingerprint: str | None = None
    thought: str | None = None


class RecordedProtocol(Section):
    """The protocol of the run, and a fingerprint of its rules."""

    name: str
    fingerprint: str | None = None


class RecordedPatch(Section):
    """How mismatches were patched; ``budget`` is ``None`` without limit."""

    method: PatchMethod
    budget: int | None = Field(ge=0)


class RecordedMode(Section):
    """Written by :meth:`guieval.history.modes.Mode.to_json`."""

    name: str
    history: HistorySource
    stop: StopPolicy
    patch: RecordedPatch | None = None
    fixed_thoughts: bool = False
    tries: int | None = Field(None, ge=1)


class RecordedSpace(Section):
    """Written by :meth:`guieval.actions.ActionSpace.to_json`."""

    types: list[ActionType]
    buttons: list[Button]
    statuses: list[StopStatus]

    @property
    def space(self) -> ActionSpace:
        return ActionSpace(frozenset(self.types), frozenset(self.buttons), frozenset(self.statuses))


class RecordedSpaces(Section):
    """The action spaces of the model's format and of the benchmark's labels."""

    model: RecordedSpace
    benchmark: RecordedSpace


class RecordedImport(Section):
    """The file or folder of another evaluation that the run was made of; ``source`` is its name, ``sha256`` of a file.

    ``left_out``: its rows without a step, because their response cannot be read. ``words``: the arguments of
    `guieval data import`, without ``--out``.
    """

    format: str
    source: str
    sha256: str | None = None
    answered_only: bool = False
    left_out: int = Field(0, ge=0)
    notes: list[str] = []
    words: list[str] = []

    @property
    def lines(self) -> list[str]:
        """What a reader of the metrics has to know, in sentences."""
        part = ["over the answered steps alone (--answered-only)"] if self.answered_only else []
        return [f"imported from {self.source}, format {self.format}", *part, *self.notes]


class RecordedChange(Section):
    """The changes that the user accepted for a session, and when."""

    when: str
    what: list[str]


class Manifest(Section):
    """``manifest.json``: the configuration of a run."""

    version: Literal[1, 2, 3] = Field(alias="schema")
    guieval: str = ""
    created: str = ""
    config: RecordedConfig
    model: RecordedModel
    scaffold: RecordedScaffold | None = None
    benchmark: RecordedBenchmark
    selection: RecordedSelection | None = None
    overlay: RecordedOverlay | None = None
    imported: RecordedImport | None = None
    fixed_thoughts: RecordedThoughts | None = None
    code: dict[str, str] | None = None
    mixing: RecordedMixing | None = None
    prompts: RecordedPrompts = RecordedPrompts()
    options: dict[str, Any] | None = None
    """The options in effect of the model's family, defaults included; earlier versions did not record them."""
    rules: dict[str, str] | None = None
    """How responses are made and read beyond one request and one action a step."""
    protocol: RecordedProtocol
    recorded_mode: RecordedMode = Field(alias="mode")
    action_spaces: RecordedSpaces
    frame_audit: str | None = None
    """What the audit of the coordinate frame found in a run of an unlisted checkpoint, after 50 clicks or more."""
    setups: list[Setup] = Field([], validation_alias=AliasChoices("setups", "served"))
    """Who answered, and how: one entry per session that differs from the one before."""
    patch_setups: list[Setup] = []
    """Likewise of the other model that wrote the thoughts of patches."""
    reply_models: list[str] | None = None
    """The model names in responses, in order of appearance; since set-ups are recorded, they are there."""
    changes: list[RecordedChange] | None = None
    """One entry per session under accepted changes."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Validate values that are about to be written."""
        return cls.model_validate_json(json.dumps(values))

    @property
    def model_name(self) -> str:
        return self.model.name or self.config.model.name

    @property
    def checkpoint(self) -> dict[str, Any]:
        """The checkpoint with its scaffold, as :class:`guieval.models.ModelConfig` takes them."""
        values = self.model.to_json()
        earlier: dict[str, Any] = {name: values.pop(name) for name in ("thinking", "sampling") if name in values}
        recorded = {"name": NOT_RECORDED, **earlier} if self.scaffold is None else self.scaffold.to_json()
        return {**values, "scaffold": {name: value for name, value in recorded.items() if name != "sha256"}}

    @property
    def scaffold_line(self) -> str:
        """The scaffold in words, with the settings that the run has changed: to be shown next to its metrics."""
        if self.scaffold is None:
            return NOT_RECORDED
        named = {"prompt": self.scaffold.prompt, "max_images": self.scaffold.images, "history": self.scaffold.history}
        options = {**(self.scaffold.options or {}), **named}
        asked, sampling = self.config.model, self.config.sampling.request
        given = (("sampling", self.scaffold.sampling or {}, sampling), ("options", options, asked.options))
        changed = [
            f"{group}.{name}"
            for group, own, values in given
            for name, value in (values or {}).items()
            if name != "seed" and (name not in own or own[name] != value)  # another seed is another draw
        ]
        changed += ["thinking"] * (asked.thinking not in (None, self.scaffold.thinking))
        attempts = (self.scaffold.retries or {}).get("request")
        changed += ["max_attempts"] * (attempts not in (None, self.config.server.max_attempts))
        changed += ["max_steps"] * (self.config.online.max_steps is not None)
        return f"{self.scaffold.name} (changed: {', '.join(changed)})" if changed else self.scaffold.name

    @property
    def answered_as(self) -> list[str]:
        """The names that responses give their model, in order of appearance."""
        named = (name for setup in self.setups for name in setup.answered_as)
        return list(dict.fromkeys((*(self.reply_models or ()), *named)))

    @property
    def thinking(self) -> bool | None:
        """The thinking switch of the run, else its scaffold's."""
        own = (self.scaffold or self.model).thinking
        return own if self.config.model.thinking is None else self.config.model.thinking

    @property
    def sampling(self) -> dict[str, Any]:
        """The sampling parameters: the scaffold's, changed by the run's."""
        return {**((self.scaffold or self.model).sampling or {}), **(self.config.sampling.request or {})}

    @property
    def mode(self) -> Mode:
        """The mode, even if its name is not a preset any more."""
        mode, preset = self.recorded_mode, MODES.get(self.recorded_mode.name)
        return replace(
            preset or Mode(mode.name, mode.history, mode.stop, ""),
            history=mode.history,
            stop=mode.stop,
            patch=NO_PATCH if mode.patch is None else PatchPolicy(mode.patch.method, mode.patch.budget),
            fixed_thoughts=mode.fixed_thoughts,
            tries=mode.tries,
        )


class PlannedEpisode(NamedTuple):
    """A row of ``episodes.json``; see :func:`guieval.journal.plan_rows` for its columns."""

    benchmark: str
    subset: str
    episode: str
    counted: Annotated[int, Field(ge=1, le=MOST_STEPS)]
    picked: Annotated[list[Annotated[int, Field(ge=0, lt=MOST_STEPS)]], Field(min_length=1)] | None = None
    split: str | None = None
    length: Annotated[int, Field(ge=1, le=MOST_STEPS)] | None = None
    types: list[str] | None = None

    @property
    def steps(self) -> Sequence[int]:
        return range(self.counted) if self.picked is None else tuple(self.picked)


def _consistent(row: PlannedEpisode) -> PlannedEpisode:
    steps = row.steps
    if any(one >= other for one, other in pairwise(row.picked or ())):
        raise ValueError("the steps that count must ascend, without repetitions")
    if row.length is not None and row.length <= steps[-1]:
        raise ValueError(f"step {steps[-1]} counts, so the episode has more than {row.length} steps")
    if row.types is not None and len(row.types) != len(steps):
        raise ValueError(f"there are {len(row.types)} reference types for {len(steps)} steps")
    return row


class PlannedEpisodes(RootModel[list[Annotated[PlannedEpisode, AfterValidator(_consistent)]]]):
    """``episodes.json``: the planned episodes and steps of a run."""

    model_config = ConfigDict(strict=True)


class RecordedRound(Section):
    """A round of a rollout: its folder's name, and the seed of its samples."""

    directory: str = Field(pattern=r"^[\w.-]*\w[\w.-]*$")
    seed: int = Field(ge=0)


class RolloutFile(Section):
    """``rollout.json``: the configuration and rounds of a rollout."""

    version: Literal[1] = Field(1, alias="schema")
    config: dict[str, Any] = Field(default_factory=dict)
    rounds: list[RecordedRound] = Field(min_length=1)


def setup_line(manifests: Sequence[Manifest], *, request: bool = True) -> str:
    """The set-up of a run, or of repeats, in words: to be shown next to its metrics.

    Without the digest of one ``request``, runs of one set-up on two benchmarks say the same.
    """
    setups = [setup for manifest in manifests for setup in manifest.setups]
    patches = [setup for manifest in manifests for setup in manifest.patch_setups]
    by_patches = [f"patches by {patches[-1].model}: {describe(patches)}"] if patches else []
    return "; ".join((describe(setups, request=request), *by_patches))


def read_file(path: Path, model: type[_Read]) -> _Read:
    """Read a JSON file of a run directory; :class:`UsageError` names a field with a wrong value.

    Raises :class:`FileNotFoundError` if the file does not exist.
    """
    try:
        data = read_bytes(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UsageError(f"{str(path)!r} cannot be read: {error.strerror}") from None
    if b"\\ud" in data.lower():  # possibly a lone surrogate, e.g. an emoji cut in two
        with suppress(ValueError, RecursionError):
            data = json.dumps(json.loads(data), ensure_ascii=False).encode("utf-8", "replace")
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        problem = first_problem(error)
    if problem.kind == "json_invalid":
        raise UsageError(f"{str(path)!r} cannot be read: {problem.message}") from None
    where = f", field {problem.field}" if problem.path else ""
    if problem.kind in ("model_type", "dict_type", "dataclass_type"):
        raise UsageError(f"{str(path)!r}{where}: expected a group of values, got {problem.value!r:.80}")
    if problem.kind == "missing":
        raise UsageError(f"{str(path)!r}{where}: is missing; the file was not written by guieval, or was changed since")
    raise UsageError(f"{str(path)!r}{where}: {problem.message}, got {problem.value!r:.80}")
