"""Keeps secrets out of files: which settings are refused, which names are dropped, and what is removed from which texts.

A setting whose name says that it is a secret is refused. A configured key is removed from messages and logs, one that looks
secret from responses too, and a file that contains one is not published.

Keys such as ``EMPTY``, ``x`` or ``anything`` are common if a server wants a key and checks none. Such a word is removed from
a message if it is a word of its own, and a response or the name of a model is never changed for it, as a model may write the
word.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from guieval.errors import UsageError

HIDDEN = "[API key]"
MOST_HIDDEN = 1_000
"""A text that contains the encoded key so often is replaced completely."""
SHORTEST_SECRET, SHORTEST_LETTERS = 16, 24
"""Characters from which a key with letters and digits looks secret, and from which one with letters of both cases does."""
_MOST_MEMORY = 64 * 1024 * 1024


VARIABLE_OF = {"api-key": "VLLM_API_KEY (and --api-key-env VLLM_API_KEY)", "hf-token": "HF_TOKEN"}
"""The environment variables in place of the arguments of vLLM that are secrets."""
_SECRET = re.compile(
    r"api[-_ ]?key|authorization|^(extra[-_])?headers$|(^|[-_])(password|passwd|secret|bearer|credentials?|cookies?)$"
    r"|^token$|(^|[-_])(hf|hub|api|auth|access|bearer)[-_]?token$",
    re.IGNORECASE,
)
"""Names under which keys are sent; others that end in the same words (``prompt_cache_key``, ``eos_token``) hold none."""
_MAYBE_SECRET = re.compile(
    r"(?:^|[^a-z])(?:token|key|secrets?|passwords?|passwd|auth|authorization|bearer|credentials?|cookies?)$|api[^a-z]?key|headers",
    re.IGNORECASE,
)
_PARAMETER = re.compile(r"key|token|secret|passw|auth|code|credential|sig$|signature|session", re.IGNORECASE)
_VERSION = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(-[a-z]+)?|[a-z]+([-.][a-z]+|[-.][0-9]{1,4})*")
"""A value that mixes letters and digits and is no secret: ``2024-12-01-preview``, ``gpt-4.1-2025``."""
_SHORTEST_VALUE = 8
"""Shorter values of a variable are placeholders such as EMPTY, which a response may contain by chance."""
_KEYS = re.compile(
    rb"\b(sk-[\w-]{20,}|hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|AKIA[0-9A-Z]{16}|AIza[\w-]{35})\b"
    rb"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
"""Keys of well-known services, by their form."""


def secret_name(value: Any) -> str | None:
    """The first name in nested JSON that is the name of a secret, as a path; its value is not read."""
    items: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = [(str(place), item) for place, item in enumerate(value)]
    for name, item in items:
        if isinstance(value, dict) and _SECRET.search(name):
            return name
        if (inner := secret_name(item)) is not None:
            return f"{name}.{inner}"
    return None


def may_be_secret(name: str) -> bool:
    """Whether something with this name is not passed on, e.g. to a tracker: it may be a secret."""
    return _MAYBE_SECRET.search(name) is not None


def may_be_secret_parameter(name: str, value: str, redaction: Redaction) -> bool:
    """Whether a parameter of a URL may be a secret, by its name or its value."""
    if _PARAMETER.search(name) or redaction.message(value) != value:
        return True
    return looks_secret(value) and not _VERSION.fullmatch(value)


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


def secret_variables() -> dict[str, bytes]:
    """The values of this process's environment variables that are secrets by their names."""
    values = {name: value.strip() for name, value in os.environ.items() if may_be_secret(name)}
    return {name: value.encode() for name, value in values.items() if len(value) >= _SHORTEST_VALUE}


def secrets_in(line: bytes, variables: Mapping[str, bytes]) -> list[str]:
    """What secrets a line contains, in words: values of ``variables``, and what looks like a key."""
    found = [f"the value of the variable {name}" for name, value in variables.items() if value in line]
    return found + ["what looks like a key"] * bool(_KEYS.search(line))


def looks_secret(key: str) -> bool:
    """Whether a key is no word that a text may hold by chance: it is long, and mixes classes of characters."""
    letters = any(map(str.isalpha, key))
    if letters and any(map(str.isdigit, key)):
        return len(key) >= SHORTEST_SECRET
    return len(key) >= SHORTEST_LETTERS and key.lower() != key != key.upper()


