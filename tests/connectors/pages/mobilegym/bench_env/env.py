from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ActionType(StrEnum):
    CLICK = "CLICK"
    DOUBLE_TAP = "DOUBLE_TAP"
    LONG_PRESS = "LONG_PRESS"
    TYPE = "TYPE"
    SWIPE = "SWIPE"
    DRAG = "DRAG"
    BACK = "BACK"
    HOME = "HOME"
    RECENT = "RECENT"
    ENTER = "ENTER"
    WAIT = "WAIT"
    AWAKE = "AWAKE"
    ANSWER = "ANSWER"
    COMPLETE = "COMPLETE"
    ABORT = "ABORT"


@dataclass(frozen=True)
class Observation:
    screenshot_bytes: bytes
    state: dict[str, Any]

    def get_screenshot_bytes(self) -> bytes:
        return self.screenshot_bytes


@dataclass
class Action:
    action_type: ActionType
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StepResult:
    observation: Observation
    done: bool = False


class MobileGymEnv:
    def __init__(
        self,
        *,
        url: str,
        browser: Any,
        viewport_size: tuple[int, int],
        physical_size: tuple[int, int],
        device_scale_factor: float,
        delay_after_action: float,
        verbose: bool,
    ) -> None:
        self.url, self.browser, self.size = url, browser, viewport_size
        self.scale = device_scale_factor
        self.page: Any = None
        self.agent_message: str | None = None
        self.agent_answer: str | None = None

    async def start(self) -> None:
        context = await self.browser.new_context(
            viewport={"width": self.size[0], "height": self.size[1]}, device_scale_factor=self.scale, has_touch=True
        )
        self.page = await context.new_page()
        await self.page.goto(self.url)

    async def reset(self) -> None:
        self.agent_message = self.agent_answer = None
        await self.page.goto(self.url)
        if await self.page.evaluate("() => window.__SIM__ === undefined"):  # the page sets it before it has loaded
            raise RuntimeError("the page has no __SIM__")

    async def step(self, action: Action) -> StepResult:
        match action.action_type.value:
            case "CLICK":
                x, y = (part / 1000 * length for part, length in zip(action.data["point"], self.size, strict=True))
                await self.page.touchscreen.tap(x, y)
            case "ANSWER":
                self.agent_answer = action.data["value"]
        return StepResult(await self.get_observation(), action.action_type.value in ("COMPLETE", "ABORT"))

    async def get_state(self, *, required_apps: list[str] | None = None) -> dict[str, Any]:
        state: dict[str, Any] = await self.page.evaluate("() => window.__SIM__")
        return state

    async def get_observation(self) -> Observation:
        return Observation(await self.page.screenshot(type="jpeg"), await self.get_state())
