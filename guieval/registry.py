"""Finds plug-ins by name: modules in ``guieval.benchmarks`` and ``guieval.model_adapters``, entry points, and files.

A benchmark module's file has one or more :class:`ABCBenchmark` subclasses, each with its ``name``. An adapter module
defines exactly one public :class:`ABCModel` subclass, whose name is that of the file. Modules with a leading underscore are
shared code, not plug-ins. This module names no plug-in, and imports one only when it is requested.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from guieval.data.benchmark import ABCBenchmark
from guieval.data.checkpoint import FILES, CheckpointFiles
from guieval.data.episodes.format import is_prepared, read_preparation
from guieval.data.episodes.read import EpisodesFolder, PreparedEpisodes
from guieval.data.files import read_text
from guieval.data.hub import checkpoint_folder
from guieval.data.names import natural_order
from guieval.data.shipped import config_folder
from guieval.data.user_files import read_record
from guieval.errors import GuievalError, UsageError, known_name, nearest
from guieval.models import ABCModel, KnownModel, ModelConfig, Scaffold, Task
from guieval.models.composition import composed
from guieval.models.families import TASKS
from guieval.models.unlisted import folder_title, like_listed, unlisted
from guieval.wings import absent

BENCHMARKS_GROUP = "guieval.benchmarks"
ADAPTERS_GROUP = "guieval.model_adapters"
SCAFFOLDS_GROUP = "guieval.scaffolds"
HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
DATA = Path("data")
"""Where ``guieval data download`` puts data sets, below the working folder."""


def module_names(package: str) -> list[str]:
    """Names of the modules of a package, without those that begin with an underscore."""
    module = importlib.import_module(package)
    names = sorted(info.name for info in pkgutil.iter_modules(module.__path__) if not info.name.startswith("_"))
    if not names:
        raise UsageError(f"no plug-in found in {package}; reinstall guieval (a stray folder of that name may hide it)")
    return names


Plugin = TypeVar("Plugin")


def plugin_classes(module: ModuleType, base: type[Plugin]) -> list[type[Plugin]]:
    """The public concrete subclasses of ``base`` that a module defines."""
    return [
        item
        for name, item in vars(module).items()
        if inspect.isclass(item)
        and issubclass(item, base)
        and item.__module__ == module.__name__
        and not inspect.isabstract(item)
        and not name.startswith("_")
    ]


@cache
def benchmarks() -> dict[str, type[ABCBenchmark]]:
    """All benchmark classes by registered name, in name order."""
    classes: dict[str, type[ABCBenchmark]] = {}
    for name in module_names(BENCHMARKS_GROUP):
        try:
            module = importlib.import_module(f"{BENCHMARKS_GROUP}.{name}")
        except ImportError as error:  # drawn by the playground
            if not absent(error):
                raise
            continue
        for item in plugin_classes(module, ABCBenchmark):
            classes[item.name] = item
    for entry in entry_points(group=BENCHMARKS_GROUP):
        classes.setdefault(entry.name, entry_value(entry))
    return dict(sorted(classes.items()))


def entry_value(entry: EntryPoint) -> Any:
    """The object that an entry point names; :class:`UsageError` if it cannot be imported."""
    try:
        return entry.load()
    except Exception as error:  # another package's code may raise anything; the message names the plug-in
        raise UsageError(
            f"the plug-in {entry.name!r} ({entry.value}) cannot be imported: {type(error).__name__}: {error}"
        ) from error


def list_benchmarks() -> list[str]:
    """Names of all benchmarks."""
    return list(benchmarks())


def benchmark_class(name: str) -> type[ABCBenchmark]:
    """The benchmark called ``name``; :class:`UsageError` with the nearest name for an unknown one."""
    known = benchmarks()
    if name not in known:
        raise UsageError(f"unknown benchmark {name!r}{nearest(name, known)}; `guieval benchmarks` lists them")
    return known[name]


def load_benchmark(name: str, data: Path | str | None = None, **options: Any) -> ABCBenchmark:
    """Open a benchmark on its data folder: the authors' release, or the output of ``guieval data prepare``.

    Without ``data`` it is the folder that :func:`downloaded` finds. Raises :class:`UsageError` that gives the nearest name, or
    the missing data and how to get it.
    """
    kind = benchmark_class(name)
    data = downloaded(name) if data is None else data
    if data is None and kind.needs_data:
        raise UsageError(f"benchmark {name!r} needs its data folder: add --data DIR, or make {DATA / name} ({kind.source})")
    root = Path(data) if data is not None else default_data_folder(name)
    if data is not None and kind.needs_data and not root.is_dir():
        what = "is a file, not a folder" if root.is_file() else "does not exist"
        raise UsageError(f"the data folder {str(root)!r} {what}; {name!r} expects {kind.source}")
    if is_prepared(root) and not issubclass(kind, EpisodesFolder):
        return PreparedEpisodes(root, kind, benchmarks().get(read_preparation(root).benchmark), **options)
    kind.check_options(options)
    return kind(root, **options)


def downloaded(name: str) -> Path | None:
    """The folder ``data/NAME`` that ``guieval data download`` makes, or that of the data set; ``None`` if there is neither."""
    kind = benchmarks().get(name)
    folders = [DATA / each for each in (name, kind.dataset) if each] if kind is not None and kind.needs_data else []
    return next((folder for folder in folders if folder.is_dir()), None)


def default_data_folder(name: str) -> Path:
    """The folder of a benchmark that generates its own data: ``$XDG_CACHE_HOME/guieval/NAME``."""
    import os

    cache_home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache_home) / "guieval" / name


def list_adapters() -> list[str]:
    """Names of all model families (adapter modules and entry points)."""
    return sorted({*module_names(ADAPTERS_GROUP), *(entry.name for entry in entry_points(group=ADAPTERS_GROUP))})


def adapter_class(name: str) -> type[ABCModel]:
    """The adapter called ``name``, or the one in the Python file at the path ``name``."""
    if name.endswith(".py"):
        return _adapter_in(_module_from_file(Path(name)), name)
    if name in module_names(ADAPTERS_GROUP):
        return _adapter_in(importlib.import_module(f"{ADAPTERS_GROUP}.{name}"), name)
    for entry in entry_points(group=ADAPTERS_GROUP):
        if entry.name == name:
            loaded = entry_value(entry)
            return _adapter_in(loaded, name) if isinstance(loaded, ModuleType) else loaded
    known = list_adapters()
    raise UsageError(f"unknown adapter {name!r}{nearest(name, known)}; known: {', '.join(known)}")


def _adapter_in(module: ModuleType, name: str) -> type[ABCModel]:
    classes = plugin_classes(module, ABCModel)
    if len(classes) != 1:
        raise UsageError(
            f"adapter {name!r} must define exactly one public ABCModel subclass, found {len(classes)}{_lacking(module)}"
        )
    return classes[0]


def _lacking(module: ModuleType) -> str:
    """The abstract methods that the subclasses in a module do not implement, for an error message."""
    unfinished = [item for item in vars(module).values() if inspect.isabstract(item) and item.__module__ == module.__name__]
    return "".join(f"; {item.__name__} lacks {', '.join(sorted(item.__abstractmethods__))}" for item in unfinished)


def _module_from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"the adapter file {str(path)!r} does not exist")
    spec = importlib.util.spec_from_file_location(f"guieval_adapter_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"the adapter file {str(path)!r} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pydantic resolve annotations through it
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the user's file may raise anything
        raise UsageError(f"the adapter file {str(path)!r} cannot be imported: {type(error).__name__}: {error}") from error
    return module


def read_scaffold(path: Path) -> Scaffold:
    """The scaffold in a YAML file; :class:`UsageError` that names a wrong field."""
    return read_record(path, Scaffold, "the scaffold file", yaml=True)


@cache
def scaffolds() -> dict[str, Scaffold]:
    """All scaffolds by name: the shipped ones, and those of other packages (entry points that name a :class:`Scaffold`)."""
    found = {path.stem: read_scaffold(path) for path in (config_folder() / "scaffolds").glob("*.yaml")}
    for entry in entry_points(group=SCAFFOLDS_GROUP):
        value = entry_value(entry)
        if not isinstance(value, Scaffold):
            raise UsageError(f"the plug-in {entry.name!r} ({entry.value}) must be a guieval.Scaffold, and is {value!r:.80}")
        found.setdefault(entry.name, value)
    return dict(sorted(found.items()))


def list_scaffolds() -> list[str]:
    """Names of all scaffolds."""
    return list(scaffolds())


def load_scaffold(name: str) -> Scaffold:
    """The scaffold called ``name``, or the one in the YAML file at the path ``name``."""
    if name.endswith((".yaml", ".yml")):
        return read_scaffold(Path(name))
    known = scaffolds()
    if name not in known:
        raise UsageError(f"unknown scaffold {name!r}{nearest(name, known)}; `guieval dev scaffolds` lists them")
    return known[name]


@cache
def model_configs() -> dict[str, ModelConfig]:
    """All shipped checkpoints by name, with their default scaffolds."""
    import yaml

    configs: dict[str, ModelConfig] = {}
    for path in sorted((config_folder() / "models").glob("*.yaml")):
        for entry in yaml.safe_load_all(read_text(path)):
            if "scaffold" in entry:
                entry["scaffold"] = load_scaffold(entry["scaffold"])
            config = ModelConfig.model_validate(entry)
            if config.name in configs:
                raise ValueError(f"{path}: the model name {config.name!r} is given twice")
            configs[config.name] = config
    return dict(sorted(configs.items()))


def list_models() -> list[str]:
    """Names of all checkpoints."""
    return list(model_configs())


def find_models(text: str = "", *, task: Task | None = None, size: str | None = None) -> list[KnownModel]:
    """The checkpoints with ``text`` in their name, family or Hugging Face id, for a task and of a size, newest families first.

    ``size`` is as in names, e.g. "7b" or "30b". Raises :class:`UsageError`, with the nearest names, if there is none.
    """
    if task is not None:
        known_name("task", task, TASKS)
    every = [KnownModel.of(config, adapter_class(config.adapter).family) for config in model_configs().values()]
    words = {each.name: "\n".join((each.name, each.family, each.hf_id or "")).lower() for each in every}
    found = [each for each in every if text.lower() in words[each.name]]
    if not found:
        known = [*words, *list_adapters(), *(each.hf_id for each in every if each.hf_id)]
        raise UsageError(f"no checkpoint has {text!r} in its name, family or id{nearest(text, known)}")
    fitting = [each for each in found if (task is None or task in each.tasks) and (size is None or each.is_of(size))]
    if not fitting:
        raise UsageError(_nothing_fits(text, task, size, found))
    fitting.sort(key=lambda each: natural_order(each.name))
    fitting.sort(key=lambda each: natural_order(each.family), reverse=True)  # of one line, the latest generation first
    return sorted(fitting, key=lambda each: (-(each.year or 9999), re.split(r"_?\d", each.family)[0]))


def _nothing_fits(text: str, task: Task | None, size: str | None, found: Sequence[KnownModel]) -> str:
    """Which of the filters leaves nothing of what was found, and what they could be."""
    named = f" with {text!r} in its name" if text else ""
    for_task = f" for {task}" if task else ""
    left = [each for each in found if task is None or task in each.tasks]
    if not left:
        tasks = ", ".join(sorted({each for model in found for each in model.tasks}))
        return f"no checkpoint{named} is for {task}; {'they are' if len(found) > 1 else 'it is'} for {tasks}"
    sizes = sorted({each.size for each in left if each.size}, key=natural_order)
    return f"no checkpoint{named}{for_task} has the size {size!r}; sizes: {', '.join(sizes) or 'none is published'}"


def model_config(name: str, adapter: str | None = None, scaffold: str | None = None) -> ModelConfig:
    """The checkpoint called ``name``, or of that Hub id or folder; with ``adapter``, any name is taken and uses that adapter.

    ``scaffold`` is the name, or the YAML file, of the settings to run it in; its default ones when not given. The options are
    the checkpoint's and over them the scaffold's. Raises :class:`UsageError` with the nearest name, and for a scaffold of
    another family, or one that switches the thinking of a family without a switch.
    """
    if "=" in name:
        return _composition(name, adapter, scaffold)
    known = model_configs()
    if adapter is not None:
        base = known[name] if name in known else ModelConfig(name=name, adapter=adapter)
        config = base.model_copy(update={"adapter": adapter})
    else:
        config = known[name] if name in known else _by_id_or_folder(name)
    chosen = config.scaffold if scaffold is None else load_scaffold(scaffold)
    fits = not chosen.families or config.adapter in chosen.families or config.adapter.endswith(".py")
    if scaffold is not None and not fits:
        fitting = [each.name for each in scaffolds().values() if config.adapter in each.families]
        raise UsageError(
            f"scaffold {chosen.name!r} is for {', '.join(chosen.families)}, and model {name!r} is of {config.adapter}, "
            f"which has {', '.join(fitting) or 'no scaffold of its own'}"
        )
    if scaffold is not None and chosen.thinking is not None and not adapter_class(config.adapter).thinking_switch:
        raise UsageError(f"model {name!r} has no thinking switch; the scaffold's thinking must be null")
    given = {"resolved": {**config.resolved, "scaffold": f"{chosen.name}, as given"}} if scaffold and config.resolved else {}
    return config.model_copy(update={"scaffold": chosen, "options": {**config.options, **chosen.family_options}, **given})


@cache
def _by_id_or_folder(name: str) -> ModelConfig:
    """The listed checkpoint of a Hub id, or an unlisted one as its files tell (:mod:`guieval.models.unlisted`)."""
    known = model_configs()
    folder = Path(name).expanduser()
    if folder.is_dir():
        title, weights = folder_title(folder), str(folder)
    elif with_id := [config for config in known.values() if (config.hf_id or "").casefold() == name.casefold()]:
        if len(with_id) > 1:
            raise UsageError(f"{name!r} is the id of several models: give {' or '.join(each.name for each in with_id)}")
        return with_id[0]
    elif HUB_ID.fullmatch(name):
        title = weights = name
        try:
            folder = checkpoint_folder(name, FILES)
        except UsageError as error:
            raise UsageError(f"{error}; --adapter FAMILY runs it without its files") from None
    else:
        absent = " (there is no such folder)" if name.startswith((".", "/", "~")) else nearest(name, known)
        raise UsageError(
            f"unknown model {name!r}{absent}; `guieval models` lists them, ORG/NAME of the Hub or a folder is "
            "any other checkpoint of a known family, and --adapter FAMILY says which family"
        )
    files = CheckpointFiles.read(lambda file: folder / file)
    like = like_listed(title, files, known.values())
    return unlisted(title, weights, files, like, build_model(like.config))


def _composition(name: str, adapter: str | None, scaffold: str | None) -> ModelConfig:
    """The planner's settings with the grounder as an option, under the name of the whole."""
    parts = [part.partition("=") for part in name.split(",")]
    names = {stage: model for stage, _, model in parts if model and "=" not in model}
    if len(parts) != 2 or names.keys() != {"planner", "grounder"}:
        raise UsageError(f"cannot use {name!r} as a model: a composition of two is planner=NAME,grounder=NAME")
    planner, grounder = model_config(names["planner"], adapter, scaffold), model_config(names["grounder"])
    options = {**planner.options, "grounder": grounder.name}
    name = f"planner={planner.name},grounder={grounder.name}"
    return planner.model_copy(update={"name": name, "served_as": planner.served_as or planner.name, "options": options})


