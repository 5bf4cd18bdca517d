"""References in place of screenshots' bytes, against a server that treats them as vLLM 0.32 was seen to, and words them so."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from PIL import Image

from guieval.data.screenshots import Screenshot, read_screenshot
from guieval.engines.http.chat_completions import OpenAIEngine
from guieval.engines.vllm.command import VLLMSettings
from guieval.engines.vllm.launched import LaunchedEngine
from guieval.engines.vllm.server import VLLMServer
from guieval.errors import EngineError, ScreenshotError
from guieval.models import ImageForm, ImageRef, Response
from guieval.registry import load_benchmark, model_config
from guieval.running.runner.image_cache import ImageLoader
from guieval.settings import RunConfig
from tests.engines.asking import engine_for, make_request
from tests.rows import every_row
from tests.scripted import opened_run
from tests.waiting import PATIENCE

NO_PATH = "Cannot load local files without `--allowed-local-media-path`."
ELSEWHERE = "The file path <path> must be a subpath of `--allowed-local-media-path <path>`."
NOT_THERE = "[Errno 2] No such file or directory: '<path>'"


class Vision:
    """Answers with the digests of the images it saw; keeps the ``room`` it used last under their uuids."""

    def __init__(self, *, folder: Path | None = None, room: int = 100, strict: bool = False) -> None:
        self.folder = folder
        self.no_file = (400, ELSEWHERE) if folder is not None else (500, NO_PATH)
        self.room = room
        self.strict = strict
        self.longest = 10_000_000
        self.broken = False
        self.busy = 0
        self.lost = 0
        self.kept: OrderedDict[str, bytes] = OrderedDict()
        self.asked: list[list[dict[str, Any]]] = []
        self.lock = threading.Lock()
        self.sent = threading.Semaphore(0)

    def answer(self, body: bytes) -> tuple[int, str]:
        parts = [part for part in json.loads(body)["messages"][-1]["content"] if part["type"] == "image_url"]
        self.sent.release()
        with self.lock:
            self.asked.append(parts)
            if self.lost:
                self.lost -= 1
                return 0, "the connection is to be cut"
            if self.busy:
                self.busy -= 1
                return 503, "too many requests"
            if len(body) > self.longest:
                return 400, "the prompt is longer than the maximum model length"
            seen = []
            for index, part in enumerate(parts):
                uuid = part.get("uuid")
                if uuid is not None and self.strict:
                    return 422, "body.messages.0.content: extra fields are not permitted"
                if uuid is not None and self.broken:
                    return 500, "Internal Server Error"
                if part["image_url"] is None:
                    if uuid not in self.kept:
                        return 400, f"Cache miss for image at index {index} but data is not provided."
                    data = self.kept[uuid]
                elif part["image_url"]["url"].startswith("file://"):
                    path = Path(unquote(part["image_url"]["url"].removeprefix("file://")))
                    if self.folder is None or self.folder not in path.parents:
                        return self.no_file
                    data = path.read_bytes()
                else:
                    data = base64.b64decode(part["image_url"]["url"].partition("base64,")[2])
                seen.append(data)
            for part, data in zip(parts, seen, strict=True):
                if "uuid" in part:
                    self.kept[part["uuid"]] = data
                    self.kept.move_to_end(part["uuid"])
            while len(self.kept) > self.room:
                self.kept.popitem(last=False)
            return 200, " ".join(sha256(data).hexdigest() for data in seen)

    @property
    def forms(self) -> list[list[str]]:
        """How the images of each request were given."""
        return [[self.form(part) for part in parts] for parts in self.asked]

    @staticmethod
    def form(part: dict[str, Any]) -> str:
        if part["image_url"] is None:
            return "held"
        scheme = str(part["image_url"]["url"]).partition(":")[0]
        return f"{scheme}+id" if "uuid" in part else scheme


@contextmanager
def serving(vision: Vision) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # an answer in one piece: a second would wait for the first to be acknowledged

        def do_POST(self) -> None:
            status, sentence = vision.answer(self.rfile.read(int(self.headers["Content-Length"])))
            if not status:
                self.close_connection = True
                return
            payload = {"choices": [{"message": {"content": sentence}}]} if status == 200 else {"error": {"message": sentence}}
            data = json.dumps(payload).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "a b%20ü").mkdir(parents=True)
    return folder


@pytest.fixture
def shots(data: Path) -> list[Screenshot]:
    """Fifty screenshots in files whose names a URL cannot hold as they are."""
    found = []
    for number in range(50):
        name = f"a b%20ü/shot #{number}?.png"
        Image.new("RGB", (30, 40), (number, 0, 0)).save(data / name)
        found.append(read_screenshot(data, name, (30, 40)))
    return found


def digests(shots: Sequence[Screenshot]) -> str:
    return " ".join(sha256(shot.data).hexdigest() for shot in shots)


class Asking:
    """Asks an engine for screenshots' digests, and makes sure that they are theirs, that no try failed, and none was needed."""

    def __init__(self, engine: OpenAIEngine) -> None:
        self.engine = engine
        self.count = 0

    async def __call__(self, *shots: Screenshot) -> Response:
        self.count += 1
        reply = await self.engine.generate(make_request("look", images=shots, name=f"r{self.count}"))
        assert reply.text == digests(shots)
        assert reply.attempts == 1
        (stats,) = self.engine.stats()
        assert stats.failed == 0
        return reply


