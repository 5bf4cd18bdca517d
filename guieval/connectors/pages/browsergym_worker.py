"""A BrowserGym environment behind a pipe: requests and answers are lines of JSON.

It runs in the Python that has BrowserGym, in which guieval need not be installed, so it imports neither guieval nor its
packages. It ends with the process that started it, also in the middle of a step. A dialog of a page stops the step that opened
it: the answer is then the dialog, and the step goes on with the request after it.
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
from collections.abc import Iterator
from typing import Any

PR_SET_PDEATHSIG = 1
NO_NETWORK = {"proxy": {"server": "http://127.0.0.1:9"}}
"""Options of Playwright's Chromium under which a page reaches no other host: no proxy is there. Loopback addresses are exempt
where PLAYWRIGHT_DISABLE_FORCED_CHROMIUM_PROXIED_LOOPBACK is set."""


class Requests:
    """The requests from the pipe, and a dialog's answer in the middle of one."""

    def __init__(self, answers: Any) -> None:
        self._answers = answers
        self._returned: str | None = None
        self.left = False
        """Whether a request was left for the next one, so that it gets no answer."""
        self.begun = False
        """Whether the task has begun; dialogs before are closed, as BrowserGym does."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while line := self._returned or sys.stdin.readline():
            self._returned, self.left = None, False
            yield json.loads(line)

    def answer(self, answer: dict[str, Any]) -> None:
        self._answers.write(json.dumps(answer) + "\n")
        self._answers.flush()

    def answer_dialog(self, dialog: Any) -> None:
        """Show a dialog, and close it as the next request says; any other request closes it without an answer."""
        if self.begun and not self.left:
            self.answer({"dialog": [dialog.type, dialog.message, dialog.default_value]})
            line = sys.stdin.readline()
            request = json.loads(line) if line else {}
            if request.get("do") == "command" and request["way"] in ("accept", "dismiss"):
                close = dialog.accept if request["way"] == "accept" else lambda _: dialog.dismiss()
                close(request["text"])
                return
            self._returned, self.left = line, True
        dialog.dismiss()


class BrowserGymWorker:
    """One environment of BrowserGym at a time, with its actions by coordinates."""

    def __init__(self, benchmark: str, allow_network: bool, script: str, requests: Requests) -> None:
        import gymnasium
        from browsergym.core.action.highlevel import HighLevelActionSet

        importlib.import_module(f"browsergym.{benchmark}")
        self._make = gymnasium.make
        self._ids = sorted(name for name in gymnasium.registry if name.startswith(f"browsergym/{benchmark}."))
        self._actions = HighLevelActionSet(subsets=["chat", "infeas", "coord"], multiaction=True)
        own = os.environ.get("GUIEVAL_CHROMIUM")
        chromium = {**({} if allow_network else NO_NETWORK), **({"executable_path": own} if own else {})}
        self._chromium: dict[str, Any] = {"pw_chromium_kwargs": chromium} if chromium else {}
        self._script, self._requests = script, requests
        self._files = False
        self._first = 0
        self._environment: Any = None
        self._reward = 0.0
        self._over = False

    def list(self) -> dict[str, Any]:
        """The names of the tasks, and the package's version."""
        return {"tasks": self._ids, "version": importlib.metadata.version("browsergym-core")}

    def reset(self, task: str, seed: int) -> dict[str, Any]:
        self.close()
        self._environment = self._make(task, action_mapping=self._actions.to_python_code, headless=True, **self._chromium)
        playing = self._environment.unwrapped
        begin, self._files, self._requests.begun = playing.task_entrypoint, False, False

        def watched(**options: Any) -> Any:
            task = begin(**options)
            setup = task.setup

            def watched_setup(page: Any) -> Any:
                self._watch(page.context)
                return setup(page)

            task.setup = watched_setup
            return task

        playing.task_entrypoint = watched
        seen, _ = self._environment.reset(seed=seed)
        self._reward, self._over = 0.0, False
        self._first, self._requests.begun = self._place(playing.page), True
        return self._shown(seen)

    def _watch(self, context: Any) -> None:
        """Show lists of selects and dialogs of a task's pages, and refuse file dialogs; no page has loaded anything yet."""
        context.add_init_script(self._script)
        context.on("dialog", self._requests.answer_dialog)
        context.on("page", self._on_page)
        for page in context.pages:
            self._on_page(page)

    def _on_page(self, page: Any) -> None:
        page.on("filechooser", self._note_files)
        page.set_viewport_size(page.context.pages[0].viewport_size)  # a window may ask for another size

    def _note_files(self, _: Any) -> None:
        self._files = True

    def command(self, way: str, text: str, tab: int) -> dict[str, Any]:
        """What is done outside a page (:class:`guieval.connectors.pages.window.WindowCommand`)."""
        playing = self._environment.unwrapped
        page, pages = playing.page, playing.context.pages
        try:
            match way:
                case "back" if self._place(page) > (self._first if page is pages[0] else 0):
                    page.go_back()
                case "back" | "close" if (page if way == "back" else pages[tab]) is not pages[0]:
                    (page if way == "back" else pages[tab]).close()
                    playing.page = playing.context.pages[-1]
                    playing.page.bring_to_front()
                case "forward":
                    page.go_forward()
                case "reload":
                    page.reload()
                case "go":
                    page.goto(text)
                case "show":
                    playing.page = pages[tab]
                    playing.page.bring_to_front()
        except Exception as error:  # an address that does not answer, or a page that the user stays on
            print(error, file=sys.stderr)
        return self.step("noop(0)")

    def _place(self, page: Any) -> int:
        session = page.context.new_cdp_session(page)
        try:
            return int(session.send("Page.getNavigationHistory")["currentIndex"])
        finally:
            session.detach()

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
        pages, files, self._files = self._environment.unwrapped.context.pages, self._files, False
        texts = [part["text"] for part in seen["goal_object"] if part["type"] == "text"]
        return {
            "goal": "\n".join(texts) or str(seen["goal"]),
            "screenshot": base64.b64encode(stream.getvalue()).decode(),
            "reward": self._reward,
            "over": self._over,
            "error": seen["last_action_error"],
            "files": files,
            "tabs": [[page.title(), page.url] for page in pages],
            "tab": pages.index(self._environment.unwrapped.page),
        }


def main(benchmark: str, script: str, *options: str) -> None:
    """Answer requests until the pipe is closed."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.environ["PLAYWRIGHT_DISABLE_FORCED_CHROMIUM_PROXIED_LOOPBACK"] = "1"
    requests = Requests(os.fdopen(os.dup(1), "w"))
    os.dup2(2, 1)  # what BrowserGym prints is not an answer
    worker: Any = None
    for request in requests:
        try:
            worker = worker or BrowserGymWorker(benchmark, "--allow-network" in options, script, requests)
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as error:
            answer = {"failed": f"{type(error).__name__}: {' '.join(str(error).split())[:500]}"}
        if not requests.left:
            requests.answer(answer)
    if worker is not None:
        worker.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
