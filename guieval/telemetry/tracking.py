"""Tells Weights & Biases, MLflow or trackio about a run, through their own clients, where the user wants that.

A tracker is a guest: each has a thread of its own, is told the latest figures and not all of them, is waited for at the end but
not for long, and is dropped with one warning when it fails. What it is told holds no secrets.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, Full, Queue
from typing import Any, NamedTuple, Protocol

from guieval.errors import UsageError, nearest

EVERY = 5.0
"""Seconds between two sets of live figures."""
PATIENCE = 30.0
"""Seconds that a tracker may take to finish once the run is over."""
DEFAULT_PROJECT = "guieval"

_SECRET = re.compile(
    r"(?:^|[^a-z])(?:token|key|secret|password|passwd|auth|authorization|bearer|credentials?|cookies?)$|api[^a-z]?key|headers",
    re.IGNORECASE,
)
_MLFLOW_LONGEST = 500  # characters of a parameter that every version of its servers takes
_MLFLOW_BATCH = 100  # parameters that it takes at once


class Told(NamedTuple):
    """What a tracker is told at the start: names, the folder that it may write into, and the configuration as flat values."""

    project: str
    name: str
    uri: str | None
    folder: Path
    config: Mapping[str, str | int | float | bool]


class Tracker(Protocol):
    """One client. Every call may block or raise; all come from the same thread."""

    def log(self, figures: Mapping[str, float], step: int) -> None:
        """Take in figures as of so many steps."""

    def finish(self, figures: Mapping[str, float], facts: Mapping[str, str], *, failed: bool) -> None:
        """Take in the final figures and facts (texts), and end."""


class _WandB:
    def __init__(self, told: Told) -> None:
        wandb = import_module("wandb")
        settings = {"silent": True, "console": "off", "disable_git": True, "save_code": False, "disable_code": True}
        settings["init_timeout"] = PATIENCE / 2  # it holds up the end of the program while it waits
        self._run = wandb.init(
            project=told.project,
            name=told.name,
            dir=str(told.folder),
            config=dict(told.config),
            reinit="create_new",
            settings=wandb.Settings(**settings, **({"base_url": told.uri} if told.uri else {})),
        )

    def log(self, figures: Mapping[str, float], step: int) -> None:
        self._run.log(dict(figures), step=step)

    def finish(self, figures: Mapping[str, float], facts: Mapping[str, str], *, failed: bool) -> None:
        self._run.summary.update({**figures, **facts})
        self._run.finish(exit_code=int(failed))


class _MLflow:
    def __init__(self, told: Told) -> None:
        self._entities = import_module("mlflow.entities")
        self._client = import_module("mlflow").MlflowClient(tracking_uri=told.uri)
        known = self._client.get_experiment_by_name(told.project)
        experiment = known.experiment_id if known is not None else self._client.create_experiment(told.project)
        self._id = self._client.create_run(experiment, run_name=told.name).info.run_id
        parameters = [self._entities.Param(name, str(value)[:_MLFLOW_LONGEST]) for name, value in told.config.items()]
        for start in range(0, len(parameters), _MLFLOW_BATCH):
            self._client.log_batch(self._id, params=parameters[start : start + _MLFLOW_BATCH])

    def log(self, figures: Mapping[str, float], step: int) -> None:
        now = int(time.time() * 1000)
        metrics = [self._entities.Metric(name, value, now, step) for name, value in figures.items()]
        self._client.log_batch(self._id, metrics=metrics)

    def finish(self, figures: Mapping[str, float], facts: Mapping[str, str], *, failed: bool) -> None:
        self.log({f"final/{name}": value for name, value in figures.items()}, 0)
        for name, text in facts.items():
            self._client.set_tag(self._id, name, text)
        self._client.set_terminated(self._id, "FAILED" if failed else "FINISHED")


class _Trackio:
    def __init__(self, told: Told) -> None:
        trackio = import_module("trackio")
        server = {"server_url": told.uri} if told.uri else {}
        self._run = trackio.init(
            project=told.project,
            name=told.name,
            config=dict(told.config),
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
            **server,
        )

    def log(self, figures: Mapping[str, float], step: int) -> None:
        self._run.log(dict(figures), step=step)

    def finish(self, figures: Mapping[str, float], facts: Mapping[str, str], *, failed: bool) -> None:
        self._run.log({**{f"final/{name}": value for name, value in figures.items()}, **facts})
        self._run.finish()


_CLIENTS: Mapping[str, Callable[[Told], Tracker]] = {"mlflow": _MLflow, "trackio": _Trackio, "wandb": _WandB}
NAMES = tuple(_CLIENTS)
"""What can be tracked with; each is its package's name too."""
SETTINGS = ("project", "name", "uri")
"""What may be set of a tracker: its project (or experiment), the run's name, and where its server is."""


def check_tracking(names: Sequence[str], settings: Mapping[str, Any]) -> None:
    """Raise :class:`UsageError` for a tracker or setting that is not known, and for a package that is not installed."""
    for name in names:
        if name not in _CLIENTS:
            raise UsageError(f"unknown tracker {name!r}{nearest(name, NAMES)}; there are {', '.join(NAMES)}")
        if find_spec(name) is None:
            raise UsageError(f"--track {name} needs a package that is not installed: pip install {name}")
    for key, value in settings.items():
        if key not in SETTINGS:
            raise UsageError(f"unknown setting 'tracking.{key}'{nearest(key, SETTINGS)}; there are {', '.join(SETTINGS)}")
        if not isinstance(value, str) or not value:
            raise UsageError(f"the setting 'tracking.{key}' is {value!r}, not a text")
    uri = settings.get("uri", "")
    if "@" in uri or (uri.lower().startswith(("http:", "https:")) and "?" in uri):
        raise UsageError(
            "the setting 'tracking.uri' must not hold a user, a password or a query; these belong in the environment"
        )


