"""UI-R1's three stages of data selection: quality, difficulty, diversity (arXiv 2503.21620, section 3.3 and appendix A.2).

*Quality*: clicks are taken only from a source whose boxes are clean; other actions from anywhere, or from named data.
*Difficulty*: only steps that the model did not match exactly. *Diversity*: rare actions are left out, and quotas take so many
steps of each kind. What is taken of a kind is drawn by a seed, or, as section 4.3 does, by the longest reasoning.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
from typing import Literal, TypeAlias, get_args

from guieval.actions import ACTION_TYPES, BUTTONS
from guieval.errors import UsageError, known_name, nearest
from guieval.steps import StepKey
from guieval.studies.data_selection.candidates import Candidate, draw_place

Stage: TypeAlias = Literal["quality", "difficulty", "diversity"]
Order: TypeAlias = Literal["random", "reasoning"]
STAGES: tuple[Stage, ...] = get_args(Stage)
ORDERS: tuple[Order, ...] = get_args(Order)
Why: TypeAlias = Mapping[StepKey, dict[Stage, str]]
ACTION = "action"
"""The label for action types in a quota."""
KINDS = (*ACTION_TYPES, *BUTTONS)
"""The names of actions in a quota."""
RARE = ("WAIT", "LONG_PRESS")
"""Actions that UI-R1 calls rare and leaves out."""


@dataclass(frozen=True)
class LabelledPart:
    """A data set, or the part of it whose steps have certain labels."""

    dataset: str
    groups: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        labels = ",".join(f"{name}={value}" for name, value in self.groups.items())
        return f"{self.dataset}:{labels}" if labels else self.dataset

    def holds(self, step: Candidate) -> bool:
        return step.dataset == self.dataset and all(step.groups.get(name) == value for name, value in self.groups.items())


def read_source(text: str) -> LabelledPart:
    """A source as written, ``DATASET`` or ``DATASET:LABEL=VALUE,...``; :class:`UsageError` for another form."""
    dataset, colon, labels = text.partition(":")
    pairs = [part.partition("=") for part in labels.split(",")] if colon else []
    if not dataset or any(not name or not equals for name, equals, _ in pairs):
        raise UsageError(f"a source is written DATASET or DATASET:LABEL=VALUE, like screenspot:platform=mobile, got {text!r}")
    return LabelledPart(dataset, {name: value for name, _, value in pairs})


@dataclass(frozen=True)
class Quota:
    """``count`` steps of one kind: an action type or button (``None``: any) and the values of labels.

    ``each`` names labels; every value of these that occurs has the quota for itself.
    """

    count: int
    kind: str | None = None
    groups: Mapping[str, str] = field(default_factory=dict)
    each: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [self.kind] if self.kind else []
        parts += [f"{name}:{value}" for name, value in self.groups.items()]
        return "+".join([*parts, *self.each])

    def fits(self, step: Candidate) -> bool:
        """Whether a step is of the kind; it must have the labels of ``each``, with any value."""
        if self.kind is not None and self.kind not in (step.type, step.button):
            return False
        if any(step.groups.get(name) != value for name, value in self.groups.items()):
            return False
        return all(name == ACTION or name in step.groups for name in self.each)

    def cells(self, steps: Iterable[Candidate]) -> list[Quota]:
        """The quota of each value that occurs among ``steps``, in the values' order; itself when it is one already."""
        if not self.each:
            return [self]
        found = {tuple(label(step, name) for name in self.each) for step in steps if self.fits(step)}
        return [self._cell(values) for values in sorted(found)]

    def _cell(self, values: tuple[str, ...]) -> Quota:
        named = dict(zip(self.each, values, strict=True))
        kind = named.pop(ACTION, self.kind)
        return Quota(self.count, kind, {**self.groups, **named})


def label(step: Candidate, name: str) -> str:
    """The value of a step's label, empty if it has none; of ``action`` its button, else its type."""
    return (step.button or step.type) if name == ACTION else step.groups.get(name, "")


def read_quota(text: str, labels: Sequence[str]) -> Quota:
    """A quota as written, ``KEY=N``; ``labels`` are those that the steps have.

    The parts of the key are joined by ``+``, and a step fits if it fits them all: ``SCROLL``, an action type; ``BACK``, a
    button of PRESS; ``element:icon``, the value of a label; ``action`` or ``element``, a label without its value: N for *each*
    value that occurs (PRESS counted by its buttons).

    Raises :class:`UsageError` for another form, a count below 1, an unknown action or label, and an action named twice.
    """
    key, separator, number = text.rpartition("=")
    if not separator or not key or not (number.isascii() and number.isdigit()) or int(number) < 1:
        raise UsageError(f"a quota is written KEY=N with N at least 1, like SCROLL=5 or element:icon=50, got {text!r}")
    kind: str | None = None
    groups: dict[str, str] = {}
    each: list[str] = []
    known = (ACTION, *labels)
    for part in key.split("+"):
        name, colon, value = part.partition(":")
        if part in KINDS:
            if kind is not None:
                raise UsageError(f"the quota {text!r} names the actions {kind} and {part}, and no step has both")
            kind = part
        elif name not in known or (colon and name == ACTION):
            raise UsageError(
                f"the quota {text!r} has {part!r}, which is neither an action nor a label of these steps"
                f"{nearest(part, [*KINDS, *known])}; actions: {', '.join(KINDS)}; labels: {', '.join(known)}"
            )
        elif colon:
            groups[name] = value
        else:
            each.append(name)
    if kind is not None and ACTION in each:
        raise UsageError(f"the quota {text!r} names the action {kind} and every action at once; leave one of them out")
    return Quota(int(number), kind, groups, tuple(each))


