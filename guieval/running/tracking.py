"""Logs a run to Weights & Biases, MLflow or trackio through their own clients, if the user asks for it.

A tracker must not disturb the run: it has its own thread, receives only the latest metrics, gets limited time to finish at the
end, and is dropped with one warning when it fails. It receives no secrets.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from guieval.errors import UsageError, known_name
from guieval.secrets import Redaction, may_be_secret
from guieval.settings import Tracking as TrackingSettings

EVERY = 5.0
"""Seconds between two sets of live metrics."""
PATIENCE = 30.0
"""Seconds that a tracker may take to finish after the run."""
DEFAULT_PROJECT = "guieval"

_NOTHING_HIDDEN = Redaction(())
_MLFLOW_LONGEST = 500  # characters of a parameter that all versions of its server accept
_MLFLOW_BATCH = 100  # parameters per request


class TrackedRun(NamedTuple):
    """The data that a tracker gets at the start: names, a folder to write into, and the configuration as flat values."""

    project: str
    name: str
    uri: str | None
    folder: Path
    config: Mapping[str, str | int | float | bool]


class Tracker(Protocol):
    """A tracker's client. Every call may block or raise; all come from the same thread."""

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Log metrics after ``step`` steps."""

    def finish(self, metrics: Mapping[str, float], facts: Mapping[str, str], *, failed: bool) -> None:
        """Log the final metrics and facts (texts), and end."""


class _WandB:
    def __init__(self, run: TrackedRun) -> None:
        wandb = import_module("wandb")
        settings = {"silent": True, "console": "off", "disable_git": True, "save_code": False, "disable_code": True}
        settings["init_timeout"] = PATIENCE / 2  # the program cannot end while it waits
        self._run = wandb.init(
            project=run.project,
            name=run.name,
            dir=str(run.folder),
            config=dict(run.config),
            reinit="create_new",
            settings=wandb.Settings(**settings, **({"base_url": run.uri} if run.uri else {})),
        )

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self._run.log(dict(metrics), step=step)

    def finish(self, metrics: Mapping[str, float], facts: Mapping[str, str], *, failed: bool) -> None:
        self._run.summary.update({**metrics, **facts})
        self._run.finish(exit_code=int(failed))


class _MLflow:
    def __init__(self, run: TrackedRun) -> None:
        self._entities = import_module("mlflow.entities")
        self._client = import_module("mlflow").MlflowClient(tracking_uri=run.uri)
        known = self._client.get_experiment_by_name(run.project)
        experiment = known.experiment_id if known is not None else self._client.create_experiment(run.project)
        self._id = self._client.create_run(experiment, run_name=run.name).info.run_id
        parameters = [self._entities.Param(name, str(value)[:_MLFLOW_LONGEST]) for name, value in run.config.items()]
        for start in range(0, len(parameters), _MLFLOW_BATCH):
            self._client.log_batch(self._id, params=parameters[start : start + _MLFLOW_BATCH])

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        now = int(time.time() * 1000)
        logged = [self._entities.Metric(name, value, now, step) for name, value in metrics.items()]
        self._client.log_batch(self._id, metrics=logged)

    def finish(self, metrics: Mapping[str, float], facts: Mapping[str, str], *, failed: bool) -> None:
        self.log({f"final/{name}": value for name, value in metrics.items()}, 0)
        for name, text in facts.items():
            self._client.set_tag(self._id, name, text)
        self._client.set_terminated(self._id, "FAILED" if failed else "FINISHED")


class _Trackio:
    def __init__(self, run: TrackedRun) -> None:
        trackio = import_module("trackio")
        server = {"server_url": run.uri} if run.uri else {}
        self._run = trackio.init(
            project=run.project,
            name=run.name,
            config=dict(run.config),
            embed=False,
            auto_log_gpu=False,
            auto_log_cpu=False,
            **server,
        )

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        self._run.log(dict(metrics), step=step)

    def finish(self, metrics: Mapping[str, float], facts: Mapping[str, str], *, failed: bool) -> None:
        self._run.log({**{f"final/{name}": value for name, value in metrics.items()}, **facts})
        self._run.finish()


_CLIENTS: Mapping[str, Callable[[TrackedRun], Tracker]] = {"mlflow": _MLflow, "trackio": _Trackio, "wandb": _WandB}
NAMES = tuple(_CLIENTS)
"""Names of the trackers, which are also the names of their packages."""


def check_tracking(settings: TrackingSettings) -> None:
    """Raise :class:`UsageError` for an unknown tracker, a URI with a secret, and a package that is not installed."""
    for name in settings.track:
        known_name("tracker", name, NAMES)
        if find_spec(name) is None:
            raise UsageError(f"--track {name} needs a package that is not installed: pip install {name}")
    uri = settings.uri or ""
    if "@" in uri or (uri.lower().startswith(("http:", "https:")) and "?" in uri):
        raise UsageError(
            "the setting 'tracking.uri' must not hold a user, a password or a query; these belong in the environment"
        )


class Trackers:
    """A run's trackers. :meth:`live` is cheap and may be called after every step; :meth:`finish` ends them.

    ``config`` is the run's configuration as nested JSON; keys that name a secret, and texts with a key of ``redaction``, are
    left out. ``warn`` is called once for a tracker that fails, from its thread. ``clock`` counts seconds.
    """

    def __init__(
        self,
        settings: TrackingSettings,
        folder: Path,
        config: Mapping[str, Any],
        *,
        redaction: Redaction = _NOTHING_HIDDEN,
        warn: Callable[[str], None] = lambda text: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        run = TrackedRun(
            settings.project or DEFAULT_PROJECT,
            settings.name or folder.name,
            settings.uri,
            folder,
            dict(flat(config, redaction)),
        )
        self._clock = clock
        self._next = clock()
        self._trackers = [_TrackerThread(name, run, warn) for name in dict.fromkeys(settings.track)]

    def live(self, metrics: Callable[[], Mapping[str, float]], step: int) -> None:
        """Log the metrics after ``step`` steps, unless metrics were logged less than :data:`EVERY` seconds ago."""
        if not self._trackers:
            return
        now = self._clock()
        if now < self._next:
            return
        self._next = now + EVERY
        values = metrics()
        for tracker in self._trackers:
            tracker.log(values, step)

    def finish(self, metrics: Mapping[str, float], facts: Mapping[str, str], *, failed: bool = False) -> None:
        """Log the final metrics, and wait up to :data:`PATIENCE` seconds in all for the trackers to finish."""
        for tracker in self._trackers:
            tracker.end(metrics, facts, failed=failed)
        until = time.monotonic() + PATIENCE
        for tracker in self._trackers:
            try:
                tracker.wait(until)
            except KeyboardInterrupt:  # the run is complete and saved, so only stop waiting
                until = time.monotonic()
                tracker.wait(until)
        self._trackers = []


class _TrackerThread:
    """One tracker in its thread: logs the latest metrics whenever it has finished the previous ones."""

    def __init__(self, name: str, run: TrackedRun, warn: Callable[[str], None]) -> None:
        self._name = name
        self._run = run
        self._warn = warn
        self._pending: list[Callable[[Tracker], None]] = []
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, name=f"tracking {name}", daemon=True)
        self._thread.start()

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        with self._changed:
            self._pending = [lambda tracker: tracker.log(metrics, step)]
            self._changed.notify()

    def end(self, metrics: Mapping[str, float], facts: Mapping[str, str], *, failed: bool) -> None:
        def last(tracker: Tracker) -> None:
            tracker.finish(metrics, facts, failed=failed)
            self._over.set()

        with self._changed:
            self._pending.append(last)  # after pending metrics, since a short run may have no others
            self._changed.notify()

    def wait(self, until: float) -> None:
        self._thread.join(max(0.0, until - time.monotonic()))
        if self._thread.is_alive() and not self._over.is_set():
            self._over.set()
            self._warn(f"tracking with {self._name} did not end in time; its data may be incomplete")

    def _serve(self) -> None:
        try:
            tracker = _CLIENTS[self._name](self._run)
            while not self._over.is_set():
                with self._changed:
                    self._changed.wait_for(lambda: self._pending)
                    calls, self._pending = self._pending, []
                for call in calls:
                    call(tracker)
        except BaseException as error:  # a tracker may raise anything, even SystemExit; the run goes on without it
            if not self._over.is_set():
                self._over.set()
                reason = " ".join(str(error).split())[:300]
                self._warn(f"tracking with {self._name} failed, the run goes on without it: {type(error).__name__}: {reason}")


def flat(values: Mapping[str, Any], redaction: Redaction = _NOTHING_HIDDEN) -> dict[str, str | int | float | bool]:
    """Nested JSON as ``a.b: value``, lists as text, without empty values and secrets (by name or content)."""
    flattened: dict[str, str | int | float | bool] = {}
    for name, value in values.items():
        if may_be_secret(str(name)):
            continue
        if isinstance(value, Mapping):
            flattened.update({f"{name}.{key}": inner for key, inner in flat(value, redaction).items()})
        elif isinstance(value, bool | int | float):
            flattened[str(name)] = value
        elif value is not None:
            text = value if isinstance(value, str) else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
            if text and redaction.message(text) == text:
                flattened[str(name)] = text
    return flattened


def final_metrics(summary: Mapping[str, Any]) -> dict[str, float]:
    """The metrics of the whole run in its summary (``metrics.json``) by name, and how its steps ended, without its tables."""
    found = {name: each["value"] for part in ("metrics", "own", "further") for name, each in summary.get(part, {}).items()}
    named = {name.replace(" ", "_"): value for name, value in found.items() if value is not None}
    return named | {f"verdicts/{name}": count for name, count in summary["verdicts"].items()}
