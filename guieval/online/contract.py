"""The contract of an environment: tasks to do in it, and devices on which an agent does them.

An :class:`ABCEnvironment` describes; it has no state of a run. A :class:`ABCDevice` is one place to act in (a simulated
phone, a browser page, an emulator) and does one task at a time. The runner opens as many devices as it uses at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

from guieval.actions import Action, Boxes, ExecutableAction
from guieval.data.published_file import PublishedFile
from guieval.steps import EpisodeKey, Score


@dataclass(frozen=True)
class EnvironmentTask:
    """A task: its id, the most steps that an agent may take, and labels to report apart.

    ``goal`` is the instruction if it is known before :meth:`ABCDevice.reset`; in some environments it depends on the seed.
    ``complexity`` is the environment's own measure, if it has one; some budgets are a multiple of it. ``unparseable`` are the
    responses in a row without an action that end the task, if that is a rule of the environment and not the scaffold's.
    """

    id: str
    max_steps: int
    goal: str = ""
    subset: str = ""
    groups: Mapping[str, str] = field(default_factory=dict)
    complexity: float | None = None
    unparseable: int | None = None


@dataclass(frozen=True)
class Observation:
    """An agent's view before a step.

    ``screenshot`` is an encoded image (PNG or JPEG) and ``size`` its (width, height) in pixels; the points of actions are in
    [0, 1000] of it. ``text`` is the text of the screen, if an environment provides it. ``over`` says that the environment
    has ended the task and takes no further action.
    """

    goal: str
    screenshot: bytes
    size: tuple[int, int]
    text: str | None = None
    over: bool = False


class ExpertStep(NamedTuple):
    """A step of a demonstration: the action, others that are as right, and boxes of targets and other elements in [0, 1000].

    An action that the unified space lacks is :class:`guieval.actions.Unsupported` with what it does on a device.
    """

    action: Action
    targets: Boxes = Boxes()
    alternatives: tuple[Action, ...] = ()
    elements: Boxes = Boxes()


class ABCDevice(ABC):
    """One place to act in. Every method raises :class:`guieval.errors.EnvironmentFailure` when the device does not work.

    A method that is cancelled, or raises, leaves the device unusable: the runner closes it and opens another one.
    """

    @abstractmethod
    async def reset(self, task: EnvironmentTask, seed: int) -> Observation:
        """Begin a task; the same ``seed`` gives the same start."""

    @abstractmethod
    async def step(self, actions: Sequence[ExecutableAction]) -> Observation:
        """Carry out actions, one after the other, and observe the result.

        A :class:`guieval.actions.Stop` ends the task; the last action may be one. An action that the environment cannot carry
        out changes nothing.
        """

    @abstractmethod
    async def score(self) -> Score:
        """Judge the task in the present state. Pure: further steps and scores are possible."""

    async def expert(self) -> ExpertStep | None:
        """The next step of a demonstration of the task; ``None`` if the environment knows none.

        It may read all that is in the environment, so it is for recording only.
        """
        return None

    @abstractmethod
    async def close(self) -> None:
        """Free what the device has; may be called at any time, and more than once."""


UNKNOWN = "unknown"
"""What an environment's identity has for a part that a server does not state."""
UNJUDGED = Score(success=False, progress=0.0, unjudged=True, reason="nothing judged it; a model can: guieval study judge")
"""The score of a task that its environment has no judge for."""


class ABCEnvironment(ABC):
    """Tasks, and the devices to do them on.

    Subclasses set the class attributes. Options are keyword-only arguments of the constructor, which must do nothing beyond
    checks; :class:`guieval.errors.UsageError` for what cannot work (a missing package, a wrong value).
    """

    name: ClassVar[str]
    """Registered name, as used with ``--bench``."""
    title: ClassVar[str]
    """Name in publications."""
    source: ClassVar[str]
    """Origin of the environment, in one line without a final stop."""
    licence: ClassVar[str] = ""
    """The licence as stated by its authors."""
    mode: ClassVar[str] = "online"
    """The mode in which agents act in it."""
    outward: ClassVar[frozenset[str]] = frozenset()
    """Options that name servers or programs: a run that is resumed uses them only if its user named or confirmed them."""
    tried: ClassVar[bool] = True
    """Whether guieval was run with the real environment, and not only with a stand-in of its interface; lists name those."""
    deterministic: ClassVar[bool] = False
    """Whether the same task, seed and actions always lead to the same screenshots: a resumed run then repeats the recorded
    actions of a task that was interrupted and goes on where it stopped, and no wait changes anything."""
    waits: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The options that hold the seconds to wait ``after_reset`` and ``after_action``."""
    task_list: ClassVar[PublishedFile | None] = None
    """The published list of its tasks, if ``guieval data download`` has to get one."""

    @property
    @abstractmethod
    def version(self) -> str:
        """The version of what is acted in; part of a run's identity, since it may change tasks and screens."""

    def identity(self) -> Mapping[str, str]:
        """What screens depend on besides the version, by name: browser, fonts, server version, device scale.

        It is recorded, and named if two runs differ in it. It may take seconds, and is the same in every call;
        :data:`UNKNOWN` is for what cannot be found out.
        """
        return {}

    @property
    def most_devices(self) -> int | None:
        """How many devices can be open at once; ``None`` for any number."""
        return None

    @classmethod
    def lacks(cls, options: Mapping[str, Any]) -> Iterable[str]:
        """What this machine lacks to run the environment with these options, a sentence each, beyond what the constructor and
        :meth:`tasks` refuse. Nothing is started."""
        return ()

    @classmethod
    def published_tasks(cls, options: Mapping[str, Any]) -> int | None:
        """The published number of its tasks with these options, for estimates while a server that lists them is away."""
        return None

    @abstractmethod
    def tasks(self) -> Sequence[EnvironmentTask]:
        """All tasks in the environment's own, deterministic order. Ids are unique within a subset."""

    def with_expert(self) -> ABCEnvironment:
        """This environment with all that :meth:`ABCDevice.expert` reads, if that is not there otherwise; it shows the same.

        Raises :class:`guieval.errors.UsageError` if something is missing for it.
        """
        return self

    @abstractmethod
    async def open(self) -> ABCDevice:
        """Start or connect a device. Raises :class:`guieval.errors.EnvironmentFailure`."""

    def key(self, task: EnvironmentTask) -> EpisodeKey:
        return EpisodeKey(self.name, task.subset, task.id)