@dataclass(frozen=True)
class Recipe:
    """How steps are selected.

    ``clean``: where clicks may come from; with none named, from every grounding step, whose box was drawn for its instruction.
    ``others``: where all other actions may come from (none named: anywhere), of at most ``other_episodes`` episodes, drawn.
    ``without``: actions left out by the diversity stage, which also fills ``quotas``: a step counts for the first quota that it
    fits, and steps that fit none are left out. Without quotas all steps stay, or the first ``top`` of them. ``balance``: the
    label over whose values each quota is spread as evenly as they allow. ``order``: ``random``, drawn by ``seed``; or
    ``reasoning``, longest first, ties drawn. Raises :class:`UsageError` for unknown names, and for quotas and ``top`` at once.
    """

    stages: tuple[Stage, ...] = STAGES
    clean: tuple[LabelledPart, ...] = ()
    others: tuple[LabelledPart, ...] = ()
    other_episodes: int | None = None
    without: tuple[str, ...] = RARE
    quotas: tuple[Quota, ...] = ()
    balance: str | None = "element"
    order: Order = "random"
    top: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for what, names, known in (
            ("stage", self.stages, STAGES),
            ("action", self.without, KINDS),
            ("order", (self.order,), ORDERS),
        ):
            for name in names:
                known_name(what, name, known)
        if not self.stages:
            raise UsageError(f"no stage is given; the stages are {', '.join(STAGES)}")
        if self.quotas and "diversity" not in self.stages:
            raise UsageError("quotas belong to the diversity stage: add diversity to the stages, or leave the quotas out")
        if self.quotas and self.top is not None:
            raise UsageError("quotas fix the number of steps of each kind; a total number of steps cannot be given as well")
        keys = list(map(str, self.quotas))
        if twice := next((key for key in keys if keys.count(key) > 1), None):
            raise UsageError(f"two quotas are given for {twice!r}; give one")


UI_R1 = Recipe(
    clean=(LabelledPart("screenspot", {"platform": "mobile"}),),
    others=(LabelledPart("androidcontrol"),),
    other_episodes=1000,
    quotas=(Quota(101, "CLICK"), Quota(5, "SCROLL"), Quota(2, "TYPE"), Quota(9, "BACK"), Quota(19, "OPEN")),
)
"""UI-R1's 136 training steps (section 3.3; appendix A.2, Table 5).

If the paper is silent: which of its hard steps were taken (here: drawn by the seed), and how clicks divide over icons and
texts (here: evenly, as far as there are enough of both).
"""
PRESETS = {"ui-r1": UI_R1}


def get_preset(name: str) -> Recipe:
    """A published recipe; :class:`UsageError` with the nearest name when there is none."""
    return PRESETS[known_name("preset", name, PRESETS)]


@dataclass(frozen=True)
class Chosen:
    """A selected step, with each stage's reason."""

    step: Candidate
    why: Mapping[Stage, str]


@dataclass(frozen=True)
class FilledQuota:
    """A quota: the number wanted, the number available after the earlier stages, and the number taken."""

    key: str
    wanted: int
    available: int
    taken: int


@dataclass(frozen=True)
class Curated:
    """The steps of a recipe, in the order of the runs; ``left`` counts the steps at the start and after each stage."""

    recipe: Recipe
    chosen: Sequence[Chosen]
    left: Mapping[str, int]
    cells: Sequence[FilledQuota]

    @property
    def composition(self) -> Counter[str]:
        """The number of steps of each action, PRESS by its buttons."""
        return Counter(label(choice.step, "action") for choice in self.chosen)


