"""Warns that the answers of a run are not what they seem: unreadable, withheld, in the wrong field or frame."""

from __future__ import annotations

from collections import Counter

from guieval.data.doctor.counts import counted
from guieval.errors import one_line
from guieval.journal import Journal, RunFolder
from guieval.models import ABCModel
from guieval.models.frame_audit import FrameWatch
from guieval.models.response import how_ended
from guieval.registry import model_configs
from guieval.secrets import HIDDEN
from guieval.steps import Sample, StepRecord

LOOKED_AT = 20
"""Responses at the start of a session that are looked at."""


class AnswerWatch:
    """Looks at every record of a session; warns once of each problem, and writes the frame audit of an unlisted checkpoint
    into the manifest: the frame itself is the user's to change."""

    def __init__(self, model: ABCModel, journal: Journal) -> None:
        self._journal = journal
        self._frames = FrameWatch(model)
        self._unlisted = bool(model.config.resolved) or model.config.name not in model_configs()
        self._replies = ReplyWatch()
        self._withheld: Counter[str] = Counter()
        self._in_reasoning = 0
        self._with_key = 0

    def add(self, record: StepRecord) -> list[str]:
        """Take in one more record; the warnings that it gives rise to."""
        unreadable = self._replies.add(record)
        for sample in record.samples:
            self._withheld.update([sample.finish_reason or ""] if how_ended(sample.finish_reason) == "filter" else [])
            self._in_reasoning += sample.in_reasoning
            self._with_key += sample.key_removed
        warnings = [] if unreadable is None else [unreadable]
        if (report := self._frames.add(record.task, record.sample)) is not None:
            directory = self._journal.directory
            if self._unlisted:
                self._journal.amend(RunFolder(directory).manifest.model_copy(update={"frame_audit": report.sentence}))
            warnings += [f"{report.sentence}: guieval dev audit {directory}"] * (report.better is not None)
        return warnings

    def close(self) -> list[str]:
        """The warnings at the end of a session."""
        unreadable = self._replies.close()
        warnings = [] if unreadable is None else [unreadable]
        warnings += [
            f"the server's filter ended {counted(count, 'response')} ({reason}), which count as the model's"
            for reason, count in sorted(self._withheld.items())
        ]
        if self._with_key:
            warnings.append(
                f"{counted(self._with_key, 'response')} held the API key, in whose place {HIDDEN} stands, also where the "
                "action was read; the steps are marked (key_removed)"
            )
        if self._in_reasoning:
            warnings.append(
                f"{counted(self._in_reasoning, 'response')} had an empty text and stood in the reasoning field, from which the "
                "action was read; vLLM and SGLang put it into the text without --reasoning-parser"
            )
        return warnings


class ReplyWatch:
    """Counts the first responses of a session that hold no action, and warns once when they are more than half.

    The reason is usually the wrong adapter, a wrong chat template, or too few tokens.
    """

    def __init__(self) -> None:
        self._seen = 0
        self._unreadable = 0
        self._first: Sample | None = None
        self._over = False

    def add(self, record: StepRecord) -> str | None:
        """Take in one more record; a warning as soon as more than half of :data:`LOOKED_AT` responses could not be read."""
        for sample in record.samples:
            if sample.raw_response is None or self._over:
                continue
            self._seen += 1
            if sample.error is not None and sample.error.stage == "parse":
                self._unreadable += 1
                self._first = self._first or sample
            if self._unreadable > LOOKED_AT / 2:
                return self._warning()
            self._over = self._seen >= LOOKED_AT
        return None

    def close(self) -> str | None:
        """The session has ended: a warning if it had fewer responses, and more than half of them could not be read."""
        return self._warning() if not self._over and self._unreadable > self._seen / 2 else None

    def _warning(self) -> str:
        self._over = True
        assert self._first is not None and self._first.error is not None  # one of those that were counted
        reply = one_line(self._first.raw_response or "", 300)
        content = f'is "{reply}"' if reply else "is empty"
        reason = one_line(self._first.error.message, 300)
        cut = ", and the server cut it off at the limit of tokens" if self._first.finish_reason == "length" else ""
        seen = f"{self._unreadable} of the first {self._seen} responses" if self._seen > 1 else "the first response"
        return f"{seen} could not be read as an action; the first {content} ({reason}{cut})"