class Tracking:
    """A run's trackers. :meth:`live` is cheap and may be called after every step; :meth:`finish` ends them.

    ``config`` is what the run is, as nested JSON; keys that name a secret, and texts that hold one of ``secrets``, are left
    out. ``warn`` is told once of a tracker that fails, from its thread. ``clock`` counts seconds.
    """

    def __init__(
        self,
        names: Sequence[str],
        settings: Mapping[str, str],
        folder: Path,
        config: Mapping[str, Any],
        *,
        secrets: Sequence[str] = (),
        warn: Callable[[str], None] = lambda text: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        told = Told(
            settings.get("project", DEFAULT_PROJECT),
            settings.get("name", folder.name),
            settings.get("uri"),
            folder,
            dict(flat(config, secrets)),
        )
        self._clock = clock
        self._next = clock()
        self._guests = [_Guest(name, told, warn) for name in dict.fromkeys(names)]

    def live(self, figures: Callable[[], Mapping[str, float]], step: int) -> None:
        """Tell the figures as of ``step`` steps, unless they were told less than :data:`EVERY` seconds ago."""
        if not self._guests:
            return
        now = self._clock()
        if now < self._next:
            return
        self._next = now + EVERY
        values = figures()
        for guest in self._guests:
            guest.log(values, step)

    def finish(self, figures: Mapping[str, float], facts: Mapping[str, str], *, failed: bool = False) -> None:
        """Tell the final figures, and wait up to :data:`PATIENCE` seconds in all for the trackers to take them in."""
        for guest in self._guests:
            guest.end(figures, facts, failed=failed)
        until = time.monotonic() + PATIENCE
        for guest in self._guests:
            try:
                guest.wait(until)
            except KeyboardInterrupt:  # the run is over and kept; only the waiting is to end
                until = time.monotonic()
                guest.wait(until)
        self._guests = []


class _Guest:
    """One tracker in its thread: takes the latest figures whenever it has done with the ones before."""

    def __init__(self, name: str, told: Told, warn: Callable[[str], None]) -> None:
        self._name = name
        self._told = told
        self._warn = warn
        self._latest: Queue[Callable[[Tracker], None]] = Queue(1)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, name=f"tracking {name}", daemon=True)
        self._thread.start()

    def log(self, figures: Mapping[str, float], step: int) -> None:
        self._put(lambda tracker: tracker.log(figures, step))

    def end(self, figures: Mapping[str, float], facts: Mapping[str, str], *, failed: bool) -> None:
        before = self._not_begun()  # of a short run there may be no other figures

        def last(tracker: Tracker) -> None:
            if before is not None:
                before(tracker)
            tracker.finish(figures, facts, failed=failed)
            self._over.set()

        self._put(last)

    def wait(self, until: float) -> None:
        self._thread.join(max(0.0, until - time.monotonic()))
        if self._thread.is_alive() and not self._over.is_set():
            self._over.set()
            self._warn(f"tracking with {self._name} did not end in time; what it has may not be all")

    def _put(self, call: Callable[[Tracker], None]) -> None:
        """Have ``call`` done next, in place of one that was not begun."""
        while not self._over.is_set():
            try:
                self._latest.put_nowait(call)
                return
            except Full:
                self._not_begun()

    def _not_begun(self) -> Callable[[Tracker], None] | None:
        """Take back the call that was not begun, if there is one."""
        try:
            return self._latest.get_nowait()
        except Empty:
            return None

    def _serve(self) -> None:
        try:
            tracker = _CLIENTS[self._name](self._told)
            while not self._over.is_set():
                self._latest.get()(tracker)
        except BaseException as error:  # a guest's code may raise anything, SystemExit too; the run goes on without it
            if not self._over.is_set():
                self._over.set()
                said = " ".join(str(error).split())[:300]
                self._warn(f"tracking with {self._name} failed, the run goes on without it: {type(error).__name__}: {said}")


def flat(values: Mapping[str, Any], secrets: Sequence[str] = ()) -> dict[str, str | int | float | bool]:
    """Nested JSON as ``a.b: value``, lists as text, without what is empty, whose name is a secret's, or that holds a secret."""
    found: dict[str, str | int | float | bool] = {}
    for name, value in values.items():
        if _SECRET.search(str(name)):
            continue
        if isinstance(value, Mapping):
            found.update({f"{name}.{key}": inner for key, inner in flat(value, secrets).items()})
        elif isinstance(value, bool | int | float):
            found[str(name)] = value
        elif value is not None:
            text = value if isinstance(value, str) else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            if text and not any(secret and secret in text for secret in secrets):
                found[str(name)] = text
    return found


def final_figures(summary: Mapping[str, Any]) -> dict[str, float]:
    """The figures of a run's summary, as it stands in ``metrics.json``, by name: those of the whole run, none of its tables."""
    found: dict[str, float] = {}
    for name, value in summary.items():
        if isinstance(value, Mapping) and "value" in value and value["value"] is not None:
            found[name] = value["value"]
        elif name in ("verdicts", "sop", "diagnostics") and isinstance(value, Mapping):
            inner = {key: each["value"] if isinstance(each, Mapping) else each for key, each in value.items()}
            found.update({f"{name}/{key}": each for key, each in inner.items() if each is not None})
    return found
