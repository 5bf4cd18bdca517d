"""Checks base URLs, proxies and API keys, and hides the key in every text."""

from __future__ import annotations

import base64
import os
import re
from functools import cached_property
from importlib.util import find_spec
from typing import Any
from urllib.request import getproxies

from guieval.errors import UsageError

SHORTEST_REDACTED = 8
"""Shorter keys are placeholders such as EMPTY, which a reply may hold by chance."""


HIDDEN = "[API key]"
MOST_HIDDEN = 1_000
"""A text that holds the encoded key so often is replaced completely."""
_MOST_MEMORY = 64 * 1024 * 1024
_PROXIES = ("http", "https", "socks5", "socks5h")


def base_url(text: str) -> str:
    """The checked base URL, without trailing slash. User, query and fragment are refused, since they could be secrets.

    Errors do not repeat a URL that holds ``@``, ``?`` or ``#``, even if it cannot be parsed.
    """
    from yarl import URL

    may_hold_secret = any(mark in text for mark in "@?#")
    try:
        url = URL(text.strip())
    except ValueError as error:
        why = "it must be like http://localhost:8000/v1, without a user or a key" if may_hold_secret else str(error)
        raise UsageError(f"a base URL is not valid: {why}") from None
    if url.port is not None and not 0 < url.port < 65536:
        raise UsageError(f"the base URL of {url.host!r} names port {url.port}, expected 1 to 65535")
    if url.raw_user or url.raw_password or url.query_string or url.fragment:
        raise UsageError(
            f"the base URL of {url.host!r} must not hold a user, a query or a fragment; a key belongs in the environment"
        )
    if url.scheme not in ("http", "https") or not url.host:
        named = "a base URL" if may_hold_secret else f"the base URL {text!r}"
        raise UsageError(f"{named} must be like http://localhost:8000/v1")
    return str(url).rstrip("/").removesuffix("/chat/completions")


def proxy_url(text: str) -> str:
    """The checked URL of the setting ``proxy``. It must not hold a password, since a run stores its settings."""
    from yarl import URL

    url = _proxy(text, "the setting 'proxy'")
    if URL(url).raw_user:
        raise UsageError(
            "the setting 'proxy' must not hold a user or a password; set trust_env=true and give it in HTTPS_PROXY"
        )
    return url


def check_environment_proxies() -> None:
    """Raise :class:`UsageError` if HTTP_PROXY, HTTPS_PROXY or ALL_PROXY is not valid."""
    for scheme, text in getproxies().items():
        if scheme in ("http", "https", "all"):
            _proxy(text, f"the environment variable {scheme.upper()}_PROXY")


def _proxy(text: str, where: str) -> str:
    from yarl import URL

    try:
        url = URL(text.strip() if "://" in text else f"http://{text.strip()}")
    except ValueError:
        url = URL("")
    if url.scheme not in _PROXIES or not url.host or (url.port is not None and not 0 < url.port < 65536):
        # the value is not repeated, since it may hold a password
        raise UsageError(f"{where} does not hold the URL of a proxy, such as http://proxy.example:3128")
    if url.scheme.startswith("socks") and find_spec("aiohttp_socks") is None:
        raise UsageError(f"{where} holds the URL of a SOCKS proxy, for which the package aiohttp-socks must be installed")
    return str(url)


def api_key(variable: str) -> str:
    """The API key in an environment variable, empty if it is not set; :class:`UsageError` for an invalid key."""
    if variable not in os.environ and not variable.isupper():
        raise UsageError(
            "api_key_env must be the name of an environment variable that is set; the given value is not repeated here, "
            "since it may be the key itself"
        )
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise UsageError(f"the environment variable {variable} holds characters that are not allowed in an API key")
    return key


class Secret:
    """Hides a key in texts: verbatim, in hexadecimal, within base64, and all of these reversed.

    These forms are also recognised if they are percent-encoded (any number of times), escaped as in JSON, or interrupted by
    white space. Other encodings are not recognised. A short key is hidden only verbatim. The time is linear in the text.

    Base64 encodes three bytes as four characters, so a key reads differently after 0, 1 or 2 other bytes (for example
    ``user:``); for each case, the characters that encode only bits of the key are searched.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self.is_short = len(key) < SHORTEST_REDACTED

    def hidden(self, text: str) -> str:
        """The text with ``[API key]`` in place of the key; only ``[API key]`` if the key occurs too often."""
        if not self._key:
            return text
        text = text.replace(self._key, HIDDEN)
        if self.is_short:
            return text
        redacted, count = self._pattern.subn(HIDDEN.encode(), text.encode(errors="surrogatepass"), MOST_HIDDEN)
        if count == 0:
            return text
        return HIDDEN if count == MOST_HIDDEN else redacted.decode(errors="surrogatepass")

    @cached_property
    def _pattern(self) -> Any:
        import re2

        data = self._key.encode()
        forms = {self._key, data.hex(), data.hex().upper()}
        for before in range(3):
            whole = base64.b64encode(bytes(before) + data).decode()
            inner = whole[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
            forms |= {inner, inner.translate(str.maketrans("+/", "-_"))}
        forms = {form.replace(" ", "").replace("\\", "") for form in forms}  # the pattern allows these anywhere
        forms = {form for form in forms if len(form) >= SHORTEST_REDACTED}
        ordered = sorted(forms | {form[::-1] for form in forms}, key=len, reverse=True)
        options = re2.Options()
        options.max_mem = _MOST_MEMORY
        return re2.compile("|".join(_BETWEEN.join(map(_written, form)) for form in ordered), options)


_CODE_OF_BLANK = "(?i:09|0[a-d]|1[c-f]|20|85|a0)"
_BETWEEN = rf"(?:[\s\v\x1c-\x1f\x85\pZ]|\\+(?:[nrt]|u00{_CODE_OF_BLANK})?|%(?:25)*{_CODE_OF_BLANK})*"
"""Characters that may separate two characters of a key."""


def _written(character: str) -> str:
    """An RE2 pattern for all encodings of a character."""
    code = f"(?i:{ord(character):02x})"
    return rf"(?:{re.escape(character)}|%(?:25)*{code}|\\+u00{code})"
