"""OSWorld: tasks on the desktop of a virtual machine, by the class ``DesktopEnv`` of its repository, which must be importable.

Source: xlang-ai/OSWorld (Apache-2.0): ``desktop_env/desktop_env.py`` of the Python package desktop-env 1.0.2 (the class), and
``lib_run_single.py`` (the waits before the first screenshot and before the judgement) and ``evaluation_examples`` (the tasks),
read in the copy MMadmax/OSWorld-1.0 at 5ee3b5a; Xie et al., "OSWorld", NeurIPS 2024, arXiv 2404.07972. Its two editions
are environments of their own: :class:`OSWorld` and :class:`OSWorldVerified` (July 2025, https://xlang.ai/blog/osworld-verified).
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar

from guieval.actions import ExecutableAction, Stop, Wait
from guieval.connectors.servers.foreign_screenshots import checked_screenshot
from guieval.connectors.servers.pyautogui_code import pyautogui_code
from guieval.connectors.servers.virtual_machine import lacks_machine
from guieval.data.files import read_bytes
from guieval.data.names import parts_inside
from guieval.data.plugin_options import at_least, seconds
from guieval.errors import EnvironmentFailure, UsageError, nearest, one_line
from guieval.online.contract import UNKNOWN, ABCDevice, ABCEnvironment, EnvironmentTask, Observation
from guieval.secrets import Redaction
from guieval.steps import Score

Budget: TypeAlias = Literal["15-steps", "50-steps", "100-steps"]
"""The most steps of a task in published results, e.g. those of OpenCUA (README.md in github.com/xlang-ai/OpenCUA)."""
VERIFIED_FIELD = "proxy"
"""Every task of OSWorld-Verified has it, and no task had it before."""
_Result = TypeVar("_Result")


def _step_budget(name: str, budget: Budget | None, max_steps: int | None) -> int:
    """The one that is given; :class:`UsageError` for none and for both."""
    if budget is not None and max_steps is None:
        return int(budget.partition("-")[0])
    if budget is None and max_steps is not None:
        return max_steps
    both = "" if budget is None else f"budget is {budget} and max_steps {max_steps}: "
    raise UsageError(
        f"{both}environment {name!r} has no step budget of its own; published results state theirs: "
        "--set bench_options.budget=15-steps (or 50-steps, 100-steps), or another number as max_steps"
    )


class OSWorld(ABCEnvironment):
    """The tasks of the folder ``examples`` (OSWorld's ``evaluation_examples``) that its file ``selection`` lists by domain.

    ``provider``, ``path_to_vm``, ``region``, ``os_type``, ``headless``, ``width``, ``height``, ``cache``, ``enable_proxy`` and
    ``snapshot_name`` are passed on to ``DesktopEnv``, and so is the machine's password that the environment variable
    ``client_password_env`` holds. Each task may take the steps of ``budget``, or ``max_steps``; OSWorld states none itself.
    ``machines`` virtual machines run at most. ``settle`` and ``settle_score`` are the seconds to wait after a reset and before
    the judgement, ``pause`` after an action. The seed changes nothing.
    """

    name = "osworld"
    title = "OSWorld"
    source = "its own package: https://github.com/xlang-ai/OSWorld"
    licence = "Apache-2.0"
    outward = frozenset({"provider", "path_to_vm", "region", "examples", "client_password_env", "snapshot_name"})
    tried = False
    verified: ClassVar[bool] = False
    """Whether the tasks are those of OSWorld-Verified."""
    waits = MappingProxyType({"after_reset": "settle", "after_action": "pause"})

    def __init__(
        self,
        *,
        examples: str = "",
        selection: str = "test_all.json",
        budget: Budget | None = None,
        max_steps: int | None = None,
        provider: str = "docker",
        path_to_vm: str = "",
        region: str = "",
        os_type: str = "Ubuntu",
        headless: bool = True,
        width: int = 1920,
        height: int = 1080,
        cache: str = "cache",
        client_password_env: str = "",
        enable_proxy: bool = False,
        snapshot_name: str = "init_state",
        machines: int = 1,
        settle: float = 60.0,
        settle_score: float = 20.0,
        pause: float = 2.0,
    ) -> None:
        at_least(1, max_steps=1 if max_steps is None else max_steps, machines=machines, width=width, height=height)
        seconds(3600, settle=settle, settle_score=settle_score, pause=pause)
        if not examples:
            raise UsageError(
                f"environment {self.name!r} needs its tasks: --set bench_options.examples=OSWORLD/evaluation_examples"
            )
        if find_spec("desktop_env") is None:
            raise UsageError(
                f"environment {self.name!r} needs the package desktop_env: pip install desktop-env, or PYTHONPATH=OSWORLD"
            )
        if client_password_env and not os.environ.get(client_password_env):
            raise UsageError(
                "client_password_env has to name an environment variable that holds the machine's password; the one given is "
                "not set, and not repeated here, since it may be the password itself"
            )
        self.examples, self.selection = Path(examples).expanduser(), selection
        self.max_steps = _step_budget(self.name, budget, max_steps)
        self.machines = machines
        self.redaction = Redaction.of_variables(client_password_env)
        self.settle, self.settle_score, self.pause = settle, settle_score, pause
        self.settings = {
            "provider_name": provider,
            "path_to_vm": path_to_vm or None,
            "region": region or None,
            "action_space": "pyautogui",
            "cache_dir": cache,
            "screen_size": (width, height),
            "headless": headless,
            "require_a11y_tree": False,
            "os_type": os_type,
            "enable_proxy": enable_proxy,
            "snapshot_name": snapshot_name,
            "client_password": os.environ.get(client_password_env, ""),
        }

    @classmethod
    def lacks(cls, options: Mapping[str, Any]) -> Iterator[str]:
        if options.get("provider", "docker") != "docker":
            return
        yield from lacks_machine("happysixd/osworld-docker", "get it with docker pull happysixd/osworld-docker")
        disk = Path(options.get("path_to_vm") or f"docker_vm_data/{options.get('os_type', 'Ubuntu')}.qcow2")
        if not disk.is_file():
            yield f"The machine's disk is missing: there is no {disk}; DesktopEnv downloads its own at the first start."

    @property
    def version(self) -> str:
        try:
            package = version("desktop-env")
        except PackageNotFoundError:
            package = "checkout"
        digest = sha256(b"\0".join(config.text for config in self.configs.values())).hexdigest()[:12]
        return f"{self.name}-{package}-{Path(self.selection).stem}-{digest}"

    def identity(self) -> Mapping[str, str]:
        chosen = ("provider_name", "os_type", "snapshot_name", "screen_size", "enable_proxy")
        # the machine's image states no version
        return {"machine image": UNKNOWN, **{name.replace("_", " "): str(self.settings[name]) for name in chosen}}

    @property
    def most_devices(self) -> int:
        return self.machines

    def tasks(self) -> Sequence[EnvironmentTask]:
        return tuple(
            EnvironmentTask(name, self.max_steps, config.content["instruction"], subset=domain)
            for (domain, name), config in self.configs.items()
        )

    @cached_property
    def configs(self) -> dict[tuple[str, str], _Config]:
        """The tasks' configurations by domain and id. Raises :class:`UsageError` if a file is missing or wrong."""
        file = self.examples / self.selection
        if not file.is_file():
            known = sorted(path.name for path in self.examples.glob("*.json"))
            raise UsageError(
                f"there is no file {str(file)!r}{nearest(self.selection, known)}; expected a list of OSWorld's tasks"
            )
        listed = _read(file).content
        if not listed or not all(isinstance(names, list) and names for names in listed.values()):
            raise UsageError(f"{str(file)!r} does not list ids of tasks by domain")
        found = {}
        for domain, names in listed.items():
            for name in names:
                try:
                    path = (self.examples / "examples").joinpath(*parts_inside(f"{domain}/{name}.json"))
                except ValueError as error:
                    raise UsageError(f"{str(file)!r} lists the task {f'{domain}/{name}'[:200]!r}, which {error}") from None
                config = _read(path)
                missing = next((field for field in ("instruction", "evaluator") if not config.content.get(field)), None)
                if missing or not isinstance(config.content["instruction"], str):
                    raise UsageError(f"{str(config.path)!r} has no {missing or 'text as instruction'}")
                if (VERIFIED_FIELD in config.content) != self.verified:
                    raise UsageError(
                        f"{str(config.path)!r} has {'no' if self.verified else 'a'} field {VERIFIED_FIELD!r}, so it is a task "
                        f"{'from before' if self.verified else 'of'} OSWorld-Verified: "
                        f"--bench {OSWorld.name if self.verified else OSWorldVerified.name}"
                    )
                found[domain, str(name)] = config
        return found

    async def open(self) -> ABCDevice:
        from desktop_env.desktop_env import DesktopEnv

        start = partial(DesktopEnv, **self.settings)
        return _Desktop(self, await _apart(start, self.redaction, unwanted=lambda desktop: desktop.close()))


class OSWorldVerified(OSWorld):
    """OSWorld's tasks as revised in July 2025, which later results are about; 361 of the 369 need no Google Drive."""

    name = "osworld-verified"
    title = "OSWorld-Verified"
    verified = True


class _Config(NamedTuple):
    path: Path
    text: bytes
    content: dict[str, Any]


def _read(path: Path) -> _Config:
    try:
        text = read_bytes(path)
        content = json.loads(text)
    except OSError as error:
        raise UsageError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{str(path)!r} is not JSON") from None
    if not isinstance(content, dict):
        raise UsageError(f"{str(path)!r} is not a JSON object")
    return _Config(path, text, content)


class _Desktop(ABCDevice):
    """A ``DesktopEnv``. Its methods wait for the machine, so each call has a thread."""

    def __init__(self, environment: OSWorld, desktop: Any) -> None:
        self._environment, self._desktop = environment, desktop
        self._goal = ""
        self._seen: Observation | None = None
        self._score: Score | None = None
        self._open = True

    async def _call(self, call: Callable[[], _Result]) -> _Result:
        return await _apart(call, self._environment.redaction)

    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        config = self._environment.configs.get((task.subset, task.id))
        if config is None:
            raise EnvironmentFailure(f"OSWorld has no task {task.id!r} in {task.subset!r}")
        self._goal, self._score = task.goal or config.content["instruction"], None
        await self._call(partial(self._desktop.reset, task_config=config.content))
        await asyncio.sleep(self._environment.settle)
        return self._observed(await self._call(self._desktop._get_obs), over=False)  # as lib_run_single.py does

    async def step(self, actions: Sequence[ExecutableAction]) -> Observation:
        if self._seen is None:
            raise RuntimeError("reset has not been called")
        for action in actions:
            command = _command(action, self._seen.size)
            if self._seen.over:
                break
            if command is None:
                continue
            self._score = None
            shown, _, done, _ = await self._call(partial(self._desktop.step, command, self._environment.pause))
            self._seen = self._observed(shown, over=bool(done))
        return self._seen

    async def score(self) -> Score:
        if self._score is None:  # its judgement may press keys, e.g. to save a file, so it is asked for once
            await asyncio.sleep(self._environment.settle_score)
            value = await self._call(self._desktop.evaluate)
            if not isinstance(value, int | float) or not 0 <= value <= 1:
                raise EnvironmentFailure(f"OSWorld's score is {value!r:.60}; expected a number in [0, 1]")
            self._score = Score(success=value == 1, progress=float(value), reason=f"OSWorld's score is {value:g}")
        return self._score

    async def close(self) -> None:
        if self._open:
            self._open = False
            await self._call(self._desktop.close)

    def _observed(self, shown: Any, *, over: bool) -> Observation:
        data = shown.get("screenshot") if isinstance(shown, dict) else None
        if not isinstance(data, bytes):
            raise EnvironmentFailure("OSWorld's virtual machine gives no screenshot")
        screenshot, size = checked_screenshot(data)
        self._seen = Observation(self._goal, screenshot, size, over=over)
        return self._seen


def _command(action: ExecutableAction, size: tuple[int, int]) -> str | None:
    """The argument of ``DesktopEnv.step``: code, or one of its three words; ``None`` for an action that it does not have."""
    match action:
        case Stop(status="finish"):
            return "DONE"
        case Stop():
            return "FAIL"
        case Wait():
            return "WAIT"
    return pyautogui_code(action, size)


async def _apart(
    call: Callable[[], _Result], redaction: Redaction, unwanted: Callable[[_Result], object] | None = None
) -> _Result:
    """The result of a call in a thread of its own, which a machine that hangs does not keep the program from ending.

    A result that comes after a cancellation is given to ``unwanted``. Raises :class:`EnvironmentFailure` for whatever the call
    raises, without the machine's password.
    """
    loop = asyncio.get_running_loop()
    result: asyncio.Future[_Result] = loop.create_future()
    abandoned = threading.Event()

    def settle(value: Any, failure: EnvironmentFailure | None) -> None:
        if result.done():
            return
        if failure is not None:
            result.set_exception(failure)
        else:
            result.set_result(value)

    def run() -> None:
        value, failure = None, None
        try:
            value = call()
            if abandoned.is_set() and unwanted is not None:
                unwanted(value)
        except BaseException as error:  # the package may raise anything, and end the program
            said = redaction.message(one_line(str(error)))
            failure = EnvironmentFailure(f"OSWorld failed: {type(error).__name__}: {said}")
        if not abandoned.is_set():
            loop.call_soon_threadsafe(settle, value, failure)

    threading.Thread(target=run, name="osworld", daemon=True).start()
    try:
        return await result
    except asyncio.CancelledError:
        abandoned.set()
        raise
