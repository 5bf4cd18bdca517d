"""Engines answer requests: an HTTP server (``openai``), a Python agent (``local``) or an earlier run (``replay``).

Their contract is :class:`guieval.models.Engine`. Here is only what they and the runner share: how a request is named, so that
a server's log, a mock server and a replay can tell which step is asked. The engines themselves are imported where they are
used, because each brings its own packages.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from guieval.steps import StepKey

__all__ = ["parse_request_id", "request_id", "with_try", "without_try"]

_TRY = re.compile(r"~[0-9a-f]{8}\.[0-9]+$")
_VISIBLE = "".join(chr(code) for code in range(0x21, 0x7F))


def request_id(key: StepKey, sample: int) -> str:
    """The name of one sample of one step: ``benchmark|subset|episode|step|sample``, each part percent-encoded.

    Visible ASCII only, so it can stand in an HTTP header. :func:`parse_request_id` is the inverse.
    """
    texts = (quote(part, safe="", errors="surrogatepass") for part in (key.benchmark, key.subset, key.episode_id))
    return "|".join((*texts, str(key.step_index), str(sample)))


def parse_request_id(text: str) -> tuple[StepKey, int]:
    """Step and sample that a request id names, with or without the try's suffix; ``ValueError`` when it names none."""
    parts = without_try(text).split("|")
    if len(parts) != 5 or not (parts[3].isdecimal() and parts[4].isdecimal()):
        raise ValueError(f"{text!r} is no request id: expected benchmark|subset|episode|step|sample")
    benchmark, subset, episode = (unquote(part, errors="surrogatepass") for part in parts[:3])
    return StepKey(benchmark, subset, episode, int(parts[3])), int(parts[4])


def with_try(text: str, nonce: str, attempt: int) -> str:
    """A request id as it is sent: header-safe, and unlike that of every other try of every other run.

    vLLM takes the header for its own key of a running request: it refuses a second one, with status 400, and older versions
    break (vllm-project/vllm issue 10583, pull requests 11036 and 27987). Two runs over the same steps, or a try that follows
    one cut off by its time limit, would hit that. ``nonce`` is 8 hexadecimal digits.
    """
    return f"{quote(text, safe=_VISIBLE, errors='surrogatepass')}~{nonce}.{attempt}"


def without_try(text: str) -> str:
    """A request id as the runner wrote it, from the one in a header."""
    return _TRY.sub("", text)
