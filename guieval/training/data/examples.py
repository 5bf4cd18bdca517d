"""Training examples from a benchmark: steps, prompts and screenshots, built by the adapter that an evaluation uses.

Rows of a data set hold only an index. Prompt and screenshots are created when a row is used, so memory does not grow with the
data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from guieval.data.benchmark import EpisodeRef, Listing
from guieval.data.screenshots import read_picture
from guieval.data.selection import Choice, Selection
from guieval.data.selection import select as select_episodes
from guieval.errors import UsageError
from guieval.history import HistoryEntry, recalled, reference_entry, reference_history
from guieval.journal import RunFolder
from guieval.models import ABCModel, ImageRef, ModelInput
from guieval.registry import load_benchmark
from guieval.steps import Episode, Sample, StepRecord, StepTaskModel
from guieval.training.settings import Source

if TYPE_CHECKING:
    from PIL.Image import Image

Messages: TypeAlias = list[dict[str, Any]]
"""A chat for processors of transformers: contents are lists of text and image blocks."""

IMAGES_KEPT = 256
"""Number of decoded screenshots that are cached, about those of one generation batch."""


class Example(NamedTuple):
    """One step to train on: its history, and in supervised training the answer."""

    task: StepTaskModel
    history: tuple[HistoryEntry, ...]
    completion: str | None = None


class SizedPicture(NamedTuple):
    """A screenshot as a model gets it: its file in a folder, its size, and the size in which it is sent if that differs.

    ``canvas`` is the size of a white image that it is put on.
    """

    root: Path | None
    file: str
    size: tuple[int, int]
    resize: tuple[int, int] | None
    canvas: tuple[int, int] | None = None


class PromptBuilder:
    """Writes a step's prompt as chat messages with decoded screenshots, as an engine receives them.

    ``root`` is the folder of the screenshots, or such a folder for each benchmark.
    """

    def __init__(self, model: ABCModel, root: Path | Mapping[str, Path]) -> None:
        self.model = model
        self._root = root
        self.image = lru_cache(maxsize=IMAGES_KEPT)(self._read)

    def messages(self, task: StepTaskModel, history: Sequence[HistoryEntry]) -> Messages:
        """The prompt of a step. Raises :class:`guieval.errors.ScreenshotError` for a damaged screenshot."""
        return self.of(self.model.prepare_input(task, history))

    def of(self, prepared: ModelInput) -> Messages:
        """A request as messages; :class:`UsageError` for a prefilled answer, which trainers do not continue."""
        if prepared.prefill:
            raise UsageError(
                f"model {self.model.config.name!r} begins the answer in its prompt, which TRL cannot train; "
                "another setting of thinking may leave it open"
            )
        return [
            {"role": message.role, "content": [self._block(part) for part in message.parts]} for message in prepared.messages
        ]

    def template_arguments(self, example: Example) -> dict[str, Any]:
        """Arguments of the family's chat template, taken from one example (``chat_template_kwargs``)."""
        extra = self.model.prepare_input(example.task, example.history).extra
        return dict(extra.get("chat_template_kwargs") or {})

    def _block(self, part: str | ImageRef) -> dict[str, Any]:
        if isinstance(part, str):
            return {"type": "text", "text": part}
        return {"type": "image", "image": self.image(self.picture(part))}

    def picture(self, part: ImageRef) -> SizedPicture:
        task = part.task
        root = self._root if isinstance(self._root, Path) else self._root[task.benchmark]
        return SizedPicture(root, task.screenshot, task.screenshot_size, part.resize, part.canvas)

    def _read(self, picture: SizedPicture) -> Image:
        assert picture.root is not None
        return read_picture(picture.root, picture.file, picture.size, picture.resize, canvas=picture.canvas)


def images_of(messages: Messages) -> list[Image]:
    """The screenshots of a prompt, in order."""
    return [block["image"] for message in messages for block in message["content"] if block["type"] == "image"]


def without_images(messages: Messages) -> Messages:
    """The prompt with a placeholder for every screenshot, as TRL's supervised collator expects it."""
    return [
        {**message, "content": [{"type": "image"} if block["type"] == "image" else block for block in message["content"]]}
        for message in messages
    ]