def curate(steps: Sequence[Candidate], recipe: Recipe, *, allow_fewer: bool = False) -> Curated:
    """Select ``steps`` by a recipe. The same steps and recipe give the same result, in whatever order the steps are given.

    Raises :class:`UsageError` when a quota, or ``top``, finds too few steps (unless ``allow_fewer``), when nothing is left, and
    when the order is by reasoning and no answer has any.
    """
    left = {"recorded": len(steps)}
    why: Why = {step.key: {} for step in steps}
    kept = list(steps)
    if "quality" in recipe.stages:
        kept = _quality(kept, recipe, why)
        left["quality"] = len(kept)
    if "difficulty" in recipe.stages:
        kept = _difficulty(kept, why)
        left["difficulty"] = len(kept)
    if recipe.order == "reasoning" and kept and not any(step.reasoning_length for step in kept):
        raise UsageError("no answer of these steps has any reasoning to sort by; run the model with thinking on")
    if "diversity" in recipe.stages:
        kept = [step for step in kept if step.type not in recipe.without and step.button not in recipe.without]
        left["not rare"] = len(kept)
    cells: list[FilledQuota] = []
    if recipe.quotas:
        kept, cells = _fill(kept, recipe, why)
    elif recipe.top is not None:
        cells = [FilledQuota("any", recipe.top, len(kept), min(recipe.top, len(kept)))]
        kept = _spread(kept, recipe, recipe.top)
    _check_enough(cells, kept, left, allow_fewer=allow_fewer)
    if "diversity" in recipe.stages:
        left["diversity"] = len(kept)
        for step in kept:
            why[step.key].setdefault("diversity", f"{label(step, 'action')} is not rare")
    taken = {step.key for step in kept}
    return Curated(recipe, [Chosen(step, why[step.key]) for step in steps if step.key in taken], left, cells)


def _quality(steps: Sequence[Candidate], recipe: Recipe, why: Why) -> list[Candidate]:
    kept: list[Candidate] = []
    others: list[Candidate] = []
    for step in steps:
        if step.type == "CLICK":
            source = next((str(each) for each in recipe.clean if each.holds(step)), None)
            if not recipe.clean and step.setting == "grounding":
                source = "a grounding benchmark"
            if source is not None:
                why[step.key]["quality"] = f"a click on a box of {source}"
                kept.append(step)
        elif not recipe.others or any(other.holds(step) for other in recipe.others):
            why[step.key]["quality"] = f"no click, of {step.dataset}"
            others.append(step)
    if recipe.other_episodes is not None:
        episodes = sorted({step.episode_key for step in others}, key=lambda key: draw_place(recipe.seed, key))
        drawn = set(episodes[: recipe.other_episodes])
        others = [step for step in others if step.episode_key in drawn]
    return kept + others


def _difficulty(steps: Sequence[Candidate], why: Why) -> list[Candidate]:
    kept = [step for step in steps if step.answered and not step.exact_match]
    for step in kept:
        because = f": {step.reason}" if step.reason else ""
        why[step.key]["difficulty"] = f"{step.verdict} under {step.protocol} in run {step.run}{because}"
    return kept


def _fill(steps: Sequence[Candidate], recipe: Recipe, why: Why) -> tuple[list[Candidate], list[FilledQuota]]:
    """Every step belongs to the first quota that it fits; each quota takes as many of its steps as it counts."""
    kept: list[Candidate] = []
    cells: list[FilledQuota] = []
    rest = list(steps)
    for quota in recipe.quotas:
        for cell in quota.cells(rest) or [quota]:
            fitting = [step for step in rest if cell.fits(step)]
            taken = _spread(fitting, recipe, cell.count)
            for step in taken:
                why[step.key]["diversity"] = f"one of {len(taken):,} for {cell}, of {len(fitting):,} there were"
            cells.append(FilledQuota(str(cell), cell.count, len(fitting), len(taken)))
            kept += taken
        rest = [step for step in rest if not quota.fits(step)]
    return kept, cells


def _spread(steps: Sequence[Candidate], recipe: Recipe, count: int) -> list[Candidate]:
    """The first ``count`` steps in the recipe's order, alternating between the values of the label to be balanced."""
    places = {step.key: draw_place(recipe.seed, step.key) for step in steps}

    def place(step: Candidate) -> tuple[int, str]:
        return (-step.reasoning_length if recipe.order == "reasoning" else 0, places[step.key])

    by_value: defaultdict[str, list[Candidate]] = defaultdict(list)
    for step in sorted(steps, key=place):
        by_value[label(step, recipe.balance) if recipe.balance and recipe.top is None else ""].append(step)
    turns = zip_longest(*(by_value[value] for value in sorted(by_value)))
    return list(islice((step for step in chain.from_iterable(turns) if step is not None), count))


def _check_enough(
    cells: Sequence[FilledQuota], kept: Sequence[Candidate], left: Mapping[str, int], *, allow_fewer: bool
) -> None:
    short = [cell for cell in cells if cell.taken < cell.wanted]
    if short and not allow_fewer:
        lacking = ", ".join(f"{cell.key} {cell.available:,} of {cell.wanted:,}" for cell in short)
        raise UsageError(f"there are too few steps to choose from: {lacking}; --allow-fewer takes what there is")
    if not kept:
        counts = ", ".join(f"{count:,} {stage}" for stage, count in left.items())
        raise UsageError(f"no step is left ({counts}, 0 selected)")
