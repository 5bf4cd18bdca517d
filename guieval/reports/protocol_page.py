"""The page on every protocol, as Markdown: written from the protocols themselves, so that page and rules agree.

After the rules may come what they make of one real set of answers (:func:`measured_part`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from guieval.evaluation import FailurePolicy, Protocol, StepRules
from guieval.evaluation.protocol import SUCCESS_RATE, TYPE_MATCH
from guieval.metrics.columns import FAILED, RIGHT, RunColumns
from guieval.metrics.protocol_metric import ALL_EXACT, ProtocolMetric
from guieval.metrics.rounding import percentage
from guieval.reports.tables.table import Number
from guieval.scoring.matrix import JudgedAnswers, disputed

END = "<!-- the rules end here -->"
"""Text below this line of the page is measured, or written by hand."""
MEASURED_END = "<!-- the measured part ends here -->"
"""Text below this line is written by hand."""

_INTRODUCTION = """\
# Protocols

A protocol is how one published evaluation scores: which steps count, when an answer is right, how responses without an action
and steps without an answer count, and what the metrics divide by. guieval keeps each under a name, and scores the same answers
under any of them: `guieval score RUN --protocol all`. If a released scorer has a defect, the plain name reproduces its
numbers, and the version that its authors describe has a name of its own.

Points are compared in [0, 1] or in pixels, depending on the protocol; a scroll's direction is the finger's. `guieval protocols`
lists them, `guieval protocols NAME` describes one, `guieval protocols --markdown` writes this page.

The table summarises what each protocol accepts on data without a rule of its own; the sections have the details. A click is
right in a box or, after "else", within a distance of the labelled place: a share of the screen, each axis by its own side,
unless a unit is given. "x1.2" is a box enlarged by that factor. A point within a billionth of the screen of a box's border is
on the border, under every protocol, because whole pixels are not exact as fractions.

