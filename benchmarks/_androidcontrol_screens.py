"""The screen sizes of AndroidControl's test episodes, for annotation files that do not state them.

Most episodes were recorded on 1080x2400. The others, :data:`OTHERS`, were found from four kinds of evidence, which nowhere
contradict each other (``docs/labels.md`` has the counts):

- the ends of UI-S1's swipes, which run along a middle line of the screen and so add up to its size;
- points and boxes that lie beyond 1080x2400, and full-width boxes 1440 pixels wide;
- boxes that cover a whole screen;
- the labels of UI-Genie (github.com/Euphoria16/UI-Genie), which are in pixels of the resized image: for an episode on
  1080x2160, x is floor(x * 532 / 1080) and y is floor(y * 1092 / 2160).
"""

from __future__ import annotations

from collections.abc import Iterable

from guieval.frames import Size

COMMON: Size = (1080, 2400)
LARGE: Size = (1440, 3120)
SHORT: Size = (1080, 2160)
SCREENS: tuple[Size, ...] = (COMMON, LARGE, SHORT)
"""Screens that the test split was recorded on, (width, height) in pixels."""

_LARGE_EPISODES = """
    4881 4988 6402 6645 6919 6944 7239 8074 9195 9711 10235 10531 10554 10986 11217 11673 12571 13390 13805 14940 16124 18894
    19088 19928
"""
_SHORT_EPISODES = "2777 5076 7399 15832 16608"
OTHERS: dict[str, Size] = {
    **dict.fromkeys(_LARGE_EPISODES.split(), LARGE),
    **dict.fromkeys(_SHORT_EPISODES.split(), SHORT),
}
"""The episodes of the test split that were not recorded on the common screen."""


def screen_for(episode: str, points: Iterable[tuple[float, float]], *, wide: bool = False) -> tuple[Size, str]:
    """The screen of an episode and how it is known: "known" for one of :data:`OTHERS`, else "fit".

    Elsewhere it is the common screen, unless a point is outside of it or the episode is ``wide``, then the large one.
    """
    if episode in OTHERS:
        return OTHERS[episode], "known"
    fits = not wide and all(x <= COMMON[0] and y <= COMMON[1] for x, y in points)
    return (COMMON if fits else LARGE), "fit"
