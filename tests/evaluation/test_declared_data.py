"""What protocols say of data (data sets, sample sets, the keys of their figures) really exists, as the loaders yield it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from guieval.data.sample_sets import get_sample_set
from guieval.evaluation import ActionEvaluator, get_protocol, list_protocols
from guieval.evaluation.table import aitz, desktop_web, grounding, gui_odyssey
from guieval.registry import benchmarks
from guieval.steps import StepTaskModel
from tests.rows import every_row


@pytest.fixture(scope="module")
def steps_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[StepTaskModel]]:
    """The steps of an example of a data set, written and read by one of its loaders."""

    @cache
    def load(dataset: str) -> list[StepTaskModel]:
        loader = next(loader for loader in benchmarks().values() if loader.dataset == dataset)
        folder: Path = tmp_path_factory.mktemp(dataset)
        loader.write_example(folder, episodes=2)
        benchmark = loader(folder)
        return [step for ref in benchmark.index() for step in benchmark.load(ref).steps]

    return load


@every_row("name", list_protocols)
def test_data_sets_and_sample_sets_are_known(name: str) -> None:
    protocol, known = get_protocol(name), {loader.dataset for loader in benchmarks().values()}
    named = {*(protocol.datasets or ()), *protocol.variants, *protocol.sample_sets}
    assert named - known == set()
    for dataset, sample_set in protocol.sample_sets.items():
        assert dataset in get_sample_set(sample_set).datasets
        assert protocol.applies_to(dataset)


@every_row(
    ("name", "key"),
    lambda: sorted({(name, key) for name in list_protocols() for figure in get_protocol(name).metrics for key in figure.keys}),
)
def test_every_step_has_the_labels_that_form_cells(steps_of: Callable[[str], list[StepTaskModel]], name: str, key: str) -> None:
    datasets = get_protocol(name).datasets
    assert datasets  # averages over a label make sense only where it is known which data has it
    for dataset in datasets:
        assert all(step.groups.get(key) or (key == "subset" and step.subset) for step in steps_of(dataset)), dataset


@every_row("name", [each.name for table in (aitz, gui_odyssey, grounding, desktop_web) for each in table.PROTOCOLS])
def test_the_label_itself_is_right(steps_of: Callable[[str], list[StepTaskModel]], name: str) -> None:
    evaluator = ActionEvaluator(name)
    for dataset in evaluator.protocol.datasets or ():
        for step in steps_of(dataset):
            if name != "coat-official" or step.action.type != "CLICK":  # it compares clicks with the screen's corner
                assert evaluator.evaluate(step, step.action).exact_match, (dataset, step.action)


@every_row("name", lambda: [name for name in list_protocols() if get_protocol(name).mends])
def test_what_is_mended_is_a_protocol_for_the_same_data(name: str) -> None:
    intended = get_protocol(name)
    assert intended.mends is not None
    kept = get_protocol(intended.mends)
    assert kept.mends is None
    assert kept.datasets == intended.datasets
    assert (kept.judgement(), kept.metrics, kept.failure) != (intended.judgement(), intended.metrics, intended.failure)
