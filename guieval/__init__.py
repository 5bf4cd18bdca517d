"""guieval: evaluates GUI agents offline, semi-online and online, and reuses the same evaluators as rewards.

The names below are the public surface. They are imported when first used, so that ``import guieval`` and the command line
stay quick.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = [
    "ABCBenchmark",
    "ABCDevice",
    "ABCEnvironment",
    "ABCModel",
    "Action",
    "ActionEvaluator",
    "ActionSpace",
    "Box",
    "Boxes",
    "Click",
    "EnvironmentTask",
    "Episode",
    "EpisodeRef",
    "GuievalError",
    "HistoryEntry",
    "ImageRef",
    "LongPress",
    "Measured",
    "Message",
    "Metrics",
    "ModelConfig",
    "ModelInput",
    "Observation",
    "Open",
    "ParseError",
    "ParsedResponse",
    "Point",
    "Press",
    "Protocol",
    "RunConfig",
    "RunResult",
    "Scaffold",
    "Score",
    "Scroll",
    "StepOutcome",
    "StepRecord",
    "StepTaskModel",
    "Stop",
    "Type",
    "Unsupported",
    "UsageError",
    "Wait",
    "__version__",
    "action_from_json",
    "action_to_json",
    "audit",
    "campaign",
    "compare",
    "evaluate_run",
    "find_models",
    "get_protocol",
    "import_predictions",
    "leaderboard",
    "list_benchmarks",
    "list_models",
    "list_protocols",
    "list_scaffolds",
    "load_benchmark",
    "load_environment",
    "load_model",
    "load_scaffold",
    "metric",
    "mix",
    "open_run",
    "plot",
    "power",
    "rollout",
    "run",
    "view",
]

if TYPE_CHECKING:
    from guieval.actions import (
        Action,
        ActionSpace,
        Box,
        Boxes,
        Click,
        LongPress,
        Open,
        Point,
        Press,
        Scroll,
        Stop,
        Type,
        Unsupported,
        Wait,
        action_from_json,
        action_to_json,
    )
    from guieval.data.benchmark import ABCBenchmark, EpisodeRef
    from guieval.data.shipped import __version__
    from guieval.errors import GuievalError, ParseError, UsageError
    from guieval.evaluation import ActionEvaluator, Protocol, get_protocol, list_protocols
    from guieval.exchange.importing import import_predictions
    from guieval.history import HistoryEntry
    from guieval.metrics import Measured, metric
    from guieval.metrics.of_run import Metrics
    from guieval.models import ABCModel, ImageRef, Message, ModelConfig, ModelInput, ParsedResponse, Scaffold
    from guieval.online import ABCDevice, ABCEnvironment, EnvironmentTask, Observation, Score
    from guieval.online.find import load_environment
    from guieval.registry import (
        find_models,
        list_benchmarks,
        list_models,
        list_scaffolds,
        load_benchmark,
        load_model,
        load_scaffold,
    )
    from guieval.reports.api import compare, leaderboard
    from guieval.reports.campaign import campaign
    from guieval.reports.opened import open_run
    from guieval.reports.plots.plot import plot
    from guieval.reports.server.view import view
    from guieval.running.api import RunResult, run
    from guieval.scoring.audit import audit
    from guieval.scoring.score import evaluate_run
    from guieval.settings import RunConfig
    from guieval.steps import Episode, StepOutcome, StepRecord, StepTaskModel
    from guieval.studies.mix_sweep.tables import mix
    from guieval.studies.power import power
    from guieval.studies.rollout import rollout


_HOMES = {
    "actions": "Action ActionSpace Box Boxes Click LongPress Open Point Press Scroll Stop Type Unsupported Wait"
    " action_from_json action_to_json",
    "data.benchmark": "ABCBenchmark EpisodeRef",
    "data.shipped": "__version__",
    "errors": "GuievalError ParseError UsageError",
    "evaluation": "ActionEvaluator Protocol get_protocol list_protocols",
    "history": "HistoryEntry",
    "metrics": "Measured metric",
    "metrics.of_run": "Metrics",
    "models": "ABCModel ImageRef Message ModelConfig ModelInput ParsedResponse Scaffold",
    "online": "ABCDevice ABCEnvironment EnvironmentTask Observation Score",
    "online.find": "load_environment",
    "registry": "find_models list_benchmarks list_models list_scaffolds load_benchmark load_model load_scaffold",
    "studies.rollout": "rollout",
    "reports.api": "compare leaderboard",
    "reports.campaign": "campaign",
    "studies.mix_sweep.tables": "mix",
    "exchange.importing": "import_predictions",
    "reports.opened": "open_run",
    "reports.plots.plot": "plot",
    "studies.power": "power",
    "reports.server.view": "view",
    "running.api": "RunResult run",
    "scoring.audit": "audit",
    "scoring.score": "evaluate_run",
    "settings": "RunConfig",
    "steps": "Episode StepOutcome StepRecord StepTaskModel",
}
"""The names of each module, as they are imported above for type checkers."""
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(f"guieval.{_HOME_OF[name]}"), name)
    raise AttributeError(f"module 'guieval' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


def load_ipython_extension(shell: Any) -> None:
    """Show runs, benchmarks and episodes as HTML in an IPython shell, for ``%load_ext guieval`` and an import in a notebook."""
    from guieval.reports.notebook import register

    register(shell)


if (_shell := getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()) is not None:
    load_ipython_extension(_shell)
