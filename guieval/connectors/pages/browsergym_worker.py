"""A BrowserGym environment behind a pipe: requests and answers are lines of JSON.

It runs in the Python that has BrowserGym, in which guieval need not be installed, so it imports neither guieval nor its
packages. It ends with the process that started it, also in the middle of a step.
Source: ServiceNow/BrowserGym at 9e779f0, ``browsergym/core/src/browsergym/core/{env,registration}.py``.
"""

import base64
import ctypes
import importlib
import importlib.metadata
import io
import json
import os
import signal
import sys
from typing import Any

PR_SET_PDEATHSIG = 1
NO_NETWORK = {"proxy": {"server": "http://127.0.0.1:9"}}
"""Options of Playwright's Chromium under which a page reaches no other host: no proxy is there. Loopback addresses are exempt
where PLAYWRIGHT_DISABLE_FORCED_CHROMIUM_PROXIED_LOOPBACK is set."""


class BrowserGymWorker:
    """One environment of BrowserGym at a time, with its actions by coordinates."""

    def __init__(self, benchmark: str, allow_network: bool) -> None:
        import gymnasium
        from browsergym.core.action.highlevel import HighLevelActionSet

        importlib.import_module(f"browsergym.{benchmark}")
        self._make = gymnasium.make
        self._ids = sorted(name for name in gymnasium.registry if name.startswith(f"browsergym/{benchmark}."))
        self._actions = HighLevelActionSet(subsets=["chat", "infeas", "coord"], multiaction=True)
        self._chromium: dict[str, Any] = {} if allow_network else {"pw_chromium_kwargs": NO_NETWORK}
        self._environment: Any = None
        self._reward = 0.0
        self._over = False

    def list(self) -> dict[str, Any]:
        """The names of the tasks, and the package's version."""
        return {"tasks": self._ids, "version": importlib.metadata.version("browsergym-core")}

    def reset(self, task: str, seed: int) -> dict[str, Any]:
        self.close()
        self._environment = self._make(task, action_mapping=self._actions.to_python_code, headless=True, **self._chromium)
        seen, _ = self._environment.reset(seed=seed)
        self._reward, self._over = 0.0, False
        return self._shown(seen)

    def step(self, actions: str) -> dict[str, Any]:
        """Carry out calls of the action set, one a line."""
        seen, reward, terminated, truncated, _ = self._environment.step(actions)
        self._reward, self._over = float(reward), bool(terminated or truncated)
        return self._shown(seen)

    def close(self) -> dict[str, Any]:
        if self._environment is not None:
            self._environment.close()
            self._environment = None
        return {}

    def _shown(self, seen: Any) -> dict[str, Any]:
        from PIL import Image

        stream = io.BytesIO()
        Image.fromarray(seen["screenshot"]).save(stream, format="PNG", compress_level=1)
        texts = [part["text"] for part in seen["goal_object"] if part["type"] == "text"]
        return {
            "goal": "\n".join(texts) or str(seen["goal"]),
            "screenshot": base64.b64encode(stream.getvalue()).decode(),
            "reward": self._reward,
            "over": self._over,
            "error": seen["last_action_error"],
        }


def main(benchmark: str, *options: str) -> None:
    """Answer requests until the pipe is closed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.environ["PLAYWRIGHT_DISABLE_FORCED_CHROMIUM_PROXIED_LOOPBACK"] = "1"
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what BrowserGym prints is not an answer
    worker: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            worker = worker or BrowserGymWorker(benchmark, "--allow-network" in options)
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    if worker is not None:
        worker.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
