"""Runs a checkpoint that is not listed as the listed one that it is like: its name and its files decide, or it is refused.

The listed checkpoints have :class:`guieval.models.config.Marks`. Evidence, strongest first: the name, without the words of a
quantisation; its origin, that is the ``_name_or_path`` in ``config.json``, unless that is a base model; a ``model_type`` of the
family's own. The ``model_type`` must fit in any case, and a chat template decides between checkpoints of one family.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from guieval.data.checkpoint import CONFIG, CheckpointFiles
from guieval.errors import UsageError
from guieval.models.adapter import UNBOUND, ABCModel, ImageLimits
from guieval.models.config import Marks, ModelConfig

BASE_LIMITS = ({"min_pixels": 3136, "max_pixels": 12845056}, {"min_pixels": 65536, "max_pixels": 16777216})
"""The limits of Qwen's own processors, which most trainings copy: they do not say how a checkpoint was trained."""
_QUANTISED = re.compile(r"([-.](awq|gptq|fp8|nvfp4|mxfp4|int[48]|w\d+a\d+|[2-8]-?bits?|bnb|mlx|dynamic|unsloth|hf|bf16))+$")


class Like(NamedTuple):
    """The listed checkpoint that an unlisted one is like, and why."""

    config: ModelConfig
    why: str


class _Match(NamedTuple):
    config: ModelConfig
    marks: Marks
    text: str
    """What of a name fits; "" if no name was compared."""


def like_listed(name: str, files: CheckpointFiles, listed: Iterable[ModelConfig]) -> Like:
    """The checkpoint of ``listed`` that the one called ``name`` is like.

    Raises :class:`UsageError` naming the families that it may be of, if its files cannot tell, or that there is none.
    """
    kind, origin = (str(files.config.get(key) or "") for key in ("model_type", "_name_or_path"))
    if not kind:
        raise UsageError(f"{name!r} has no {CONFIG} with a model_type, which says what it is: add --adapter FAMILY")
    said = f"its {CONFIG} has model_type {kind!r}"
    marked = [_Match(config, config.marks, "") for config in listed if config.marks is not None]
    trained = [each for each in marked if not each.marks.name.startswith("^")]
    sources = {"its name": _fitting(name, marked), "its origin": _fitting(origin, trained), "its type": _fitting(kind, trained)}
    source, named = next(((source, found) for source, found in sources.items() if found), ("its name", []))
    known = [each for each in named or marked if kind in each.marks.model_type or (named and not each.marks.model_type)]
    families = sorted({each.config.adapter for each in known})
    if not known and named:
        theirs = " or ".join(sorted({kind for each in named for kind in each.marks.model_type}))
        raise UsageError(
            f"{source} says that {name!r} is {named[0].text} (model_type {theirs}), but {said}: add --adapter FAMILY"
        )
    if not known:
        raise UsageError(f"no family is known for {name!r}: {said}; add --adapter FAMILY if its responses are like one's")
    if len(families) > 1 or not named:
        fits = f"{source} fits several families" if named else f"{source} fits no family"
        raise UsageError(
            f"the files of {name!r} do not say which family it is of: {said} and {fits}; add --adapter with one "
            f"of {', '.join(families)}"
        )
    chosen, opened = _by_template(known, files.template)
    return Like(chosen.config, f"{source} has {chosen.text!r} and {said}{opened}")


def unlisted(name: str, weights: str, files: CheckpointFiles, like: Like, model: ABCModel) -> ModelConfig:
    """The settings of an unlisted checkpoint: those of the listed one that it is ``like``, whose adapter is ``model``, with its
    own image limits and context length; ``weights`` is its Hub id or its folder."""
    options, limits = _limits(files, model)
    parts = (files.config, files.config.get("text_config"))
    stated = [part.get("max_position_embeddings") for part in parts if isinstance(part, Mapping)]
    lengths = [like.config.context_length, *stated]
    own = {
        "name": name,
        **{"hf_id": weights, "served_as": None, "folder": None, "licence": None, "notes": "", "marks": None},
        "options": {**like.config.options, **options},
        "context_length": min((length for length in lengths if type(length) is int), default=None),
        "resolved": {
            "family": f"{like.config.adapter}, run as {like.config.name}: {like.why}",
            "frame": f"{like.config.frame}, the family's",
            "limits": limits,
            "scaffold": f"{like.config.scaffold.name}, the family's",
        },
    }
    return like.config.model_copy(update=own)


def resolution(config: ModelConfig) -> list[str]:
    """What was chosen for an unlisted checkpoint and why, as lines; none of a listed one."""
    chosen = {"model": f"{config.name}, an unlisted one", **config.resolved} if config.resolved else {}
    return [f"{title + ':':10}{text}" for title, text in chosen.items()]


def folder_title(folder: Path) -> str:
    """The name of a checkpoint in a folder: the folder's, or the id of a snapshot in the cache of the Hugging Face hub."""
    parts = folder.resolve().parts
    cached = next((part for part in parts if part.startswith("models--")), None)
    return cached.removeprefix("models--").replace("--", "/", 1) if cached else parts[-1]


def _words(name: str) -> str:
    """The last part of an id or a path in lower case with hyphens, without the words of a quantisation."""
    return _QUANTISED.sub("", re.sub(r"[_\s]", "-", name.rstrip("/").rpartition("/")[2].lower()))


def _fitting(name: str, marked: Sequence[_Match]) -> list[_Match]:
    """Those whose pattern is in the words of a name, but for patterns of which the match is part of another's."""
    words = _words(name)
    matches = [(each, re.search(rf"(?<![a-z])(?:{each.marks.name})(?![a-z])", words)) for each in marked]
    found = [(each, match.span()) for each, match in matches if match]
    return [
        each._replace(text=words[slice(*span)])
        for each, span in found
        if not any(other != span and other[0] <= span[0] and span[1] <= other[1] for _, other in found)
    ]


def _by_template(known: Sequence[_Match], template: str | None) -> tuple[_Match, str]:
    """Of one family's, the first whose text the template has, or the first without such a text; with the reason, if any."""
    for each in known:
        if each.marks.template is not None and template is not None and each.marks.template in template:
            return each, f"; its chat template has '{each.marks.template}'"
    return next((each for each in known if each.marks.template is None), known[0]), ""


def _limits(files: CheckpointFiles, model: ABCModel) -> tuple[dict[str, int], str]:
    """The image limits as options of the family, and what was chosen in words."""
    stated = dict(files.limits)
    said = _pixels(stated.get("min_pixels"), stated.get("max_pixels"))
    if not isinstance(model.options, ImageLimits):
        return {}, f"none: {model.config.adapter} has none to set"
    least, most = model.pixels or (None, None)
    own = {"min_pixels": model.options.min_pixels or least, "max_pixels": model.options.max_pixels or most}
    family = f"{_pixels(**own)}, the family's"
    if not stated:
        return {}, f"{family}; the checkpoint's processor states none"
    if stated in BASE_LIMITS:
        return {}, f"{family}; its processor's, {said}, are those of a base model"
    if stated == own:
        return {}, f"{family}, and its processor's"
    return stated, f"{said}, its processor's; the family's are {_pixels(**own)}"


def _pixels(min_pixels: Any, max_pixels: Any) -> str:
    bounds = [f"{word} {value:,}" for word, value in (("at least", min_pixels), ("at most", max_pixels)) if value]
    return f"{' and '.join(bounds)} pixels" if bounds and max_pixels != UNBOUND else "no limit"