class Redaction:
    """Removes keys from texts. Of two keys one of which contains the other, the longer one is removed first.

    A key that looks secret is removed wherever it occurs: verbatim, in hexadecimal, within base64, and all of these reversed.
    These forms are also recognised if they are percent-encoded (any number of times), escaped as in JSON, or interrupted by
    white space. Other encodings are not recognised. Any other key is removed at word borders, percent-encoded or escaped too.
    The time is linear in the text.

    Base64 encodes three bytes as four characters, so a key reads differently after 0, 1 or 2 other bytes (for example
    ``user:``); for each case, the characters that encode only bits of the key are searched.
    """

    def __init__(self, keys: Iterable[str]) -> None:
        known = sorted({key for key in keys if key}, key=len, reverse=True)
        self._secrets = [key for key in known if looks_secret(key)]
        self._words = [key for key in known if not looks_secret(key)]

    @classmethod
    def of_variables(cls, *names: str) -> Redaction:
        """For the keys that environment variables hold now."""
        return cls(os.environ.get(name, "").strip() for name in names)

    def response(self, text: str) -> str:
        """A response, or a name that a server gives its model, without the keys that look secret."""
        if not self._secrets:
            return text
        for key in self._secrets:
            text = text.replace(key, HIDDEN)
        removed, count = self._secret_forms.subn(HIDDEN.encode(), text.encode(errors="surrogatepass"), MOST_HIDDEN)
        if count == 0:
            return text
        return HIDDEN if count == MOST_HIDDEN else removed.decode(errors="surrogatepass")

    def message(self, text: str) -> str:
        """A message without any of the keys; only ``[API key]`` if a secret one occurs too often."""
        text = self.response(text)
        if not self._words:
            return text
        removed: bytes = self._word_forms.sub(HIDDEN.encode(), text.encode(errors="surrogatepass"))
        return removed.decode(errors="surrogatepass")

    @cached_property
    def _secret_forms(self) -> Any:
        forms = {form for key in self._secrets for form in _forms(key)}
        ordered = sorted(forms | {form[::-1] for form in forms}, key=len, reverse=True)
        return _compiled("|".join(_BETWEEN.join(map(_written, form)) for form in ordered))

    @cached_property
    def _word_forms(self) -> Any:
        # what was removed before is matched as a whole, since a key may be a word of it
        return _compiled("|".join([re.escape(HIDDEN), *map(_bordered, self._words)]))


def _forms(key: str) -> set[str]:
    data = key.encode()
    forms = {key, key.rstrip("="), data.hex(), data.hex().upper()}
    for before in range(3):
        whole = base64.b64encode(bytes(before) + data).decode()
        inner = whole[-(-before * 8 // 6) : (before + len(data)) * 8 // 6]
        forms |= {inner, inner.translate(str.maketrans("+/", "-_"))}
    forms = {form.replace(" ", "").replace("\\", "") for form in forms}  # the pattern allows these anywhere
    return {form for form in forms if len(form) >= 8}  # shorter ones occur by chance


def _compiled(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.max_mem = _MOST_MEMORY
    return re2.compile(pattern, options)


_CODE_OF_BLANK = "(?i:09|0[a-d]|1[c-f]|20|85|a0)"
_BETWEEN = rf"(?:[\s\v\x1c-\x1f\x85\pZ]|\\+(?:[nrt]|u00{_CODE_OF_BLANK})?|%(?:25)*{_CODE_OF_BLANK})*"
"""Characters that may separate two characters of a key."""


def _written(character: str) -> str:
    """An RE2 pattern for all encodings of a character."""
    return f"(?:{_plain(character)}|{_encoded(character)})"


def _bordered(key: str) -> str:
    """An RE2 pattern for a key that neither follows nor precedes a character of a word, if it begins or ends with one."""
    first, last = (r"\b" if _is_word(character) else "" for character in (key[0], key[-1]))
    # an encoded first character begins with a sign, before which a border would be a word's end
    begin = rf"(?:{first}{_plain(key[0])}|\B{_encoded(key[0])})"
    return begin + "".join(map(_written, key[1:])) + last


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _plain(character: str) -> str:
    return rf"\\*{re.escape(character)}" if not _is_word(character) else character


def _encoded(character: str) -> str:
    code = f"(?i:{ord(character):02x})"
    return rf"(?:%(?:25)*{code}|\\+u00{code})"
