"""The parts: which commands of guieval each starts, and which rows it makes of what they leave behind.

All parts follow one path at both sizes; a size says how large the model, the screens and the responses are.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any, Literal

from guieval.errors import UsageError
from guieval.registry import load_benchmark
from perf.gpu.measured import Load, Machine, Responses, machine, prefix_counters
from perf.gpu.page import HERE, Row

ROOT = HERE.parents[1]
MODEL = "qwen2.5-vl-7b-ui-s1"
MODES: dict[str, Sequence[str]] = {
    "offline": (),
    "soeval": (),
    "sop": ("--patch", "thought-free", "--patch-budget", "unlimited"),
}
"""The modes of a run. Random weights never match, so without patches SOP would end each episode after its first step."""
GUIEVAL = ("-m", "guieval")
UNPACKED = """
import torch, vllm.model_executor.layers.utils as layers
layers.dispatch_cpu_unquantized_gemm = lambda layer, remove_weight: setattr(layer, "cpu_linear", torch.nn.functional.linear)
from guieval.cli import main
main()
"""
"""guieval with a vLLM for CPUs that leaves weights as they are: it packs them, and a training could not replace them."""

PartName = Literal["vllm", "transformers", "sft", "grpo", "semi", "full3"]


@dataclass(frozen=True)
class Size:
    """How large everything is: ``episodes`` of ``length`` steps on screens of ``screen`` pixels, ``tokens`` a response.

    ``seconds`` is the limit of a part. ``run`` and ``train`` are settings of the commands, ``shapes`` those of random weights,
    and ``with_vllm`` is how Python starts a training that has vLLM in its process.
    """

    screen: tuple[int, int]
    episodes: int
    length: int
    tokens: int
    seconds: float
    shapes: Mapping[str, str]
    run: Sequence[str] = ()
    train: Mapping[str, Sequence[str]] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    with_vllm: Sequence[str] = GUIEVAL


_TINY_RL = (
    *("trainer.max_completion_length=8", "trainer.num_generations=2", "trainer.vllm_gpu_memory_utilization=0.2"),
    *("trainer.vllm_max_model_length=8192", "trainer.vllm_enable_sleep_mode=false"),  # only CUDA's vLLM sleeps
)
SIZES = {
    "card": Size((1080, 2400), 24, 5, 100, 240.0, {"7b": "7b", "3b": "3b"}),
    "tiny": Size(
        (360, 576),
        *(2, 4, 8, 1800.0),
        {"7b": "tiny", "3b": "tiny"},
        run=("vllm.max-model-len=8192", "vllm.enforce-eager=true", "vllm.gpu-memory-utilization=0.2"),
        train={"grpo": _TINY_RL, "semi": _TINY_RL},
        environment={
            **{"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
            **{"TORCHDYNAMO_DISABLE": "1", "VLLM_USE_AOT_COMPILE": "0"},  # compiling takes longer than all that is computed
        },
        with_vllm=("-c", UNPACKED),
    ),
}


class Part:
    """One part at work below the folder ``out``; ``checkpoint`` is a folder, or one with random weights is written."""

    def __init__(self, name: PartName, size: Size, out: Path, checkpoint: Path | None) -> None:
        self.name: PartName = name
        self.size = size
        self.data = out / "screens"
        self.work = out / f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
        self.work.mkdir(parents=True)
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(out / "cache"), **size.environment}
        self._end = float("inf")
        self.machine: Machine = machine(ROOT)
        self.checkpoint = checkpoint or self._random(out / "checkpoints", size.shapes["3b" if name == "full3" else "7b"])

    def rows(self) -> list[Row]:
        """Start the part's commands, and make its rows. Raises :class:`UsageError` if one fails or the time is over."""
        kinds: dict[str, Callable[[], list[Row]]] = {"vllm": self._vllm, "transformers": self._transformers}
        return kinds.get(self.name, self._training)()

    def _vllm(self) -> list[Row]:
        self._begin()
        began, rows = time.monotonic(), list[Row]()
        with self._server() as port:
            rows.append(self._row("start", "start of the server, and a first episode", time.monotonic() - began, "s"))
            for seed, mode in enumerate(MODES):
                before = prefix_counters(port)
                make = self._run("vllm", mode, seed)
                asked, found = (now - then for now, then in zip(prefix_counters(port), before, strict=True))
                share = found / asked if asked else 0.0
                rows.append(make(share))
                rows.append(self._row(f"{mode}-hits", f"{mode}: prompt tokens from the prefix cache", 100 * share, "%"))
        return rows

    def _transformers(self) -> list[Row]:
        self._begin()
        return [self._run("transformers", "offline", 0, episodes=2)(0.0)]

    @contextlib.contextmanager
    def _server(self) -> Iterator[int]:
        """The port of the server that a first run leaves running; it is stopped at the end."""
        servers = Path(self.environment["XDG_CACHE_HOME"]) / "guieval" / "servers"
        try:
            self._run("vllm", "offline", len(MODES), episodes=1)
            (kept,) = servers.glob("*.json")
            yield int(json.loads(kept.read_text(encoding="utf-8"))["port"])
        finally:
            for file in servers.glob("*.json"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(json.loads(file.read_text(encoding="utf-8"))["pid"], signal.SIGTERM)
                file.unlink()

    def _run(self, engine: str, mode: str, seed: int, episodes: int | None = None) -> Callable[[float], Row]:
        """One ``guieval run``; what makes its row, given the share of prompt tokens that the prefix cache had.

        Each mode has a seed of its own, so that none finds another's prompts in the cache.
        """
        count = episodes or self.size.episodes
        out, planned = self.work / f"{mode}-{seed}", count * self.size.length
        settings = [f"model_path={self.checkpoint}", f"sampling.max_tokens={self.size.tokens}", "sampling.ignore_eos=true"]
        words = ["run", "--quiet", "--model", MODEL, "--bench", "demo", "--data", str(self.data), "--engine", engine]
        words += ["--mode", mode, *MODES[mode], "--episodes", str(self._episodes(seed, count)), "--out", str(out)]
        if engine == "vllm":
            words += ["--reuse-server", "--concurrency", str(self.size.episodes)]
            settings += self.size.run
        responses = Responses(out / "steps.jsonl")
        with Load() as load:
            self._command([*words, *_set([*self._options(seed), *settings])], responses=responses)
        if len(responses.seen) != planned or not responses.response:
            found = f"{len(responses.seen)} responses with {responses.response} tokens"
            raise UsageError(f"{out} has {found}: expected {planned} steps with a response each")
        each, response = responses.prompt / planned, responses.response / planned
        what = f"`run --engine {engine} --mode {mode}`, {planned} steps, {each:,.0f} + {response:,.0f} tokens a step"

        def row(cached: float) -> Row:
            limit = self.machine.rate * 1e12 / self._operations(each * (1 - cached) + response)
            return self._row(mode, what, responses.rate, "steps/s", f"{limit:.3g}", str(load))

        return row

    def _training(self) -> list[Row]:
        kind = {"semi": "semi-online", "full3": "sft"}.get(self.name, self.name)
        supervised = kind == "sft"
        chosen = self._episodes(0, self.size.episodes, later=kind != "semi-online")
        settings = [*self._options(0), f"model_path={self.checkpoint}", f"episodes={chosen}"]
        settings += self.size.train.get(self.name, ())
        words = ["--config", str(HERE / f"{self.name}.yaml"), "--data", str(self.data), *_set(settings)]
        plan = json.loads(self._command(["train", "plan", *words, "--processes", "1", "--json"]))
        out = self.work / "training"
        self._begin()
        with Load() as load:
            start = GUIEVAL if supervised else self.size.with_vllm
            self._command(["train", kind, *words, "--out", str(out)], start=start)
        steps = [line["seconds"] / line["steps"] for line in _lines(out / "hours.jsonl")]
        logged = [line for line in _lines(out / "log.jsonl") if {"num_tokens", "rows/trained"} & line.keys()]
        tasks, last = plan["batch"]["tasks"], logged[-1]
        what = f"`train {kind}`, {'all weights' if self.name == 'full3' else 'LoRA'} of `{self.checkpoint.name}`, "
        if supervised:
            what += f"{tasks} rows a step, {last['num_tokens'] / len(logged) / tasks:,.0f} tokens a row"
        else:
            responses = f"{plan['batch']['responses']} responses of {last['completions/mean_length']:,.0f} tokens"
            what += f"{tasks} x {responses}, by vLLM on the same card, "
            what += f"{last['rows/trained']:,.0f} rows of up to {plan['rows']['tokens']:,} tokens a step"
        rows, unit = (tasks, "s a row") if supervised else (1, "s a step")
        limit = plan["work"]["operations"] / (self.machine.rate * 1e12)
        value = fmean(steps[1:] or steps) / rows
        return [
            self._row("row" if supervised else "step", what, value, unit, f"{limit / rows:.3g}", str(load)),
            self._row("first", "the same, first optimiser step", steps[0], "s"),
        ]

    def _row(self, name: str, what: str, value: float, unit: str, limit: str = "", load: str = "") -> Row:
        today, rounded = f"{datetime.now(UTC):%Y-%m-%d}", float(f"{value:.3g}")
        return Row(self.name, name, what, rounded, unit, limit, load, self.machine.card, self.machine.versions, today)

    def _demo(self, seed: int) -> dict[str, int]:
        width, height = self.size.screen
        return {"episodes": 20 * self.size.episodes, "seed": seed, "width": width, "height": height}

    def _options(self, seed: int) -> list[str]:
        return [f"bench_options.{name}={value}" for name, value in self._demo(seed).items()]

    def _episodes(self, seed: int, count: int, *, later: bool = False) -> Path:
        """A file of ``count`` episodes of one length, which are drawn; with ``later``, of their steps but the first."""
        demo = load_benchmark("demo", self.data, **self._demo(seed))
        refs = [ref for ref in demo.index() if ref.length == self.size.length][:count]
        if len(refs) < count:
            raise UsageError(f"demo has {len(refs)} episodes of {self.size.length} steps: expected {count}")
        for ref in refs:
            demo.load(ref)
        names = [ref.key.episode_id for ref in refs]
        if later:
            names = [f"{name}#{step}" for name in names for step in range(1, self.size.length)]
        file = self.work / f"episodes-{seed}-{count}.txt"
        file.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
        return file

    def _operations(self, tokens: float) -> float:
        """Operations of a step: of the ``tokens`` that the language model reads or writes, and of its screens."""
        from guieval.training.config import read_config
        from guieval.training.model_size import model_size
        from guieval.training.weights import checkpoint_of
        from guieval.training.work import forward

        settings = read_config(HERE / "sft.yaml", [f"model_path={self.checkpoint}", "lora=null"], kind="sft")
        size = model_size(settings, checkpoint_of(settings, settings.open_adapter()))
        shown = 2 - 1 / self.size.length  # one screen at the first step of an episode, two at the others
        width, height = self.size.screen
        return sum(forward(size, tokens, shown * width * height / 28**2))

    def _random(self, folder: Path, shape: str) -> Path:
        """A checkpoint with random weights, written if it is not there."""
        if not (folder / shape / "whole").exists():
            self._command([str(folder / shape), shape], start=("-m", "perf.gpu.checkpoint"))
            (folder / shape / "whole").touch()
        return folder / shape

    def _begin(self) -> None:
        """From here on the part's time counts."""
        self._end = time.monotonic() + self.size.seconds

    def _command(self, words: Sequence[str], responses: Responses | None = None, start: Sequence[str] = GUIEVAL) -> str:
        """Print a command, carry it out, and return what it printed. A run may end with code 1: no response is readable."""
        shown = ["python", *start] if start[-1].startswith("perf") else ["guieval"]
        print(f"$ {shlex.join([*shown, *words])}", flush=True)
        began, log = time.monotonic(), self.work / f"{len(list(self.work.glob('*.log')))}.log"
        with log.open("w", encoding="utf-8") as errors, log.with_suffix(".out").open("w+", encoding="utf-8") as printed:
            command = [sys.executable, *start, *words]
            streams: dict[str, Any] = {"stdout": printed, "stderr": errors}
            process = subprocess.Popen(command, cwd=ROOT, env=self.environment, start_new_session=True, **streams)
            while process.poll() is None:
                if time.monotonic() > self._end:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    raise UsageError(f"did not end within {self.size.seconds:.0f} s; see {log}")
                if responses is not None:
                    responses.look()
                time.sleep(0.05)
            printed.seek(0)
            text = printed.read()
        if responses is not None:
            responses.look()
        if process.returncode not in ((0,) if responses is None else (0, 1)):
            last = "\n".join([*text.splitlines(), *log.read_text(encoding="utf-8").splitlines()][-15:])
            raise UsageError(f"the command ended with code {process.returncode}; all of it is in {log}:\n{last}")
        print(f"  {time.monotonic() - began:.0f} s", flush=True)
        return text


def _set(settings: Sequence[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
