"""The conformance suites that every plug-in has to pass, shipped or foreign; ``guieval dev check`` and the tests run them.

:func:`check_benchmark` tests a benchmark on an example of its own format; :func:`check_adapter` tests a model adapter on
synthetic steps. Neither needs data, a server or a GPU. Both return a list of :class:`Finding`, which is empty if all checks
pass.
"""

from guieval.conformance.adapters import check_adapter, every_model
from guieval.conformance.benchmarks import check_benchmark, check_benchmarks
from guieval.conformance.examples import example_actions, example_step
from guieval.conformance.finding import Finding

__all__ = [
    "Finding",
    "check_adapter",
    "check_benchmark",
    "check_benchmarks",
    "every_model",
    "example_actions",
    "example_step",
]
