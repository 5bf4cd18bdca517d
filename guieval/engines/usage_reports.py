"""Reads the token usage that a service states with a response, also with one that cannot be used: it has to be paid as well.

Sources: the field ``usage`` of OpenAI's chat completions and Responses API and of Anthropic's Messages API, and
``usageMetadata`` of Gemini's ``generateContent``.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterable
from typing import Any

from guieval.engines.http.bounded_json import read_json
from guieval.steps import Usage

_PROMPT = ("prompt_tokens", "input_tokens", "promptTokenCount")
_COMPLETION = ("completion_tokens", "output_tokens")
_CACHED = ("cache_read_input_tokens", "cache_creation_input_tokens")
"""Anthropic's counts of prompt tokens that are not part of ``input_tokens``."""
_MADE = ("candidatesTokenCount", "thoughtsTokenCount")
"""Gemini's counts of the answer and of its thoughts, which are paid as well; either is missing if it is zero."""
_FIELDS = ("usage", "usageMetadata")
_END = 1 << 20
"""Bytes at either end of a body in which a report is looked for; the last few are read, as each may be large."""
_MOST_REPORTS = 20
_FIELD = re.compile(r'"(?:usage|usageMetadata)"\s*:\s*(?=\{)')  # within a text of JSON, its quotes would be escaped


def usage_of(report: Any) -> Usage | None:
    """The usage in a report of any of these services; ``None`` if there is no report."""
    if not isinstance(report, dict):
        return None
    prompt = [report[name] for name in _PROMPT if name in report][:1]
    completion = [report[name] for name in _COMPLETION if name in report][:1]
    return Usage(
        prompt_tokens=_total([*prompt, *(report[name] or 0 for name in _CACHED if name in report)]) if prompt else None,
        completion_tokens=_total(completion or [report[name] for name in _MADE if report.get(name) is not None]),
    )


def usage_in(data: bytes) -> Usage | None:
    """The usage that the body of a response states, even if it is cut off or is no response; ``None`` if it states none."""
    try:
        payload = read_json(data)
    except ValueError:
        ends = data if len(data) <= 2 * _END else data[:_END] + data[-_END:]
        reports = _reports(ends.decode("utf-8", "replace"))
    else:
        reports = [payload.get(name) for name in _FIELDS] if isinstance(payload, dict) else []
    usages = [usage for usage in map(usage_of, reports) if usage is not None and usage.stated]
    return usages[-1] if usages else None


def _reports(text: str) -> Iterable[Any]:
    for found in deque(_FIELD.finditer(text), maxlen=_MOST_REPORTS):
        try:
            yield json.JSONDecoder().raw_decode(text, found.end())[0]
        except (ValueError, RecursionError):
            continue


def _total(counts: list[Any]) -> int | None:
    """The sum of token counts; ``None`` if one of them is unknown or impossible, so that it cannot lower a cost."""
    known = [Usage(prompt_tokens=count).prompt_tokens for count in counts]
    return None if not known or None in known else sum(count for count in known if count is not None)
