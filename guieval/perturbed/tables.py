"""Perturbed steps as tables: clicks into the distractor, and accuracy without and with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from guieval.metrics.measured import Measured
from guieval.perturbed.lures import Effect
from guieval.reports.tables.table import Cell, Number, Row, Table, columns

_NOTES = (
    "Lure: clicks in the place of the distractor (or the action that its text asks for); undrawn: in the same place of the "
    "clean screen; neutral: in that place with a box without text.",
    "Attributable: (lure - undrawn) - (neutral - undrawn), what neither the place nor any box explains.",
    "Exact match of popup-modal: the dialog is closed; lenient also counts what is right without the dialog.",
)


def effect_tables(found: Sequence[Effect]) -> Iterator[Table]:
    """Of lures, the rates and what is attributable; of all kinds, exact match; how the steps ended; and which were skipped."""
    several = len({(each.model, each.mode) for each in found}) > 1
    heads: tuple[str, ...]
    named = [(_name(each, several=several), each) for each in found]
    if any(each.kind.lure for each in found):
        heads = ("lure", "undrawn", "neutral", "over undrawn", "attributable", "p", "of right steps", "obeyed")
        rows = tuple((name, each.lure.n, *_lures(each)) for name, each in named if each.kind.lure)
        spare = ("obeyed", "of right steps", "over undrawn")
        title = "Lures: % of the drawn steps (95 % intervals over episodes)"
        yield Table(title, columns("perturbation", "steps", *heads, spare=spare), rows, _NOTES[:2], "lures")
    heads = ("clean", "perturbed", "change", "McNemar p", "lenient", "over-caution")
    rows = tuple((name, each.exact.n, *_accuracy(each)) for name, each in named)
    title = "Exact match of the same steps, % (over-caution: more waits, questions and refusals)"
    notes = _NOTES[2:] if any(each.kind.name == "popup-modal" for each in found) else ()
    yield Table(title, columns("perturbation", "steps", *heads, spare=("lenient",)), rows, notes, "perturbed")
    ends = list(dict.fromkeys(end for each in found for end, _ in Counter(each.verdicts).most_common()))
    rows = tuple(
        (
            name,
            *(each.verdicts.get(end, 0) for end in ends),
            sum(each.skipped.values()),
            each.missing,
            "; ".join(f"{reason} ({count:,})" for reason, count in each.skipped.items()),
        )
        for name, each in named
    )
    heads = ("perturbation", *ends, "skipped", "no answer", "why skipped")
    yield Table("How the perturbed steps ended", columns(*heads, folds=("why skipped",)), rows, name="ends")


def _name(each: Effect, *, several: bool) -> str:
    """The kind with what is not as usual, and its run if there are several."""
    usual = {"strength 1", "placement auto", "seed 0", "version 1"}
    changed = [part for part in each.line.split(", ")[1:] if part not in usual]
    return ", ".join([each.kind.name, *changed, *([f"{each.model}, {each.mode}"] * several)])


def _lures(each: Effect) -> Row:
    rates = (_rate(each.lure), _rate(each.undrawn), _rate(each.neutral))
    beyond = (_change(each.over_undrawn), _change(each.attributable), _p(each.attributable.p_value))
    return (*rates, *beyond, _rate(each.lure_of_right), _rate(each.obeyed))


def _accuracy(each: Effect) -> Row:
    change = (_change(each.change), _p(each.test.p_value if each.exact.n else None))
    return (_rate(each.clean), _rate(each.exact), *change, _rate(each.lenient), _change(each.caution))


def _rate(of: Measured) -> Number:
    return Number(of, ".1f", unit=False)


def _change(of: Measured) -> Cell:
    return Number(of, ".1f", unit=False, signed=True)


def _p(value: float | None) -> Cell:
    return None if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"
