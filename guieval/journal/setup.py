"""Who answered a run, and how: the engine with its version and precision, how images were sent, and one request's digest.

A manifest keeps a :class:`Setup` for each session that differs from the one before. Everything is as far as the server said it,
or guieval started it: what nobody said is ``None``, and is shown as "unknown". Two runs, or two sessions of a run, differ in a
fact if it is known of both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple, Self, TypeAlias, TypeVar

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from guieval.errors import one_line

UNKNOWN = "unknown"
AGENT = "Python agent"
"""The engine of a model that is a program: it has no precision, no processor and no template."""
MOST_LISTED = 20
"""Number of names that are recorded of a kind; hosted servers list hundreds of models."""
_MOST_SHOWN = 3

_T = TypeVar("_T")
Facts: TypeAlias = Mapping[str, tuple[str, ...]]
"""The known values of each fact, by its name: none if it is unknown, several if servers or sessions differ."""


class _Recorded(BaseModel):
    """Unknown fields are kept, since later versions add fields."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow", protected_namespaces=())


class EngineFacts(_Recorded):
    """One server, or the model in this process, as far as it says; ``None`` is unknown."""

    url: str = Field("", description="base URL; empty in this process")
    models: tuple[str, ...] = Field((), description="models that the server lists")
    root: str | None = Field(None, description="checkpoint that it has loaded: a folder or a Hugging Face id")
    name: str | None = Field(None, description="the engine, e.g. vLLM")
    version: str | None = None
    dtype: str | None = Field(None, description="precision of the weights, e.g. bfloat16")
    quantization: str | None = Field(None, description='method of quantization; "none" if it is known that there is none')
    attention: str | None = Field(None, description="backend of the attention")
    cache: str | None = Field(None, description="cache of keys and values of engine transformers: dynamic or static")
    batch_size: int | None = Field(None, description="most requests that engine transformers computes at once")
    min_pixels: int | None = Field(None, description="fewest pixels of an image before the processor enlarges it")
    max_pixels: int | None = Field(None, description="most pixels of an image before the processor reduces it")
    chat_template: str | None = Field(None, description="first 16 hexadecimal digits of the template's SHA-256")

    def completed(self, other: EngineFacts) -> Self:
        """These facts, with those of ``other`` in place of unknown ones."""
        known = {
            name: value
            for name in type(self).model_fields
            if getattr(self, name) is None and (value := getattr(other, name)) is not None
        }
        return self.model_copy(update=known)

    @property
    def pixels(self) -> str | None:
        """The processor's limits in words."""
        limits = ("?" if limit is None else f"{limit:,}" for limit in (self.min_pixels, self.max_pixels))
        return None if self.min_pixels is self.max_pixels is None else " to ".join(limits)


class SentRequest(_Recorded):
    """One request as it was sent: its step and sample, and its bytes, with all images in bytes."""

    id: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    bytes: int = Field(ge=0)