Steps = Sequence[Screenshot] | Callable[[Asking], Awaitable[None]]


def run(vision: Vision, *steps: Steps, **settings: Any) -> Vision:
    """Ask for the screenshots of each step one after the other, or do in a step what a test does."""

    async def main() -> None:
        engine = engine_for(url, **{"max_attempts": 1, **settings})
        asking = Asking(engine)
        try:
            for step in steps:
                await (step(asking) if callable(step) else asking(*step))
        finally:
            await engine.close()

    with serving(vision) as url:
        asyncio.run(main())
    return vision


def test_an_original_is_named_and_not_sent(data: Path, shots: list[Screenshot]) -> None:
    vision = run(Vision(folder=data), [shots[0], replace(shots[1], path=None)], folder=data)
    assert vision.forms == [["file", "data"]]
    assert vision.asked[0][0]["image_url"]["url"] == f"file://{data.resolve()}/a%20b%2520%C3%BC/shot%20%230%3F.png"


def test_a_file_outside_of_the_folder_is_sent(tmp_path: Path, data: Path) -> None:
    """Also when a link within leads there: what counts is where the file is."""
    Image.new("RGB", (3, 4)).save(tmp_path / "outside.png")
    (data / "inside").mkdir()
    Image.new("RGB", (3, 4)).save(data / "inside" / "real.png")
    (data / "out.png").symlink_to(tmp_path / "outside.png")
    (data / "in.png").symlink_to(data / "inside" / "real.png")
    found = [read_screenshot(tmp_path, f"data/{name}.png", (3, 4)) for name in ("out", "in")]
    vision = run(Vision(folder=data), found, folder=data)
    assert vision.forms == [["data", "file"]]
    assert vision.asked[0][1]["image_url"]["url"].endswith("/inside/real.png")


def test_a_name_that_is_no_text_is_sent(data: Path) -> None:
    name = b"shot-\xff.png".decode("utf-8", "surrogateescape")
    Image.new("RGB", (3, 4)).save(data / "plain.png")
    try:
        (data / "plain.png").rename(data / name)
    except OSError:
        pytest.skip("this disk takes no such names")
    assert run(Vision(folder=data), [read_screenshot(data, name, (3, 4))], folder=data).forms == [["data"]]


@pytest.mark.parametrize("refusal", [(500, NO_PATH), (400, ELSEWHERE), (500, NOT_THERE)])
def test_a_server_that_reads_no_files_is_sent_bytes_and_it_is_reported_once(
    refusal: tuple[int, str], data: Path, shots: list[Screenshot], caplog: pytest.LogCaptureFixture
) -> None:
    vision = Vision()
    vision.no_file = refusal
    with caplog.at_level(logging.WARNING):
        run(vision, *([shot] for shot in shots[:5]), folder=data)
    assert vision.forms == [["file"], *[["data"]] * 5]
    (record,) = caplog.records
    assert "does not read local files" in record.getMessage() and refusal[1][:20] in record.getMessage()


