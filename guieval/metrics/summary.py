"""The data model of a run's figures: small frozen values that hold how each number was computed and go into ``metrics.json``.

Every figure carries the number it was divided by, and is a fraction in [0, 1], never a percentage. Values are computed in
:mod:`guieval.metrics.tally`; how they are shown is :mod:`guieval.reports`.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator

from guieval.history.modes import StopPolicy

COVERAGE_NEEDED = 0.95
"""Share of steps that must lie inside both action spaces for covered figures to be reported (GUIEvalKit paper, 3.3.1)."""


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Rate(_Value):
    """``count`` of ``n`` things, as a fraction. ``value`` is ``None`` when there was nothing to divide by.

    ``upper`` is what ``value`` would be if every step that was not measured were right; ``None`` where it would be the same.
    """

    value: float | None
    count: int
    n: int
    upper: float | None = None


class Average(_Value):
    """A mean (or, if its name contains it, a median) over ``n`` things; ``value`` is ``None`` when there were none.

    ``upper`` is what ``value`` would be if every step that was not measured were right; ``None`` where it would be the same.
    """

    value: float | None
    n: int
    upper: float | None = None


class Total(_Value):
    """A sum over the ``n`` steps with a known number."""

    value: int
    n: int


class Verdicts(_Value):
    """The number of planned steps that ended in each way; the seven counts add up to ``planned``.

    ``not_reached`` is by design (the mode ends an episode at its first mismatch). ``infrastructure_failure`` (a request
    without an answer) and ``not_run`` (no record: the run stopped, or an earlier step of the episode failed) are not measured.
    """

    right: int
    wrong: int
    unparseable: int
    unsupported: int
    infrastructure_failure: int
    not_reached: int
    not_run: int
    planned: int

    @model_validator(mode="after")
    def _adds_up(self) -> Verdicts:
        if self.measured + self.unmeasured + self.not_reached != self.planned:
            raise ValueError(f"the counts do not add up to {self.planned} planned steps")
        return self

    @property
    def measured(self) -> int:
        """Steps that were answered and scored."""
        return self.right + self.wrong + self.unparseable + self.unsupported

    @property
    def unmeasured(self) -> int:
        """Steps that should have been answered and were not."""
        return self.infrastructure_failure + self.not_run


class Scores(_Value):
    """The two step metrics over the ``n`` steps of one row of a table."""

    n: int
    type_match: Rate
    exact_match: Rate


class Cell(_Value):
    """The steps that carry one value for each of a table's keys."""

    labels: tuple[str, ...] = Field(description="one value per key of the table, in the keys' order")
    scores: Scores


class GroupTable(_Value):
    """Scores by one key of ``task.groups``, or by each pair of values of two keys.

    A step without one of the keys is in no cell. The means are over cells, each weighing the same however many steps it has,
    so their ``n`` is the number of cells.
    """

    keys: tuple[str, ...]
    cells: tuple[Cell, ...]
    mean_type_match: Average
    mean_exact_match: Average


class StepFigures(_Value):
    """Step metrics over one set of steps.

    ``type_match`` and ``exact_match`` divide by every planned step that the mode reaches: a reply that cannot be parsed or
    expressed is a mismatch, and so is a request that failed (``upper`` is then the other bound). ``coverage`` is the share
    of measured predictions that lie in both the model's and the benchmark's action space; the covered figures are over
    those steps only, and may be reported when ``coverage_ok`` (GUIEvalKit paper, 3.3.1).
    """

    type_match: Rate
    exact_match: Rate
    coverage: Rate
    coverage_ok: bool
    covered_type_match: Rate
    covered_exact_match: Rate


class WithoutOpen(StepFigures):
    """The figures with steps left out whose reference action is OPEN, as the GUIEvalKit paper does (4.1).

    A step counts as OPEN by its reference, with or without a record. Runs of earlier versions did not store the references of
    steps without a record; these steps stay in. The episode figures skip the OPEN steps of each episode, and leave out
    an episode that has no other; they are ``None`` where the references of steps that were not reached are not known.
    """

    progress_episode_mean: Average | None
    progress_step_weighted: Rate | None
    success_rate: Rate | None


class Sop(_Value):
    """The figures of semi-online performance (UI-S1 paper, appendix C), over all planned episodes.

    ``pg`` is the mean of s_i / t_i, ``tsr`` the share of episodes with s_i = t_i, and ``score`` their mean, where s_i is how
    many steps were right before the first mismatch and t_i the episode's length.
    """

    pg: Average
    tsr: Rate
    score: Average


class Diagnostics(_Value):
    """Numbers that help to understand a run but are not scores.

    ``click_distance_median`` is in thousandths of the screen, over measured steps whose reference is CLICK and whose outcome
    has a distance; ``text_similarity_mean`` is in [0, 1]; ``seconds_mean`` is the time from sending a request to its whole
    answer; tokens are as reported by the server, over all samples of the steps that count.
    """

    click_distance_median: Average
    text_similarity_mean: Average
    seconds_mean: Average
    prompt_tokens: Total
    completion_tokens: Total


class RunSummary(StepFigures):
    """All figures of a run over its planned episodes, each the sequence of its steps that count.

    ``complete`` is false when ``incomplete`` steps, in ``incomplete_episodes`` episodes, were not measured. ``unplanned``
    counts recorded steps outside the plan, which enter no figure, ``left_out`` rows of a predictions file with its own steps
    whose answer cannot be read. The prefix of an episode is its steps before
    the first one that is not exact (or not measured): ``progress_episode_mean`` is the mean over episodes of prefix / length
    (AgentCPM-GUI, CoAT), ``progress_step_weighted`` the sum of prefixes / the sum of lengths (GUIEvalKit), ``success_rate``
    the share of episodes that are prefix throughout.

    ``by_action_type`` (by the reference's type) holds the steps that the mode reaches, run or not, as far as their types are
    known, and ``groups`` the recorded ones of these: the labels of a step that was never run are not known. ``sop`` is
    ``None`` unless the mode stops at the first mismatch.
    """

    mode: str
    stop: StopPolicy
    episodes: int
    verdicts: Verdicts
    complete: bool
    incomplete: int
    incomplete_episodes: int
    unplanned: int
    left_out: int = 0
    progress_episode_mean: Average
    progress_step_weighted: Rate
    success_rate: Rate
    sop: Sop | None
    without_open: WithoutOpen
    by_action_type: dict[str, Scores]
    groups: tuple[GroupTable, ...]
    diagnostics: Diagnostics