class Setup(_Recorded):
    """Who answered a session, and how; ``None`` is unknown. Earlier versions recorded the models and servers alone."""

    model: str = Field("", validation_alias=AliasChoices("model", "asked"), description="model name that was requested")
    named: bool = Field(False, description="whether the user gave that name")
    engines: tuple[EngineFacts, ...] = Field((), validation_alias=AliasChoices("engines", "servers"))
    images: str | None = Field(None, description="how images are encoded: format, whose bytes, form")
    request: SentRequest | None = Field(None, description="the session's first request")
    answered_as: tuple[str, ...] = Field((), description="names that responses give their model")
    fingerprints: tuple[str, ...] = Field((), description="values of system_fingerprint in responses")

    @property
    def facts(self) -> Facts:
        """The facts, in the order in which they are shown."""
        of_engines = ("name", "version", "dtype", "quantization", "attention", "pixels", "chat_template")
        named: dict[str, Iterable[str | None]] = {
            "engine" if fact == "name" else fact.replace("_", " "): [getattr(each, fact) for each in self.engines]
            for fact in of_engines
        }
        sizes = [None if each.batch_size is None else str(each.batch_size) for each in self.engines]
        named |= {
            "cache": [each.cache for each in self.engines],
            "batch size": sizes,
            "images": [self.images],
            "request": [None if self.request is None else self.request.sha256[:16]],
            "system fingerprint": self.fingerprints,
            "answered as": self.answered_as,
        }
        return {name: _distinct(values) for name, values in named.items()}

    @property
    def digest(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 of what is known before the first response; addresses do not count."""
        kept = {name: values for name, values in self.facts.items() if values and name not in OF_RESPONSES}
        return sha256(json.dumps([self.model, kept], sort_keys=True).encode()).hexdigest()[:16]

    def is_like(self, other: Setup) -> bool:
        """Whether nothing tells the two apart but addresses, the request whose digest is kept, and responses."""
        return self._lasting == other._lasting

    def joined(self, other: Setup) -> Self:
        """This set-up with what ``other``, of the same session or a like one, adds."""
        update = {
            "engines": _distinct((*self.engines, *other.engines)),
            "images": self.images or other.images,
            "request": self.request or other.request,
            "answered_as": _distinct((*self.answered_as, *other.answered_as))[:MOST_LISTED],
            "fingerprints": _distinct((*self.fingerprints, *other.fingerprints))[:MOST_LISTED],
        }
        return self.model_copy(update=update)

    @property
    def _lasting(self) -> tuple[object, ...]:
        engines = {
            each.model_copy(update={"url": "", "models": tuple(sorted(each.models))}).model_dump_json() for each in self.engines
        }
        return self.model, self.named, engines


class Change(NamedTuple):
    """A fact that differs: its name, and the known values on both sides."""

    fact: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    def said(self, between: str) -> str:
        """The fact with its values, e.g. ``version (0.11.0, then 0.12.0)``."""
        return f"{self.fact} ({_listed(self.before)}{between}{_listed(self.after)})"


OF_RESPONSES = ("request", "system fingerprint", "answered as")
_OF_TRANSFORMERS = ("cache", "batch size")
_OF_ENGINES = ("engine", "version")
_OF_THE_MODEL = ("pixels", "chat template", *OF_RESPONSES)
"""Facts in which two models always differ."""


def differences(before: Sequence[Setup], after: Sequence[Setup], *, same_model: bool = True) -> list[Change]:
    """The facts that are known of both sides and differ; of other models only those that do not depend on the model.

    The requests' digests are compared if they are of the same step and the images are encoded alike. A service has many system
    fingerprints: they differ if the sides share none.
    """
    one, other = facts_of(before), facts_of(after)
    first, second = ({(each.request.id, each.model) for each in side if each.request is not None} for side in (before, after))
    changed = []
    for fact in one.keys() | other.keys():
        values, others = one.get(fact, ()), other.get(fact, ())
        if not values or not others or set(values) == set(others) or (fact in _OF_THE_MODEL and not same_model):
            continue
        if fact == "request" and (one["images"] != other["images"] or first != second or len(first) != 1):
            continue
        if fact in ("system fingerprint", "answered as") and set(values) & set(others):
            continue
        changed.append(Change(fact, values, others))
    order = list(one | other)
    return sorted(changed, key=lambda change: order.index(change.fact))


def facts_of(setups: Iterable[Setup]) -> dict[str, tuple[str, ...]]:
    """The facts of a run's sessions together."""
    known: dict[str, tuple[str, ...]] = dict(Setup().facts)
    for setup in setups:
        known = {name: _distinct((*known.get(name, ()), *values)) for name, values in (known | dict(setup.facts)).items()}
    return known


def describe(setups: Sequence[Setup], *, request: bool = True) -> str:
    """The set-up of a run in one line: what is known, then the names of what is not; "unknown" of an imported run, and
    "not recorded" if nothing was.

    Without its ``request``, a digest that differs from one benchmark to the next, runs with one set-up say the same.
    """
    facts = {name: values for name, values in facts_of(setups).items() if request or name != "request"}
    if not any(facts.values()):
        return UNKNOWN if list(setups) == [Setup()] else "not recorded"
    known = [f"{name} {_listed(values)}" for name, values in facts.items() if values and name not in _OF_ENGINES]
    engine = [engine_of(setups)] if facts["engine"] or facts["version"] else []
    expected = () if facts["engine"] == (AGENT,) else facts
    unknown = [name for name in expected if not facts[name] and name not in (*OF_RESPONSES, *_OF_TRANSFORMERS)]
    return ", ".join((*engine, *known)) + (f"; {UNKNOWN}: {', '.join(unknown)}" if unknown else "")


def engine_of(setups: Sequence[Setup]) -> str:
    """The engines of a run with their versions, in short."""
    pairs = _distinct((each.name or UNKNOWN, each.version or "") for setup in setups for each in setup.engines)
    return _listed([f"{name} {version}".strip() for name, version in pairs])


def _listed(values: Sequence[str]) -> str:
    shown = " and ".join(one_line(value, 120) for value in values[:_MOST_SHOWN])
    return (shown or UNKNOWN) + (f" and {len(values) - _MOST_SHOWN} more" if len(values) > _MOST_SHOWN else "")


def _distinct(values: Iterable[_T | None]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(value for value in values if value is not None))


def text_digest(text: str) -> str:
    """First 16 hexadecimal digits of a text's SHA-256."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
