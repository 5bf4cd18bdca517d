"""Where a server is and which key opens it: checked, and no secret among them repeated in any text."""

from __future__ import annotations

import base64
import json
import os
import re
from urllib.parse import quote

from guieval.errors import UsageError

SHORTEST_REDACTED = 8
"""Shorter keys are placeholders such as EMPTY, which a reply may hold by chance."""


def base_url(text: str) -> str:
    """A base URL checked and without trailing slash. It may hold no user, query or fragment: those could be secrets.

    So no error repeats one that holds a mark of those, also where it is misspelt and nothing of it can be told apart.
    """
    import httpx

    may_hold_secret = any(mark in text for mark in "@?#")
    try:
        url = httpx.URL(text.strip())
    except httpx.InvalidURL as error:
        why = "it must be like http://localhost:8000/v1, without a user or a key" if may_hold_secret else str(error)
        raise UsageError(f"a base URL is not valid: {why}") from None
    if url.userinfo or url.query or url.fragment:
        raise UsageError(
            f"the base URL of {url.host!r} must not hold a user, a query or a fragment; a key belongs in the environment"
        )
    if url.scheme not in ("http", "https") or not url.host:
        named = "a base URL" if may_hold_secret else f"the base URL {text!r}"
        raise UsageError(f"{named} must be like http://localhost:8000/v1")
    return str(url).rstrip("/").removesuffix("/chat/completions")


def api_key(variable: str) -> str:
    """The key that an environment variable holds, empty where it is not set; :class:`UsageError` for one that cannot be."""
    if variable not in os.environ and not variable.isupper():
        raise UsageError(
            "api_key_env must be the name of an environment variable that is set; what was given is not repeated here, "
            "since it may be the key itself"
        )
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"the environment variable {variable} holds characters that no API key may have")
    return key


def secret_pattern(key: str) -> re.Pattern[str] | None:
    """Finds a key in a text: as it is, percent-encoded, escaped as in JSON, in hexadecimal or inside of base64.

    In base64 three characters stand for three bytes' 24 bits, so a key reads differently after 0, 1 or 2 other bytes (``user:``
    before it, say); what is found is each time the part that holds nothing but bits of the key.
    """
    if not key:
        return None
    forms = {key}
    if len(key) >= SHORTEST_REDACTED:
        data = key.encode()
        forms |= {quote(key, safe=safe) for safe in ("", "/", "/+=:")} | {
            json.dumps(key)[1:-1],
            key.replace("/", "\\/"),
            data.hex(),
        }
        for before in range(3):
            whole = base64.b64encode(bytes(before) + data).decode()
            inner = whole[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
            forms |= {inner, inner.translate(str.maketrans("+/", "-_"))}
        forms |= {re.sub("%..", lambda found: found.group().lower(), form) for form in forms}
    return re.compile("|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)))
