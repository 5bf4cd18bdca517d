"""Live tasks of Android in the Wild (AITW-Gen, AITW-Web), from DigiRL's lists, on the emulator of AndroidWorld's server.

Source: DigiRL-agent/digirl at c74ec34, ``digirl/environment/android/assets/task_set`` (Apache-2.0; Bai et al., arXiv
2406.11896), whose own emulators are driven by Appium; Rawles et al., arXiv 2307.10088. The lists have instructions only.
Nothing judges a task while it runs: ``guieval study judge`` has a model do so, as the publishers do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

from guieval.connectors.servers.androidworld import EXAMPLE, AndroidScreen, AndroidWorld
from guieval.connectors.servers.server_device import ServedEnvironment
from guieval.connectors.servers.service import DeviceServers
from guieval.data.plugin_options import at_least, seconds
from guieval.data.published_file import PublishedFile
from guieval.online.contract import UNJUDGED, ABCDevice, EnvironmentTask, Observation
from guieval.registry import DATA
from guieval.steps import Score

_LISTS = (
    "https://raw.githubusercontent.com/DigiRL-agent/digirl/c74ec34029eb5092bf17a64211f2d0284c7d1ba8/"
    "digirl/environment/android/assets/task_set"
)


class _Aitw(ServedEnvironment):
    """The tasks of :attr:`task_list`, in a copy of it at ``tasks`` (default: where ``guieval data download`` puts it), on the
    emulators of AndroidWorld's servers at ``url`` (several, separated by commas).

    A task is called by its line in the list, begins at the home screen, and may take ``max_steps`` steps, by default DigiRL's.
    Apps keep what earlier tasks left in them, while DigiRL's emulators are reset. The seed changes nothing. ``settle`` seconds
    pass after a reset and ``wait`` after actions.
    """

    licence = "Apache-2.0"
    waits = MappingProxyType({"after_reset": "settle", "after_action": "wait"})
    task_list: ClassVar[PublishedFile]
    budget: ClassVar[int]

    def __init__(
        self, *, url: str = "", tasks: str = "", max_steps: int | None = None, settle: float = 0.0, wait: float = 0.0
    ) -> None:
        self.max_steps = self.budget if max_steps is None else max_steps
        at_least(1, max_steps=self.max_steps)
        seconds(60, settle=settle, wait=wait)
        self.servers = DeviceServers(url, self.name, EXAMPLE)
        self.file = self.task_list.copy_at(tasks, DATA / self.name, self.name)
        self.settle, self.wait = settle, wait

    @classmethod
    def lacks(cls, options: Mapping[str, Any]) -> Iterator[str]:
        yield from AndroidWorld.lacks(options)

    @property
    def version(self) -> str:
        return f"{self.name}-{self.task_list.sha256[:12]}"

    def identity(self) -> Mapping[str, str]:
        return {**super().identity(), "task list": self.task_list.sha256}

    def tasks(self) -> Sequence[EnvironmentTask]:
        return tuple(EnvironmentTask(f"{line:03}", self.max_steps, goal) for line, goal in enumerate(self.goals, 1))

    @cached_property
    def goals(self) -> list[str]:
        """The instructions, in the list's order. Raises :class:`UsageError` for a file that is not the published one."""
        return self.task_list.read(self.file).decode().splitlines()

    async def open(self) -> ABCDevice:
        return await _AitwEmulator(self.servers, self.settle, self.wait).started()


class AitwGen(_Aitw):
    """DigiRL's 432 general tasks for tests, of which it reports the first 96. UI-S1's 300 have no published list."""

    name = "aitw-gen"
    title = "AITW-Gen"
    source = "DigiRL's list of general tasks: github.com/DigiRL-agent/digirl, and AndroidWorld's server"
    task_list = PublishedFile(f"{_LISTS}/general_test.txt", "0d9af7288d43ba472be5a9d2d1779e02050bce254f80e6877c2db76b1a36dd45")
    budget = 10


class AitwWeb(_Aitw):
    """DigiRL's 360 shopping tasks for tests, 193 different ones, of which it reports the first 96. UI-S1's 150 have no list."""

    name = "aitw-web"
    title = "AITW-Web"
    source = "DigiRL's list of shopping tasks: github.com/DigiRL-agent/digirl, and AndroidWorld's server"
    task_list = PublishedFile(f"{_LISTS}/webshop_test.txt", "ce0c30a238b287a76f6139d30365373fc47ebe8c2ea43bed4ccf173c0ac02e5c")
    budget = 20


class _AitwEmulator(AndroidScreen):
    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        await self.home()
        return await self.observe(task.goal)

    async def score(self) -> Score:
        return UNJUDGED

    async def tear_down(self) -> None:
        self.seen = None
