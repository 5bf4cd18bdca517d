"""Environments on a server that speaks OpenEnv's WebSocket protocol and shows screenshots, guieval's own server among them.

Source: the Python package openenv 0.10.0, ``openenv/core/env_client.py`` (the messages) and
``openenv/core/env_server/http_server.py`` (``/metadata``, ``/schema`` and the Task API, by which tasks are found). An
observation needs a goal and a screenshot: base64, or rows of pixels as OpenEnv's BrowserGym environment sends them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import ValidationError

from guieval.actions import ExecutableAction
from guieval.connectors.pages.browsergym_actions import browsergym_call
from guieval.connectors.servers.foreign_screenshots import read_screenshot
from guieval.connectors.servers.service import Service, checked_address, look_up
from guieval.data.plugin_options import at_least
from guieval.errors import EnvironmentFailure, UsageError, one_line
from guieval.online.contract import ABCDevice, ABCEnvironment, EnvironmentTask, Observation
from guieval.steps import Score

if TYPE_CHECKING:
    import aiohttp

ActionFormat = Literal["unified", "browsergym"]
NAME = "the OpenEnv server"


class OpenEnv(ABCEnvironment):
    """The tasks of the server at ``url``; those of one ``split`` if that is given.

    A server without the Task API has ``seeds`` tasks, one for each seed from 0. ``max_steps`` is for tasks whose server states
    no limit. ``goal`` and ``screenshot`` are the names of these fields in an observation. A task is a success if the sum of its
    rewards is above ``above``, unless the server's state has a score, as guieval's does.
    """

    name = "openenv"
    title = "OpenEnv"
    source = "any server of OpenEnv's protocol: https://github.com/meta-pytorch/OpenEnv"
    licence = "that of the served environment"
    outward = frozenset({"url"})

    def __init__(
        self,
        *,
        url: str = "",
        split: str = "",
        seeds: int = 10,
        max_steps: int = 30,
        goal: str = "goal",
        screenshot: str = "screenshot",
        above: float = 0.0,
    ) -> None:
        at_least(1, seeds=seeds, max_steps=max_steps)
        self.address = checked_address(url, self.name, "ws://127.0.0.1:8000").removesuffix("/ws")
        self.split, self.seeds, self.max_steps = split, seeds, max_steps
        self.goal, self.screenshot, self.above = goal, screenshot, above

    @cached_property
    def server(self) -> _OpenEnvServer:
        """The server's description of itself, requested once."""
        return look_up(NAME, self.address, self._ask, "start it, e.g. with `guieval dev serve-environment demo`")

    @property
    def version(self) -> str:
        return self.server.version

    def tasks(self) -> Sequence[EnvironmentTask]:
        return tuple(self.server.tasks)

    async def open(self) -> ABCDevice:
        server = self.server if "server" in vars(self) else await asyncio.to_thread(lambda: self.server)
        return await _Remote.connect(self, server)

    async def _ask(self, service: Service) -> _OpenEnvServer:
        schema, about = await service.get("/schema"), await service.get("/metadata")
        fields = schema.get("action") if isinstance(schema, dict) else None
        if not isinstance(fields, dict):
            raise service.wrong("/schema", schema, "the schemas of an OpenEnv server")
        known = fields.get("properties", {"type": {}})  # a union of actions has no properties of its own
        if not isinstance(known, dict) or not {"action_str", "type"} & set(known):
            named = list(known) if isinstance(known, dict) else known
            raise service.wrong("/schema", named, "actions with the field 'type' (unified) or 'action_str' (BrowserGym)")
        actions: ActionFormat = "browsergym" if "action_str" in known else "unified"
        name, version = (about.get(key) for key in ("name", "version")) if isinstance(about, dict) else (None, None)
        listed = await self._listed(service)
        if not listed:
            listed = [(EnvironmentTask(f"seed-{seed}", self.max_steps), {"seed": seed}) for seed in range(self.seeds)]
        resets = {task.id: reset for task, reset in listed}
        return _OpenEnvServer(f"openenv-{name}-{version}", actions, [task for task, _ in listed], resets)

    async def _listed(self, service: Service) -> list[tuple[EnvironmentTask, dict[str, Any]]]:
        """The tasks of the Task API with what their resets need; empty if the server does not have it."""
        status, names = await service.ask("GET", "/list_environments")
        if status >= 400 or not isinstance(names, list) or not names:
            return []
        status, splits = await service.ask("GET", f"/{names[0]}/splits")
        if status >= 400 or not isinstance(splits, list):
            return []
        known = [split["name"] for split in splits if isinstance(split, dict) and isinstance(split.get("name"), str)]
        if self.split and self.split not in known:
            raise UsageError(f"option split is {self.split!r}; the server has {', '.join(map(repr, known)) or 'none'}")
        found: list[tuple[EnvironmentTask, dict[str, Any]]] = []
        for split in [self.split] if self.split else known:
            content = await service.post(f"/{names[0]}/tasks", body={"split": split})
            tasks = content.get("tasks") if isinstance(content, dict) else None
            if not isinstance(tasks, list):
                raise service.wrong(f"/{names[0]}/tasks", content, "a list of tasks")
            many = len(known) > 1
            found += [
                (self._task(task, split, index, many), {"split": split, "index": index}) for index, task in enumerate(tasks)
            ]
        return found

    def _task(self, given: Any, split: str, index: int, several: bool) -> EnvironmentTask:
        """A task of the Task API, whose entries have no fixed form."""
        spec = given if isinstance(given, dict) else {}
        own = str(spec.get("id", spec.get("task_id", index)))
        steps, goal, groups = spec.get("max_steps"), spec.get("goal"), spec.get("groups")
        return EnvironmentTask(
            id=f"{split}/{own}" if several else own,
            max_steps=steps if isinstance(steps, int) and steps > 0 else self.max_steps,
            goal=goal if isinstance(goal, str) else "",
            groups={str(key): str(value) for key, value in groups.items()} if isinstance(groups, dict) else {},
        )


