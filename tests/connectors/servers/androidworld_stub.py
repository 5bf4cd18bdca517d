"""AndroidWorld's own server, started in a clone with a stub in the place of the emulator: ``androidworld_stub.py PORT FILE``.

``FILE`` is guieval's server of the container, or ``server/android_server.py``. The stub has a grey screen of 1080 x 2400 and
keeps what adb is asked for; a task is done as far as two commands of its own were: a swipe and a tap.
"""

import runpy
import sys
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import uvicorn
from android_env.proto import adb_pb2
from android_world import registry
from android_world.env import env_launcher, interface
from android_world.task_evals import task_eval


class Controller:
    device_screen_size = (1080, 2400)

    def __init__(self) -> None:
        self.asked: list[str] = []

    def step(self, _action: Any) -> Any:
        pixels = np.full((2400, 1080, 3), len(self.asked) % 256, np.uint8)
        return SimpleNamespace(observation={"pixels": pixels, "forest": None, "ui_elements": []})

    def reset(self) -> Any:
        return self.step(None)

    def close(self) -> None:
        pass

    def execute_adb_call(self, request: Any) -> Any:
        words = " ".join(request.generic.args) or str(request.WhichOneof("command"))
        self.asked.append(words)
        output = {"output": b"logicalFrame=[0, 0, 1080, 2400]"}
        return adb_pb2.AdbResponse(status=adb_pb2.AdbResponse.Status.OK, generic=output)


class Gesture(task_eval.TaskEval):  # type: ignore[misc]  # the release has no types
    template, complexity, app_names = "Swipe, then tap.", 1.2, ("clipper",)
    schema: ClassVar[dict[str, Any]] = {}

    @classmethod
    def generate_random_params(cls) -> dict[str, Any]:
        return {}

    def initialize_task(self, env: Any) -> None:
        env.controller.asked.clear()
        super().initialize_task(env)

    def is_successful(self, env: Any) -> float:
        super().is_successful(env)
        done = {"swipe 540 1800 540 1200 500", "tap"}
        return sum(any(end in each for each in env.controller.asked) for end in done) / len(done)


port, file = sys.argv[1:]
registry.TaskRegistry.get_registry = lambda self, family: {"Gesture": Gesture}
env_launcher.load_and_setup_env = lambda **_: interface.AsyncAndroidEnv(Controller())
found = runpy.run_path(file)
uvicorn.run(found["served"]() if "served" in found else found["app"], host="127.0.0.1", port=int(port), log_level="warning")
