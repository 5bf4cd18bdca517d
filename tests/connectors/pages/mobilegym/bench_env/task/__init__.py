from __future__ import annotations

from typing import Any, ClassVar


class BaseTask:
    apps: ClassVar[list[str]] = ["notes"]
    difficulty: ClassVar[str] = "L1"
    suite = "notes"

    def __init__(self, _seed: int | None = None) -> None:
        self.times = 1 + (_seed or 0) % 2

    @property
    def id(self) -> str:
        return f"{self.suite}.{type(self).__name__}"

    @property
    def description(self) -> str:
        return f"Press the left half {self.times} times"

    async def setup(self, env: Any) -> Any:
        await env.reset()
        return await env.get_observation()


class Save(BaseTask):
    pass


class Broken(BaseTask):
    """Its data is missing."""

    difficulty: ClassVar[str] = "L2"
    apps: ClassVar[list[str]] = ["notes", "map"]

    async def setup(self, env: Any) -> Any:
        raise IndexError("Cannot choose from an empty sequence\nof places")


class Extra(BaseTask):
    pass


def load_tasks() -> list[BaseTask]:
    return [Save(), Broken(), Extra()]
