"""Tasks on live websites, from published lists: WebVoyager and Online-Mind2Web in their editions, in Chromium.

Sources: MinorJerry/WebVoyager at 5a78967 (Apache-2.0; He et al., arXiv 2401.13919); microsoft/fara at 3f3f1fd (MIT);
jayl940712/webarena_benchmarks at 6a29779, which NVIDIA's NeMo Gym takes; theredsix/abp-online-mind2web-results at 46bbf4c, with
a copy of OSU-NLP-Group's Online-Mind2Web (Xue et al., arXiv 2504.01382). The lists have instructions and addresses only.
Nothing judges a task while it runs: ``guieval study judge`` has a model do so, as the publishers do.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from guieval.actions import ExecutableAction, Stop
from guieval.connectors.pages.browser import Browser, require_playwright
from guieval.connectors.pages.reference import look_of_pages
from guieval.data.plugin_options import at_least, seconds
from guieval.data.published_file import PublishedFile
from guieval.errors import EnvironmentFailure, UsageError
from guieval.online.contract import UNJUDGED, ABCDevice, ABCEnvironment, EnvironmentTask, Observation
from guieval.registry import DATA
from guieval.steps import Score

_GITHUB = "https://raw.githubusercontent.com"


class Fields(NamedTuple):
    """The names that a list has for a task's id, instruction and first address, and for the label that is reported apart."""

    id: str
    goal: str
    address: str
    label: str


class _LiveWeb(ABCEnvironment):
    """The tasks of :attr:`task_list`, in a copy of it at ``tasks`` (default: where ``guieval data download`` puts it).

    A task begins at its website, in a page of ``width`` x ``height`` CSS pixels below tabs and an address bar, and may take
    ``max_steps`` steps; ``pause`` seconds pass between an action and its screenshot. Time and websites go on, and the seed
    changes nothing. ``allow_network`` must be true.
    """

    tried = False
    task_list: ClassVar[PublishedFile]
    fields: ClassVar[Fields] = Fields("id", "ques", "web", "web_name")

    def __init__(
        self,
        *,
        tasks: str = "",
        max_steps: int = 100,
        width: int = 1440,
        height: int = 900,
        pause: float = 3.0,
        allow_network: bool = False,
    ) -> None:
        at_least(1, max_steps=max_steps, width=width, height=height)
        seconds(60, pause=pause)
        if not allow_network:
            raise UsageError(f"the tasks of {self.name!r} are on live websites: add --allow-network")
        require_playwright()
        self.file = self.task_list.copy_at(tasks, DATA / self.name, self.name)
        self.max_steps, self.size, self.pause = max_steps, (width, height), pause

    @property
    def version(self) -> str:
        return f"{self.name}-{self.task_list.sha256[:12]}"

    def identity(self) -> Mapping[str, str]:
        return {**look_of_pages(1), "task list": self.task_list.sha256}

    def tasks(self) -> Sequence[EnvironmentTask]:
        return tuple(
            EnvironmentTask(name, self.max_steps, row[self.fields.goal], groups={self.fields.label: row[self.fields.label]})
            for name, row in self.rows.items()
        )

    @cached_property
    def rows(self) -> dict[str, dict[str, Any]]:
        """The list's rows by id. Raises :class:`UsageError` for a file that is not the published one."""
        return {row[self.fields.id]: row for row in self.parsed(self.task_list.read(self.file).decode())}

    def parsed(self, text: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in text.splitlines() if line.strip()]

    async def open(self) -> ABCDevice:
        return _Site(self, await Browser.launch(self.size, 1, allow_network=True, address_bar=True, live=True))


class WebVoyager(_LiveWeb):
    """The list of the paper: 643 tasks on 15 websites. Many have dates of 2023 and 2024, which have passed."""

    name = "webvoyager"
    title = "WebVoyager"
    source = "its list: github.com/MinorJerry/WebVoyager, March 2024"
    licence = "Apache-2.0"
    task_list = PublishedFile(
        f"{_GITHUB}/MinorJerry/WebVoyager/5a7896738c10bfb8b9edccce6bb0e0411f8ae569/data/WebVoyager_data.jsonl",
        "69b19fd86c23f1a500244a3724e039aa7ca6a1223d03e11eb10e308d4f11c488",
    )


