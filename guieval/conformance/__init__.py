"""The conformance suites that every plug-in has to pass, shipped or foreign; ``guieval dev check`` and the tests run them.

:func:`check_benchmark` tests a benchmark on an example of its own format; :func:`check_adapter` tests a model adapter on
synthetic steps. Neither needs data, a server or a GPU. Both return a list of :class:`Finding`, which is empty if all checks
pass.
"""

from typing import TYPE_CHECKING, Any

from guieval.wings import offered

if TYPE_CHECKING:
    from guieval.conformance.adapters import check_adapter, every_model
    from guieval.conformance.benchmarks import check_benchmark, check_benchmarks
    from guieval.conformance.examples import example_actions, example_step
    from guieval.conformance.finding import Finding

_SUITES = {
    **dict.fromkeys(("check_adapter", "every_model"), "adapters"),
    **dict.fromkeys(("check_benchmark", "check_benchmarks"), "benchmarks"),
    **dict.fromkeys(("example_actions", "example_step"), "examples"),
    "Finding": "finding",
}
OFFERS = {
    "commands": {
        "dev check": "guieval.conformance.commands.check",
        "dev new-adapter": "guieval.conformance.commands.new_adapter",
    },
    "suites": {name: f"guieval.conformance.{module}:{name}" for name, module in _SUITES.items()},
}
"""What is found by name (:mod:`guieval.wings`)."""
__all__ = [
    "Finding",
    "check_adapter",
    "check_benchmark",
    "check_benchmarks",
    "every_model",
    "example_actions",
    "example_step",
]


def __getattr__(name: str) -> Any:
    if name in _SUITES:
        return offered("suites", name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
