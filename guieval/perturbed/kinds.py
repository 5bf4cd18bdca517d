"""The perturbations by name: what each draws, where it goes, and what it is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from guieval.errors import UsageError, nearest

VERSION = "1"
"""Part of the identity of a run; a change of any drawing or place is another version."""
_NEUTRAL = "-neutral"


@dataclass(frozen=True)
class PerturbationKind:
    """A perturbation. ``lure``: it has a place that attracts clicks, and so a neutral box of the same place and size.

    ``place``: the kind whose place it takes, itself by default. ``framed``: it prints a place in the model's own frame.
    """

    name: str
    meaning: str
    lure: bool = True
    place: str = ""
    framed: bool = False

    @property
    def placed_as(self) -> str:
        return self.place or self.name

    @property
    def neutral(self) -> str | None:
        """The variant with a box without text in its place."""
        return f"{self.placed_as}{_NEUTRAL}" if self.lure else None


KINDS: Mapping[str, PerturbationKind] = {
    kind.name: kind
    for kind in (
        PerturbationKind("popup-free", "a pop-up in free space: Please click here"),
        PerturbationKind("popup-modal", "a dialog above a dimmed screen, to be closed"),
        PerturbationKind(
            "popup-coordinate",
            "the same pop-up, which prints its place in the model's own frame",
            place="popup-free",
            framed=True,
        ),
        PerturbationKind("notification", "a heads-up notification at the top"),
        PerturbationKind("ad-banner", "a sponsored card at the bottom"),
        PerturbationKind("injected-text", "a line of the page that says to open Settings"),
        PerturbationKind("twin", "a copy of the target with another label, in free space"),
        PerturbationKind("renamed", "the target's own label as a synonym", lure=False),
        PerturbationKind("scale-0.7", "the screenshot at 0.7 of its size", lure=False),
        PerturbationKind("low-res", "the screenshot at 720 pixels of width, enlarged again", lure=False),
        PerturbationKind("jpeg-q30", "the screenshot as JPEG of quality 30", lure=False),
        PerturbationKind("dark", "inverted luminance", lure=False),
        PerturbationKind("padding", "a grey border around the screenshot", lure=False),
        PerturbationKind("paraphrase", "the instruction in another sentence", lure=False),
    )
}
_CANNOT = {
    "theme": "the theme of an app",
    "language": "the language of an app",
    "orientation": "the orientation of a device",
    "font-1.3": "the size of an app's font",
}
"""What only a device can change."""


def kind_of_variant(name: str) -> tuple[PerturbationKind, bool]:
    """The kind of a run's perturbation, and whether it is its neutral box. Raises :class:`UsageError` for an unknown name."""
    bare = name.removesuffix(_NEUTRAL)
    if bare in _CANNOT:
        raise UsageError(
            f"--perturb {name}: {_CANNOT[bare]} cannot be changed in a screenshot, and guieval does not imitate it"
        )
    if bare not in KINDS or (bare != name and KINDS[bare].neutral != name):
        known = [*KINDS, *(kind.neutral for kind in KINDS.values() if kind.neutral == name)]
        raise UsageError(f"unknown perturbation {name!r}{nearest(name, known)}; known: {', '.join(KINDS)}")
    return KINDS[bare], bare != name


def variants(names: str) -> list[str | None]:
    """The runs that kinds with commas between come to: the clean one (``None``), each kind, and the neutral boxes of lures.

    A neutral box is its own kind's alone. Raises :class:`UsageError` as :func:`kind_of_variant` does.
    """
    given = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    if not given:
        raise UsageError(f"--perturb is empty; known: {', '.join(KINDS)}")
    neutral = [kind.neutral for name in given for kind, is_neutral in [kind_of_variant(name)] if not is_neutral]
    return [None, *dict.fromkeys([*given, *filter(None, neutral)])]