class _OpenEnvServer(NamedTuple):
    """A server: its version, the format of its actions, its tasks, and by task what a reset needs."""

    version: str
    actions: ActionFormat
    tasks: list[EnvironmentTask]
    resets: dict[str, dict[str, Any]]


class _Remote(ABCDevice):
    """A session of the server."""

    def __init__(
        self, environment: OpenEnv, server: _OpenEnvServer, service: Service, socket: aiohttp.ClientWebSocketResponse
    ) -> None:
        self._environment, self._server = environment, server
        self._service, self._socket = service, socket
        self._asked: asyncio.Future[str | None] | None = None
        self._unasked: str | None = None
        self._closed = False
        self._reader = asyncio.create_task(self._read())
        self._seen: Observation | None = None
        self._reward = 0.0

    @classmethod
    async def connect(cls, environment: OpenEnv, server: _OpenEnvServer) -> _Remote:
        service = Service(NAME, environment.address)
        try:
            socket = await service.websocket("/ws")
        except BaseException:
            await service.close()
            raise
        return cls(environment, server, service, socket)

    async def _read(self) -> None:
        """Receive all the time: otherwise pings of the server are not answered while a model is busy.

        A server may have last words, so one message that nobody asked for is kept; a second one ends the session.
        """
        import aiohttp

        async for message in self._socket:
            if message.type is not aiohttp.WSMsgType.TEXT:
                continue
            if self._asked is not None and not self._asked.done():
                self._asked.set_result(message.data)
            elif self._unasked is None:
                self._unasked = message.data
            else:
                await self._service.close()  # at once; a WebSocket's own end would wait for the server's messages
                break
        self._closed = True
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(None)

    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        self._reward, self._seen = 0.0, None
        self._seen = await self._observed(await self._say("reset", {"seed": seed, **self._server.resets[task.id]}))
        return self._seen

    async def step(self, actions: Sequence[ExecutableAction]) -> Observation:
        if self._seen is None:
            raise RuntimeError("reset has not been called")
        for action in actions:
            data = self._message(action)
            if self._seen.over:
                break
            if data is not None:
                answer = await self._say("step", data)
                reward = answer.get("reward")
                self._reward += reward if isinstance(reward, int | float) else 0.0
                self._seen = await self._observed(answer)
        return self._seen

    async def score(self) -> Score:
        state = await self._say("state", None)
        if isinstance(state.get("score"), dict):
            try:
                return Score.model_validate(state["score"])
            except ValidationError:
                pass  # a score of another form
        success = self._reward > self._environment.above
        reason = f"the rewards of the steps add up to {self._reward:g}"
        return Score.of_reward(self._reward, success=success, reason=reason)

    async def close(self) -> None:
        with suppress(ConnectionError):
            if not self._socket.closed:
                await self._socket.send_json({"type": "close"})
                await self._socket.close()
        self._reader.cancel()
        await asyncio.gather(self._reader, return_exceptions=True)
        await self._service.close()

    def _message(self, action: ExecutableAction) -> dict[str, Any] | None:
        """The action as the server takes it; ``None`` for one that it cannot carry out."""
        if self._server.actions == "unified":
            return action.model_dump(mode="json")
        assert self._seen is not None
        call = browsergym_call(action, self._seen.size)
        return None if call is None else {"action_str": call}

    async def _say(self, kind: str, data: dict[str, Any] | None) -> dict[str, Any]:
        message: dict[str, Any] = {"type": kind} if data is None else {"type": kind, "data": data}
        received = unasked = self._unasked
        if unasked is None and not self._closed:
            self._asked = asyncio.get_running_loop().create_future()
            with suppress(ConnectionError):  # then the reason may still be there to read
                await self._socket.send_json(message)
            received = await self._asked
        if received is None:
            raise EnvironmentFailure(f"{NAME} closed the connection at {kind!r}")
        answer = await self._service.read(f"answers {kind!r}", received.encode("utf-8", "replace"), screenshot=True)
        try:
            content, expected = answer["data"], "state" if kind == "state" else "observation"
            if answer["type"] == "error":
                raise EnvironmentFailure(f"{NAME} refuses {kind!r}: {one_line(str(content.get('message', content)))}")
            if answer["type"] != expected or not isinstance(content, dict):
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError):
            raise EnvironmentFailure(
                f"{NAME} answers {kind!r} with {one_line(received, 80)!r}; expected a message of OpenEnv's protocol"
            ) from None
        if unasked is not None:
            raise EnvironmentFailure(f"{NAME} sends messages that were not asked for")
        return content

    async def _observed(self, answer: dict[str, Any]) -> Observation:
        environment, fields = self._environment, answer.get("observation")
        fields = fields if isinstance(fields, dict) else {}
        for name in (environment.goal, environment.screenshot):
            if isinstance(value := fields.get(name), str | None) and not value:
                known = ", ".join(map(repr, fields)) or "nothing"
                raise EnvironmentFailure(f"the server's observation has no {name!r}, but {one_line(known)}")
        screenshot, size = await asyncio.to_thread(read_screenshot, fields[environment.screenshot])
        details = answer.get("metadata")
        limit = isinstance(details, dict) and details.get("ended") == "step limit"  # which the runner counts itself
        text = fields.get("text")
        return Observation(
            goal=str(fields[environment.goal]),
            screenshot=screenshot,
            size=size,
            text=text if isinstance(text, str) else None,
            over=bool(answer.get("done")) and not limit,
        )