"Written for" names the data sets that the source evaluates. On other data a protocol still judges, and its metrics are marked:
"not written for androidcontrol".
"""


def protocol_page(protocols: Sequence[Protocol]) -> str:
    """The generated part of the page: a table of all protocols, then a section for each, up to the line :data:`END`."""
    lines = [_INTRODUCTION, "| protocol | written for | click | text | failures |", "| --- | --- | --- | --- | --- |"]
    for each in protocols:
        written_for = "any data" if each.datasets is None else ", ".join(sorted(each.datasets))
        few_words = (click_in_short(each.rules), text_in_short(each.rules), failure_in_short(each.failure))
        lines.append(f"| [{each.name}](#{each.name}) | {written_for} | {' | '.join(map(_cell, few_words))} |")
    for protocol in protocols:
        lines += ["", *_section(protocol)]
    return "\n".join([*lines, "", END, ""])


def measured_part(answers: JudgedAnswers, command: str) -> str:
    """The same answers under every protocol that judged them, up to the line :data:`MEASURED_END`.

    ``command`` prints the same table. Steps without an answer count as wrong, even if the source treats them differently.
    """
    columns = answers.columns()
    shares = {name: float((judged.end == RIGHT).mean()) for name, judged in columns.judged.items()}
    names = sorted(shares, key=lambda name: -shares[name])
    lines = [
        "## One set of answers under every protocol",
        "",
        f"`{command}`",
        "",
        f"Answers: {columns.selection}. Coverage is {_coverage(columns)}. Exact match and type match are over all steps, in "
        "per cent; in brackets the 95% interval over episodes.",
        "",
        *(f"- {_plain(note[:1].upper() + note[1:])}." for note in answers.notes),
        "",
        _spread(answers, columns, shares),
        "",
        "| protocol | exact match | type match | success rate | right | wrong | unparseable | unsupported | not measured |",
        "| --- " * 9 + "|",
    ]
    for name in names:
        judged = columns.judged[name]
        exact = ALL_EXACT.measure(columns, judged)
        others = [ProtocolMetric(each).measure(columns, judged, intervals=False) for each in (TYPE_MATCH, SUCCESS_RATE)]
        cells = [Number(replace(each, missing=0), ".1f", unit=False) for each in (exact, *others)]
        ends = [*list(judged.counts.values())[:FAILED], int(judged.unmeasured.sum())]
        lines.append(f"| [{name}](#{name}) | {' | '.join([*map(str, cells), *(f'{count:,}' for count in ends)])} |")
    return "\n".join([*lines, "", MEASURED_END, ""])


def _coverage(columns: RunColumns) -> str:
    found = columns.coverage(next(iter(columns.judged.values())))
    if found.value is None:
        return "unknown, for there is no answer"
    return f"{percentage(found.value, '.1f')}% of {found.n:,} answers"


def _spread(answers: JudgedAnswers, columns: RunColumns, shares: dict[str, float]) -> str:
    def between(names: Sequence[str]) -> str:
        low, high = min(names, key=shares.__getitem__), max(names, key=shares.__getitem__)
        points = 100 * (shares[high] - shares[low])
        worst, best = (percentage(shares[name], ".1f") for name in (low, high))
        return f"from {worst}% ({low}) to {best}% ({high}), {points:.1f} points apart"

    far = [
        evaluator.protocol.name
        for evaluator in answers.evaluators
        if (evaluator.protocol.rules_for(answers.answered.dataset).click.fallback or 0) >= 0.1
        and evaluator.protocol.rules_for(answers.answered.dataset).click.measure == "fraction"
    ]
    text = f"The same answers are right {between(list(shares))}, by the protocol alone"
    if len(far) > 1:
        text += f"; among those {len(far)} that accept a click within 0.1 of the screen or more, {between(far)}"
    return f"{text}. {int(disputed(columns).sum()):,} of {len(columns):,} steps are right under some of the protocols only."


def click_in_short(rules: StepRules) -> str:
    """The click rule in a few words."""
    click = rules.click
    boxes = {
        "any": f"any of the {click.inside}",
        "around-reference": f"{click.inside} around the reference",
        "nearest": f"{click.nearest} {click.inside} nearest to the reference",
        "nearest-to-prediction": f"{click.nearest} {click.inside} nearest to the response",
    }[click.which]
    if click.inside == "nothing":
        boxes = ""
    elif click.inside == "target-element":
        boxes = "targets, else smallest element around the reference"
    if click.by_node:
        boxes = "the element under the response"
    if click.polygon:
        boxes += " or polygon"
    if boxes and click.enlarge != 1:
        boxes += f" x{click.enlarge:g}"
    if boxes and click.strict:
        boxes += ", border left out"
    far = ""
    if click.fallback is not None:
        less = "less than " if click.fallback_strict else ""
        width, height = click.canvas
        unit = {
            "fraction": "",
            "canvas": f" px of {width:g} x {height:g}",
            "pixels": " px",
            "longest-side": " of the longer side",
            "diagonal": " of the diagonal",
        }[click.measure]
        far = f"{less}{click.fallback:.4g}{unit}"
    rule = ", else ".join(filter(None, (boxes, far)))
    return f"{rule} (of the corner 0, 0)" if click.reference == "origin" else rule


def text_in_short(rules: StepRules) -> str:
    """The text rule in a few words."""
    text = rules.text
    sign = "above" if text.above else "from"
    similar, f1 = f"similar {sign} {text.threshold:g}", f"token F1 {sign} {text.threshold:g}"
    return {
        "containment": "contained",
        "containment-or-similarity": f"contained or {similar}",
        "containment-or-token-f1": f"contained or {f1}",
        "similarity": similar,
        "token-f1": f1,
        "equal": "equal",
        "equal-or-token-f1": f"equal or {f1}",
        "same-words": "same words",
        "type-only": "any text",
    }[text.compare]


def failure_in_short(failure: FailurePolicy) -> str:
    """The failure policy in a few words."""
    fates = {"no action": failure.unparseable, "unsupported": failure.unsupported, "no answer": failure.missing}
    words = {"left-out": "left out", "episode-left-out": "left out, its episode too", "zero": "no progress"}
    parts = [f"{what}: {words[fate]}" for what, fate in fates.items() if fate != "wrong"]
    return "; ".join(parts) if parts else "wrong"


def _section(protocol: Protocol) -> Iterator[str]:
    yield f"## {protocol.name}"
    yield ""
    yield _plain(
        f"{protocol.summary[:1].upper()}{protocol.summary[1:]}. Version {protocol.version}. Source: {protocol.source}."
    )
    if protocol.mends is not None:
        yield f"The intended version of [{protocol.mends}](#{protocol.mends}), which keeps the defects."
    if protocol.sample_sets:
        sets = ", ".join(f"`{name}` ({dataset})" for dataset, name in sorted(protocol.sample_sets.items()))
        yield f"Its published numbers count the sample sets {sets}."
    yield from _items("When a step is right", protocol.judgement().splitlines())
    yield from _items("Metrics", [metric.describe() for metric in protocol.metrics])
    yield from _items("Failures", protocol.failure.describe().split("; "))
    if protocol.notes:
        yield from _items("Notes", protocol.notes)


def _items(title: str, texts: Iterable[str]) -> Iterator[str]:
    """A list under its title; a text that is indented belongs below the one before it."""
    yield ""
    yield f"{title}:"
    yield ""
    for text in texts:
        yield f"{'  ' if text.startswith('  ') else ''}- {_plain(text.strip().removesuffix(':'))}"


def _plain(text: str) -> str:
    """The text with Markdown's special characters escaped."""
    for character in "\\*<`":
        text = text.replace(character, f"\\{character}")
    return text


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")