def test_an_image_is_sent_once_where_that_is_asked_for(data: Path, shots: list[Screenshot]) -> None:
    one, two = shots[:1], shots[:2]
    assert run(Vision(), one, one).forms == [["data"]] * 2
    assert run(Vision(folder=data), one, two, folder=data, image_uuids=True).forms == [["file+id"], ["held", "file+id"]]
    vision = run(Vision(), one, two, [*shots[:3], shots[1]], image_uuids=True)
    assert vision.forms == [["data+id"], ["held", "data+id"], ["held", "held", "data+id", "held"]]
    assert vision.asked[0][0]["uuid"] == sha256(shots[0].data).hexdigest()


def test_equal_pictures_have_one_id_and_unlike_ones_two(data: Path, shots: list[Screenshot]) -> None:
    vision = run(Vision(), shots[:2], [replace(shots[0], path=data / "another.png")], image_uuids=True)
    assert vision.forms == [["data+id", "data+id"], ["held"]]
    assert len({part["uuid"] for part in vision.asked[0]}) == 2


def test_nothing_is_believed_to_be_held_before_it_was_answered(shots: list[Screenshot]) -> None:
    vision = Vision()

    async def steps(ask: Asking) -> None:
        with vision.lock:  # nothing is answered until all have been sent
            asked = [asyncio.create_task(ask(shots[0])) for _ in range(3)]
            for _ in asked:
                await asyncio.to_thread(vision.sent.acquire, timeout=PATIENCE)
        await asyncio.gather(*asked)

    run(vision, steps, image_uuids=True)
    assert vision.forms == [["data+id"]] * 3


def test_what_a_server_has_forgotten_is_sent_again(shots: list[Screenshot]) -> None:
    vision = Vision()

    async def restarted(ask: Asking) -> None:
        vision.kept.clear()

    run(vision, shots[:3], restarted, shots[:3], shots[:3], image_uuids=True)
    assert vision.forms == [["data+id"] * 3, ["held"] * 3, ["data+id"] * 3, ["held"] * 3]


@pytest.mark.parametrize("beside", [lambda number: (number - 1) % 49, lambda number: 49], ids=["the last one", "always one"])
def test_it_is_found_out_how_many_a_server_keeps(shots: list[Screenshot], beside: Callable[[int], int]) -> None:
    """Twenty are kept of 49 that take turns; each request shows another one beside, which is always there."""
    pairs = ([shots[beside(number)], shots[number % 49]] for number in range(300))
    vision = run(Vision(room=20), *pairs, image_uuids=True)
    misses = len(vision.asked) - 300
    assert misses < 15
    assert sum(form == ["held", "data+id"] for form in vision.forms) > 270
    assert sum(form[0] != "held" for form in vision.forms) == 1 + misses


def test_requests_that_miss_together_tell_once_how_much_is_kept(shots: list[Screenshot]) -> None:
    """Those on their way when the first is found to be gone say nothing that was not known by then."""

    async def together(ask: Asking) -> None:
        await asyncio.gather(*map(ask, shots[:10]))

    each = [[shot] for shot in shots]
    assert run(Vision(room=40), *each, together, *each[35:], image_uuids=True).forms[-15:] == [["held"]] * 15


def test_after_a_lost_connection_nothing_is_believed_to_be_held(shots: list[Screenshot]) -> None:
    """The process that answers next may be a new one; how much it keeps is known from the one before."""
    vision = Vision()

    async def lost(ask: Asking) -> None:
        vision.lost = 1
        with pytest.raises(EngineError, match="broke"):
            await ask.engine.generate(make_request("look", images=shots[:1], name="lost"))
        vision.kept.clear()
        for _ in range(2):
            for shot in shots:
                assert (await ask.engine.generate(make_request("look", images=[shot], name="r"))).text == digests([shot])

    run(vision, *([shot] for shot in shots), lost, image_uuids=True)
    assert vision.forms[50:] == [["held"], *[["data+id"]] * 50, *[["held"]] * 50]


