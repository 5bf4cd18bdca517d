"""A seeded, simulated phone: an environment to act in, and episodes with verified reference trajectories made from it.

:class:`Phone` is the environment: ``apply`` an action of the unified space, look at ``screen`` (elements with pixel boxes) or
``render`` it. :func:`generate_episode` gives a task and its trajectory; :func:`encode` writes a rendered screen as PNG.
Everything is a pure function of seed, episode number and size, within one ``VERSION``. Records of a benchmark are made from
episodes by the loaders that use them, not here.
"""

from guieval.data.screenshots import png as encode
from guieval.playground.phone.episodes import DEFAULT_SIZE, VERSION, PhoneEpisode, PhoneStep, generate_episode, replay
from guieval.playground.phone.layout import Element, PixelBox, Screen
from guieval.playground.phone.phone import Phone, checked_size
from guieval.playground.phone.tasks import Task

__all__ = [
    "DEFAULT_SIZE",
    "VERSION",
    "Element",
    "Phone",
    "PhoneEpisode",
    "PhoneStep",
    "PixelBox",
    "Screen",
    "Task",
    "checked_size",
    "encode",
    "generate_episode",
    "replay",
]
