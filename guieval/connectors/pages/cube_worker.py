"""A benchmark of the CUBE standard behind a pipe: requests and answers are lines of JSON.

It runs in the Python that has the benchmark's package, in which guieval need not be installed, so it imports neither guieval
nor its packages. It ends with the process that started it, also in the middle of a step.
Source: the packages cube-standard 0.1.0rc10 (``cube/benchmark.py``, ``cube/task.py``, ``cube/core.py``) and cube-browser-tool
0.3.0 (``bgym_tool.py``). Their own JSON-RPC server is not used: Playwright's synchronous interface, which their browser tools
use, cannot be called in its event loop.
"""

import ast
import base64
import ctypes
import importlib
import importlib.metadata
import io
import json
import os
import signal
import socket
import sys
from typing import Any

PR_SET_PDEATHSIG = 1
NO_NETWORK = {"server": "http://127.0.0.1:9"}
"""A proxy that is not there; loopback addresses are exempt where PLAYWRIGHT_DISABLE_FORCED_CHROMIUM_PROXIED_LOOPBACK is set."""


class CubeWorker:
    """The tasks of one configuration, one at a time, with a browser's actions by coordinates."""

    def __init__(self, package: str, config: str, chromium: str, allow_network: bool) -> None:
        core, module = importlib.import_module("cube.core"), importlib.import_module(package)
        registries = [value for value in vars(module).values() if isinstance(value, core.ConfigRegistry)]
        if not registries:
            raise LookupError(f"the package {package} offers no configurations")
        self._package, self._config, self._action = package, registries[0][config], core.Action
        tools: Any = (self._config.tool_config, getattr(self._config.tool_config, "browser", None))
        for each in tools:
            if hasattr(each, "action_subsets"):  # BrowserGym's, which are by element unless more is asked for
                each.action_subsets, each.use_screenshot = [*each.action_subsets, "coord"], True
            if hasattr(each, "browser") and hasattr(each.browser, "pw_extra_kwargs"):
                each.browser.pw_extra_kwargs |= {"executable_path": chromium} if chromium else {}
                each.browser.pw_extra_kwargs |= {} if allow_network else {"proxy": NO_NETWORK}
        if hasattr(self._config, "port"):  # each process serves its own pages
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self._config.port = free.getsockname()[1]
        self._benchmark: Any = None
        self._task: Any = None
        self._goal = ""
        self._screenshot = ""

    def list(self) -> dict[str, Any]:
        """The tasks with their most steps, if they recommend any, and the package's version."""
        tasks = {name: each.recommended_max_steps for name, each in self._config.tasks().items()}
        return {"tasks": tasks, "version": importlib.metadata.version(self._package.replace("_", "-"))}

    def reset(self, task: str) -> dict[str, Any]:
        if self._task is not None:
            self._task.close()
        self._benchmark = self._benchmark or self._config.make()
        (config,) = [each for each in self._config.get_task_configs() if each.task_id == task]
        self._task = self._benchmark.spawn(config)
        seen, info = self._task.reset()
        texts = [each.data for each in seen.contents if isinstance(each.data, str)]
        self._goal = str(info.get("goal") or (texts[0] if texts else ""))
        return self._shown(seen, over=False)

    def step(self, actions: str) -> dict[str, Any]:
        """Carry out calls by coordinates, one a line; arguments without a name are in the order of the tool's parameters."""
        tools = {each.name: [*each.parameters.get("properties", {})] for each in self._task.action_set}
        calls = []
        for line in actions.splitlines():
            call: Any = ast.parse(line, mode="eval").body
            if call.func.id not in tools:
                raise LookupError(f"the task's tools are {', '.join(sorted(tools))}, without {call.func.id}")
            given = dict(zip(tools[call.func.id], map(ast.literal_eval, call.args), strict=False))
            given |= {each.arg: ast.literal_eval(each.value) for each in call.keywords}
            calls.append(self._action(name=call.func.id, arguments=given))
        done = self._task.step(calls)
        return self._shown(done.obs, over=done.done or done.truncated)

    def score(self) -> dict[str, Any]:
        return {"reward": float(self._task.evaluate()[0])}

    def close(self) -> dict[str, Any]:
        for each in (self._task, self._benchmark):
            if each is not None:
                each.close()
        return {}

    def _shown(self, seen: Any, over: bool) -> dict[str, Any]:
        from PIL import Image

        images = [each.data for each in seen.contents if isinstance(each.data, Image.Image)]
        if images:
            stream = io.BytesIO()
            images[-1].convert("RGB").save(stream, format="PNG", compress_level=1)
            self._screenshot = base64.b64encode(stream.getvalue()).decode()
        if not self._screenshot:
            raise LookupError("the task shows no screenshot")
        return {"goal": self._goal, "screenshot": self._screenshot, "over": bool(over)}


def main(package: str, config: str, chromium: str, *options: str) -> None:
    """Answer requests until the pipe is closed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.environ["PLAYWRIGHT_DISABLE_FORCED_CHROMIUM_PROXIED_LOOPBACK"] = "1"
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the package prints is not an answer
    worker: Any = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            worker = worker or CubeWorker(package, config, chromium, "--allow-network" in options)
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    if worker is not None:
        worker.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
