"""Checks base URLs and proxies, which must not contain a key (:mod:`guieval.secrets`)."""

from __future__ import annotations

from importlib.util import find_spec
from urllib.request import getproxies

from guieval.errors import UsageError
from guieval.secrets import Redaction, may_be_secret_parameter

_PROXIES = ("http", "https", "socks5", "socks5h")


def base_url(text: str, redaction: Redaction) -> tuple[str, str]:
    """The checked base URL, without trailing slash, and its query, which is empty or begins with a question mark.

    A user and a fragment are refused, and a query that may hold a secret, by the name of a parameter or by its value.

    Errors do not repeat a URL with ``@``, ``?`` or ``#``, even if it cannot be parsed.
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
    if url.raw_user or url.raw_password or url.fragment:
        raise UsageError(f"the base URL of {url.host!r} must not hold a user or a fragment; a key belongs in the environment")
    if any(may_be_secret_parameter(name, value, redaction) for name, value in url.query.items()):
        raise UsageError(
            f"the base URL of {url.host!r} must not hold a key in its query (api-version=2024-10-21 is fine); a key belongs in "
            "the environment"
        )
    if url.scheme not in ("http", "https") or not url.host:
        named = "a base URL" if may_hold_secret else f"the base URL {text!r}"
        raise UsageError(f"{named} must be like http://localhost:8000/v1")
    query = f"?{url.raw_query_string}" if url.raw_query_string else ""
    return str(url.with_query(None)).rstrip("/").removesuffix("/chat/completions"), query


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
        raise UsageError(f"{where} has the URL of a SOCKS proxy, for which the package aiohttp-socks must be installed")
    return str(url)