class WebVoyager595(_LiveWeb):
    """Fara's list of August 2025: 48 of the 643 tasks are removed as impossible, 86 have other words, mostly later dates."""

    name = "webvoyager-595"
    title = "WebVoyager, 595 tasks"
    source = "Fara's list: github.com/microsoft/fara, August 2025"
    licence = "MIT"
    task_list = PublishedFile(
        f"{_GITHUB}/microsoft/fara/3f3f1fd82cc2769a6630932d1670bac7349f4a42/webeval/data/webvoyager/"
        "WebVoyager_data_08312025.jsonl",
        "5c8cb175fdac7a5ee7a2fa8d15de5dad96c617d86f2cb011853997ee23626b9f",
    )


class WebVoyager552(_LiveWeb):
    """The list of 552 tasks that NeMo Gym takes for native runs. Its digest is NeMo Gym's; what it changes was not compared."""

    name = "webvoyager-552"
    title = "WebVoyager, 552 tasks"
    source = "the list that NVIDIA's NeMo Gym takes: github.com/jayl940712/webarena_benchmarks, 2026"
    task_list = PublishedFile(
        f"{_GITHUB}/jayl940712/webarena_benchmarks/6a2977939b157b0ab9de7799bb089c721f1ac115/webvoyager.jsonl",
        "f635a9b27fa1980a63b39bbf64ae8e9e766159cb70fa765451d3d3c0b948ff98",
    )


class OnlineMind2Web(_LiveWeb):
    """300 tasks on 147 websites, as in a copy of March 2026: 46 of the tasks of June 2025 are replaced by others."""

    name = "online-mind2web"
    title = "Online-Mind2Web"
    source = "a copy of its list of March 2026: github.com/theredsix/abp-online-mind2web-results"
    task_list = PublishedFile(
        f"{_GITHUB}/theredsix/abp-online-mind2web-results/46bbf4c7bbc915a86864bfdcb4affc9bdbfa5591/Online_Mind2Web.json",
        "50d330ee9f347c5ae136e52421516590033b146df305ab091c5a36b199b14aa4",
    )
    fields = Fields("task_id", "confirmed_task", "website", "level")

    def parsed(self, text: str) -> list[dict[str, Any]]:
        return list(json.loads(text))


class OnlineMind2Web202506(OnlineMind2Web):
    """The 300 tasks of June 2025, in Fara's copy."""

    name = "online-mind2web-2025-06"
    title = "Online-Mind2Web of June 2025"
    source = "Fara's copy of its list of June 2025: github.com/microsoft/fara"
    licence = "MIT"
    task_list = PublishedFile(
        f"{_GITHUB}/microsoft/fara/3f3f1fd82cc2769a6630932d1670bac7349f4a42/webeval/data/om2w/Online_Mind2Web_06042025.json",
        "e4bb090a72d8d57d300f358df906ffc0f6838750bc9e8112354e7a81a3c29c07",
    )


class _Site(ABCDevice):
    def __init__(self, environment: _LiveWeb, browser: Browser) -> None:
        self._environment = environment
        self._browser = browser
        self._goal = ""

    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        row = self._environment.rows.get(task.id)
        if row is None:
            raise EnvironmentFailure(f"{self._environment.title} has no task {task.id!r}")
        fields = self._environment.fields
        self._goal = row[fields.goal]
        await self._browser.new_page(row[fields.address])
        return await self._observe()

    async def step(self, actions: Sequence[ExecutableAction]) -> Observation:
        for action in actions:
            if isinstance(action, Stop):
                break
            await self._browser.act(action)
        return await self._observe()

    async def score(self) -> Score:
        return UNJUDGED

    async def close(self) -> None:
        await self._browser.close()

    async def _observe(self) -> Observation:
        await asyncio.sleep(self._environment.pause)
        return Observation(self._goal, await self._browser.screenshot(), self._browser.pixels)
