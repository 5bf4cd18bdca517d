"""The result of a conformance check."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from guieval.models import ABCModel
from guieval.models.faults import fault_of

Subject = TypeVar("Subject")


@dataclass(frozen=True)
class Finding:
    """One violation: the plug-in, the check, and the problem in one sentence."""

    subject: str
    check: str
    message: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.check}: {self.message}"


def run_check(name: str, title: str, check: Callable[[Subject], Iterable[str]], subject: Subject) -> list[Finding]:
    """The violations that a check finds; an exception is one too, since a plug-in may raise anything."""
    messages: list[str] = []
    try:
        messages += check(subject)
    except Exception as error:
        fault = fault_of(subject, error) if isinstance(subject, ABCModel) else None
        messages.append(fault or f"{type(error).__name__}: {error}")
    return [Finding(name, title, message) for message in messages]