@dataclass(frozen=True)
class TrainingData:
    """The episodes to train on, loaded one at a time, and the counted steps of each."""

    benchmark: Listing[Any]
    selection: Selection

    @cached_property
    def refs(self) -> Sequence[EpisodeRef]:
        return self.selection.refs

    @cached_property
    def steps(self) -> Sequence[tuple[int, int]]:
        """(number of the episode, index of the step in it) of every counted step."""
        return [(number, index) for number, ref in enumerate(self.refs) for index in self.selection.plan[ref.key]]

    @cached_property
    def _load(self) -> Any:
        return lru_cache(maxsize=64)(lambda number: self.benchmark.load(self.refs[number]))

    def episode(self, number: int) -> Episode:
        episode: Episode = self._load(number)
        return episode

    def counted(self, number: int) -> Sequence[int]:
        return list(self.selection.plan[self.refs[number].key])

    def example(self, number: int, *, history: bool = True) -> Example:
        """The counted step of that number, with the reference history or none."""
        episode_number, index = self.steps[number]
        steps = self.episode(episode_number).steps
        return Example(steps[index], reference_history(steps[:index]) if history else ())


def open_source(source: Source, seed: int) -> TrainingData:
    """The data of one source; :class:`UsageError` for an unknown name, a missing folder, an empty selection."""
    benchmark = load_benchmark(source.bench, source.data, **source.bench_options)
    if source.skip_damaged:
        benchmark = benchmark.skipping_damaged()
    episodes = None if source.episodes is None else Path(source.episodes)
    choice = Choice(source.split, source.subset, source.sample_set, episodes, source.limit, seed)
    data = TrainingData(benchmark, select_episodes(benchmark, choice))
    if source.limit is not None and len(data.refs) < source.limit:
        raise UsageError(
            f"{source.limit:,} episodes of {source.bench} are to be trained on, and {str(benchmark.root)!r} has "
            f"{len(data.refs):,} of them: lower the setting 'limit', or give other data"
        )
    return data


def reference_completion(model: ABCModel, task: StepTaskModel, thought: str | None = None) -> str | None:
    """The reference action as the model would write it; ``None`` if its format cannot express it.

    The conclusion, in families that write one, is the step's instruction or a description of the action. Benchmarks publish no
    ``thought``; :mod:`guieval.training.data.thoughts` writes them.
    """
    entry = reference_entry(task)
    try:
        return model.render(task, entry.action, thought, entry.conclusion)
    except ValueError:
        return None


def own_completion(model: ABCModel, task: StepTaskModel, sample: Sample) -> str | None:
    """The model's own response with its thought, if it was exactly right, else ``None``.

    If the server separated the thought, or the responses are of several stages, it is rendered in the family's own format.
    """
    if not sample.outcome.exact_match or sample.raw_response is None or sample.action is None:
        return None
    if sample.reasoning is None and not sample.stage:
        return sample.raw_response
    try:
        return model.render(task, sample.action, sample.thought, sample.conclusion)
    except ValueError:
        return None


_NOT_IN_THE_JOURNAL = {
    "mix": "answers of another run",
    "mix_artifacts": "answers of another run",
    "mix_decisions": "answers of another run",
    "fixed_thoughts": "thoughts of another run",
}


def journal_examples(run: Path, model: ABCModel) -> Iterator[Example]:
    """The exact responses of a run, each with the history of its own prompt, in the journal's order by episode.

    The prompts are rebuilt by ``model``, so the run should be of the same family. Raises :class:`UsageError` if there is no
    run, or if its prompts contain what its journal does not: another run's answers, or fixed thoughts.
    """
    history = RunFolder(run).manifest.config.history
    for name, kept in _NOT_IN_THE_JOURNAL.items():
        if getattr(history, name):
            raise UsageError(f"the run {str(run)!r} cannot be used for training: its prompts hold {kept} ({name})")
    latest: dict[Any, StepRecord] = {}
    for record in RunFolder(run).steps:
        if record.finished:
            latest[record.task.key] = record
    for record in latest.values():
        task = record.task
        completion = own_completion(model, task, record.sample)
        if completion is None:
            continue
        past: list[HistoryEntry] = []
        for index, origin in enumerate(record.history):
            earlier = latest.get(task.key._replace(step_index=index))
            if earlier is None:
                break
            past.append(recalled("model" if origin == "model" else "reference", earlier.task, earlier))
        if len(past) == len(record.history):  # else a step of its history is not in the journal
            yield Example(task, tuple(past), completion)