def load_model(name: str, *, adapter: str | None = None, scaffold: str | None = None, thinking: bool | None = None) -> ABCModel:
    """Build the adapter of a checkpoint, without an engine."""
    return build_model(model_config(name, adapter, scaffold), thinking=thinking)


def reading_model(model: str | None, adapter: str | None, options: Mapping[str, Any] | None = None) -> ABCModel | None:
    """The adapter that reads the raw responses of a predictions file: a checkpoint's, or a family's with its own defaults.

    ``options`` are its options. ``None`` if neither is named; :class:`UsageError` if only options are.
    """
    if model is None and adapter is None:
        if options:
            raise UsageError(
                f"--set model.{next(iter(options))} is for the adapter that reads raw responses: add --model or --adapter"
            )
        return None
    config = model_config(model or adapter or "", adapter)
    return build_model(config.model_copy(update={"options": {**config.options, **(options or {})}}))


def build_model(config: ModelConfig, *, thinking: bool | None = None) -> ABCModel:
    """Build the adapter of a checkpoint from its settings; :class:`UsageError` when it cannot be set up."""
    kind = adapter_class(config.adapter)
    stages = {name: config.options[name] for name in ("grounder", "zoom") if config.options.get(name) is not None}
    try:
        if not stages:
            return kind(config, thinking=thinking)
        scaffold = config.scaffold
        if not stages.items() <= scaffold.options.items():  # a manifest's has them
            label = "".join(f"+{name}-{f'{value:g}' if name == 'zoom' else value}" for name, value in stages.items())
            changed = {"name": f"{scaffold.name}{label}", "options": {**scaffold.options, **stages}}
            scaffold = scaffold.model_copy(update=changed)
        model = composed(kind)(config.model_copy(update={"scaffold": scaffold}), thinking=thinking)
        model.grounder = load_model(stages["grounder"]) if "grounder" in stages else None
        return model
    except GuievalError:
        raise
    except Exception as error:  # an adapter given as a file may raise anything
        raise UsageError(f"adapter {config.adapter!r} cannot be set up: {type(error).__name__}: {error}") from error