def test_a_server_that_keeps_nothing_is_no_longer_asked_to(shots: list[Screenshot], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        vision = run(Vision(room=0), *[shots[:1]] * 30, image_uuids=True)
    assert len(vision.asked) - 30 == 9
    assert vision.forms[-1] == ["data"]
    assert len(caplog.records) == 1 and "does not keep images" in caplog.text


def test_a_server_that_knows_no_ids_is_soon_sent_none(shots: list[Screenshot], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        vision = run(Vision(strict=True), *[shots[:1]] * 20, image_uuids=True)
    assert vision.forms == [*[["data+id"], ["data"]] * 8, *[["data"]] * 12]
    assert len(caplog.records) == 1 and "extra fields are not permitted" in caplog.text


def test_a_request_that_is_refused_for_itself_is_refused(shots: list[Screenshot]) -> None:
    vision = Vision()
    request = make_request("look", images=shots[:1], name="r")

    async def steps(ask: Asking) -> None:
        vision.longest = 10
        with pytest.raises(EngineError, match=r"refuses this request \(status 400\): the prompt is longer") as caught:
            await ask.engine.generate(request)
        assert caught.value.attempts == 1
        vision.longest = 10_000_000
        assert (await ask.engine.generate(request)).text == digests(shots[:1])

    run(vision, steps, image_uuids=True)
    assert vision.forms == [["data+id"], ["data"], ["data+id"]]


def test_after_an_error_of_the_servers_the_next_try_is_in_bytes(shots: list[Screenshot]) -> None:
    vision = Vision()
    vision.broken = True

    async def steps(ask: Asking) -> None:
        reply = await ask.engine.generate(make_request("look", images=shots[:2], name="r"))
        assert (reply.text, reply.attempts) == (digests(shots[:2]), 2)

    run(vision, steps, image_uuids=True, max_attempts=2)
    assert vision.forms == [["data+id"] * 2, ["data"] * 2]


def test_a_busy_server_is_offered_references_again(shots: list[Screenshot]) -> None:
    vision = Vision()

    async def busy(ask: Asking) -> None:
        vision.busy = 1
        assert (await ask.engine.generate(make_request("look", images=shots[:1], name="r"))).attempts == 2

    run(vision, shots[:1], busy, image_uuids=True, max_attempts=2)
    assert vision.forms == [["data+id"], ["held"], ["held"]]


@pytest.mark.parametrize(
    ("form", "original", "resized"), [("bytes", False, False), ("base64", True, True), ("file", False, True)]
)
def test_what_is_sent_is_encoded(data: Path, shots: list[Screenshot], form: ImageForm, original: bool, resized: bool) -> None:
    task = make_request("look").task.model_copy(update={"screenshot": "a b%20ü/shot #0?.png", "screenshot_size": (30, 40)})
    damaged = shots[1].path
    assert damaged is not None
    damaged.write_bytes(shots[1].data[:50] + b"x" + shots[1].data[51:])

    async def load() -> list[Screenshot]:
        with ThreadPoolExecutor(1) as threads:
            loader = ImageLoader(data, threads, form=form)
            with pytest.raises(ScreenshotError, match="is damaged"):
                await loader.load(ImageRef(task.model_copy(update={"screenshot": "a b%20ü/shot #1?.png"})))
            return [await loader.load(ImageRef(task, size)) for size in (None, (15, 20))]

    loaded = asyncio.run(load())
    assert ["base64" in vars(shot) for shot in loaded] == [original, resized]
    assert [shot.path for shot in loaded] == [shots[0].path, None]


URL = ("http://127.0.0.1:1/v1",)


@pytest.mark.ci
@every_row(
    ("changes", "files", "ids"),
    [
        ({"base_urls": URL}, False, False),
        ({"base_urls": URL, "local_images": True}, True, False),
        ({"base_urls": URL, "image_uuids": True}, False, True),
        ({"engine": "vllm"}, True, True),
        ({"engine": "vllm", "local_images": False}, False, True),
        ({"engine": "vllm", "image_uuids": False}, True, False),
    ],
)
def test_a_server_of_ours_is_sent_references(tmp_path: Path, changes: dict[str, Any], files: bool, ids: bool) -> None:
    data = tmp_path / "demo"
    load_benchmark("demo", data, episodes=1)
    fields = {"model": "ui-tars-7b", "bench": "demo", "data": str(data), "bench_options": {"episodes": 1}, **changes}
    config = RunConfig.model_validate(fields)
    checkpoint, media = model_config("ui-tars-7b", None), VLLMSettings.of({}, media=data)
    server = VLLMServer(checkpoint, media, tmp_path / "vllm.log") if config.server.engine == "vllm" else None
    engine = opened_run(config, tmp_path / "run", server).run.engine
    assert isinstance(engine, OpenAIEngine | LaunchedEngine) and engine.images == ("file" if files else "base64")
    assert (engine.folder, bool(engine.settings.image_uuids)) == (data if files else None, ids)
