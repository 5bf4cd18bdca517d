"""Requests a second of real vLLM with a tiny model, by the form in which screenshots are sent: bytes, file:// URLs, ids.

The environment is the one of `make test-vllm` and is set up when it is missing (3.6 GB, three minutes). Client, server and
model share this machine's cores, and the model's own work, which no form changes, is a good part of each request: the ratios
say what a form saves at least. What it saves of the process that takes requests and reads images ("server's front") does not
depend on the model. Every form gets pictures of its own, so that no cache of the server's helps a later one, and the forms
take turns; each ratio is to "bytes" of the same turn.

    python perf/throughput.py --vllm
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from guieval.actions import Wait
from guieval.engines.http.chat_completions import OpenAIEngine
from guieval.engines.vllm.command import VLLMSettings
from guieval.engines.vllm.server import VLLMServer
from guieval.models import ImageRef, Message, ModelConfig, ModelInput, Part, Request
from guieval.running.runner.image_cache import ImageLoader
from guieval.settings import Server
from guieval.steps import StepTaskModel

ROOT = Path(__file__).resolve().parent.parent
SIZE = (540, 1200)
EPISODES = 8
STEPS = 6
ROUNDS = 3
FORMS: dict[str, dict[str, bool]] = {
    "bytes": {},
    "file://": {"files": True},
    "bytes, ids": {"uuids": True},
    "file://, ids": {"files": True, "uuids": True},
}


def marked(png: bytes, mark: str) -> bytes:
    """The same picture as another file: a text chunk before the last one."""
    chunk = b"tEXtmark\0" + mark.encode()
    whole = (len(chunk) - 4).to_bytes(4, "big") + chunk + zlib.crc32(chunk).to_bytes(4, "big")
    return png[:-12] + whole + png[-12:]


def pictures() -> list[bytes]:
    """One screen for each step of an episode, as rich as a phone's."""
    import io

    from PIL import Image

    from perf.screens import picture

    found = []
    for number in range(STEPS):
        buffer = io.BytesIO()
        Image.open(io.BytesIO(picture(random.Random(number)))).resize(SIZE).save(buffer, "PNG")
        found.append(buffer.getvalue())
    return found


@dataclass
class Measured:
    """One turn of one form: requests a second, and CPU milliseconds a request of the client and of the server's front."""

    rate: float
    client: float
    front: float


def cpu_seconds(pid: int) -> float:
    """What one process has used, its children left out."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(
    url: str, front: int, folder: Path, mark: str, shown: int, *, files: bool = False, uuids: bool = False
) -> Measured:
    """All steps of all episodes, each with the last ``shown`` screenshots, an episode's steps one after the other."""
    screens = pictures_of(folder, mark)
    settings = Server(base_urls=(url,), served_model="tiny", image_uuids=uuids, max_attempts=1)
    engine = OpenAIEngine(settings, folder=folder if files else None)
    with ThreadPoolExecutor(2) as threads:
        images = ImageLoader(folder, threads, form=engine.images)

        async def episode(tasks: Sequence[StepTaskModel]) -> None:
            for index, task in enumerate(tasks):
                refs = [ImageRef(each) for each in tasks[max(0, index + 1 - shown) : index + 1]]
                parts: tuple[Part, ...] = (f"Step {index} of {task.episode_id}.", *refs)
                loaded = tuple([await images.load(ref) for ref in refs])
                asked = ModelInput((Message("user", parts),))
                sampling: dict[str, Any] = {"max_tokens": 8, "temperature": 0}
                await engine.generate(Request(asked, loaded, sampling, f"{mark}-{task.episode_id}-{index}", task))

        began, worked, served = time.perf_counter(), time.process_time(), cpu_seconds(front)
        await asyncio.gather(*map(episode, screens))
        seconds, cpu = time.perf_counter() - began, time.process_time() - worked
    await engine.close()
    count = EPISODES * STEPS
    return Measured(count / seconds, 1000 * cpu / count, 1000 * (cpu_seconds(front) - served) / count)


def pictures_of(folder: Path, mark: str) -> list[list[StepTaskModel]]:
    """Episodes whose every screenshot is a file that no other turn shows."""
    episodes = []
    screens = [(folder / f"{step}.png").read_bytes() for step in range(STEPS)]
    for episode in range(EPISODES):
        tasks = []
        for step, screen in enumerate(screens):
            name = f"{mark}-{episode}-{step}.png"
            (folder / name).write_bytes(marked(screen, name))
            tasks.append(
                StepTaskModel.model_validate(
                    {
                        **{"benchmark": "load", "dataset": "load", "subset": "", "episode_id": str(episode)},
                        **{"step_index": step, "episode_length": STEPS, "instruction": "go on", "screenshot": name},
                        **{"screenshot_size": SIZE, "action": Wait()},
                    }
                )
            )
        episodes.append(tasks)
    return episodes


def compare(url: str, front: int, folder: Path) -> None:
    """Print one table for each number of screenshots in a request; ``front`` is the process that takes the requests."""
    for step, screen in enumerate(pictures()):
        (folder / f"{step}.png").write_bytes(screen)
    asyncio.run(measure(url, front, folder, "warm", 1))
    for shown in (1, 3):
        rounds: dict[str, list[Measured]] = {name: [] for name in FORMS}
        for turn in range(ROUNDS):
            for number, (name, how) in enumerate(FORMS.items()):
                rounds[name].append(asyncio.run(measure(url, front, folder, f"{shown}-{turn}-{number}", shown, **how)))
        print(f"{shown} screenshots of {SIZE[0]}x{SIZE[1]} a request, {EPISODES} in flight" if shown > 1 else "1 screenshot")
        for name, turns in rounds.items():
            ratio = statistics.median(one.rate / base.rate for one, base in zip(turns, rounds["bytes"], strict=True))
            rate = statistics.median(one.rate for one in turns)
            front_cpu, client = (statistics.median(values) for values in ((t.front for t in turns), (t.client for t in turns)))
            print(
                f"  {name:14} {rate:6.1f} requests/s  {ratio:5.2f} x bytes  CPU ms/request: {front_cpu:6.1f} server's front, "
                f"{client:5.2f} client",
                flush=True,
            )


def main() -> None:
    """Start the server and measure."""
    sys.path.insert(0, str(ROOT))
    from tests.environment import folder as environment_folder
    from tests.environment import set_up

    os.environ.update(VLLM_CPU_KVCACHE_SPACE="1", HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1", TORCHDYNAMO_DISABLE="1")
    with tempfile.TemporaryDirectory(prefix="guieval-vllm-") as work:
        weights, media = Path(work, "tiny"), Path(work, "media")
        media.mkdir()
        python = str(set_up("vllm", environment_folder("vllm")))
        script = ROOT / "tests" / "vllm" / "tiny_model.py"
        subprocess.run([python, str(script), str(weights)], check=True, capture_output=True)
        arguments = {
            **{"python": python, "model": str(weights), "dtype": "float32", "max-model-len": 8192, "enforce-eager": True},
            **{"gpu-memory-utilization": 0.2, "limit-mm-per-prompt": {"image": 3, "video": 0}},
        }
        settings = VLLMSettings.of(arguments, served_name="tiny", media=media)
        with VLLMServer(ModelConfig(name="tiny", adapter="qwen2_5_vl"), settings, Path(work, "vllm.log")) as server:
            print(f"vLLM ready with {json.dumps(arguments)}; {os.cpu_count()} cores", flush=True)
            front = int(Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()[0])
            compare(server.base_url, front, media)


if __name__ == "__main__":
    main()
