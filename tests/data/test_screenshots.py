"""Screenshots: every way in which a data folder's image can be unsafe or damaged, and real ones that are neither."""

from __future__ import annotations

import io
import os
import struct
import zlib
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guieval.data.screenshots import (
    MAX_PIXELS,
    FileDigest,
    Screenshot,
    check_data,
    probe,
    read_screenshot,
    resized_png,
    resolve,
)
from guieval.errors import ScreenshotError
from tests.rows import every_row

FORMATS = ("png", "jpeg", "webp")


def picture(kind: str = "png", size: tuple[int, int] = (40, 60), **options: Any) -> bytes:
    """A small image with a gradient, so that its data cannot be packed to nothing."""
    from PIL import Image

    image = Image.new("RGB", size)
    image.putdata([(x * 37 % 256, y * 91 % 256, (x * y) % 256) for y in range(size[1]) for x in range(size[0])])
    buffer = io.BytesIO()
    image.save(buffer, format=kind.upper(), **options)
    return buffer.getvalue()


def png_of(data: bytes, size: tuple[int, int] = (20, 30)) -> bytes:
    """A PNG of RGB pixels whose chunks are whole, whatever its size and its compressed data are."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", *size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


NO_PIXELS = zlib.compress(b"")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "images").mkdir(parents=True)
    return folder


@every_row("kind", FORMATS)
def test_a_whole_image_is_read_as_it_is(root: Path, kind: str) -> None:
    data = picture(kind)
    (root / "images" / "a").write_bytes(data)
    assert read_screenshot(root, "images/a", (40, 60)) == Screenshot(data, kind, (40, 60))  # type: ignore[arg-type]


@every_row("path", ["../secret.png", "images/../../secret.png", "/etc/hostname", "images/out/secret.png", "link.png"])
def test_a_path_that_leaves_the_folder_is_refused(tmp_path: Path, path: str) -> None:
    root = tmp_path / "data"
    (root / "images").mkdir(parents=True)
    (tmp_path / "secret.png").write_bytes(picture())
    (root / "images" / "out").symlink_to(tmp_path)
    (root / "link.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(ScreenshotError, match="leaves the data folder"):
        read_screenshot(root, path, (40, 60))


def test_a_link_that_stays_inside_is_followed(root: Path) -> None:
    (root / "images" / "a.png").write_bytes(picture())
    (root / "b.png").symlink_to(root / "images" / "a.png")
    assert resolve(root, "b.png") == (root / "images" / "a.png").resolve()
    assert read_screenshot(root, "b.png", (40, 60)).size == (40, 60)


@every_row("path", ["images/none.png", "images", ""])
def test_a_missing_file_is_named(root: Path, path: str) -> None:
    with pytest.raises(ScreenshotError, match="does not exist"):
        read_screenshot(root, path, (40, 60))


def test_the_wrong_size_is_reported_with_both_sizes(root: Path) -> None:
    (root / "a.png").write_bytes(picture())
    with pytest.raises(ScreenshotError, match=r"a\.png' is 40x60 pixels, but its record says 60x40"):
        read_screenshot(root, "a.png", (60, 40))


@pytest.mark.parametrize("kind", FORMATS)
@given(data=st.data())
def test_a_cut_image_is_never_taken_for_whole(kind: str, data: st.DataObject) -> None:
    whole = picture(kind)
    kept = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(ValueError, match=r"truncated|not a readable"):
        probe(whole[:kept])


@every_row("kind", FORMATS)
def test_losing_the_last_quarter_is_called_truncated(root: Path, kind: str) -> None:
    whole = picture(kind, (200, 200))
    (root / "a").write_bytes(whole[: len(whole) * 3 // 4])
    with pytest.raises(ScreenshotError, match="is truncated"):
        read_screenshot(root, "a", (200, 200))


@every_row("kind", FORMATS)
def test_bytes_after_the_end_do_no_harm(kind: str) -> None:
    assert probe(picture(kind) + b"\x00" * 100) == (kind, (40, 60))


@given(st.binary(max_size=200))
def test_other_bytes_are_no_image(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a readable PNG, JPEG or WebP image"):
        probe(data)


@every_row("kind", ["gif", "bmp", "tiff"])
def test_other_formats_are_refused(kind: str) -> None:
    with pytest.raises(ValueError, match="not a readable PNG, JPEG or WebP image"):
        probe(picture(kind))


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@every_row("size", [(100_000, 100_000), (8_001, 8_000), (MAX_PIXELS + 1, 1)])
def test_a_small_file_of_a_huge_image_is_refused(root: Path, size: tuple[int, int]) -> None:
    bomb = png_of(NO_PIXELS, size)
    assert len(bomb) < 100
    (root / "a.png").write_bytes(bomb)
    with pytest.raises(ScreenshotError, match="unpacks to"):
        read_screenshot(root, "a.png", size)


def test_the_largest_image_allowed_is_allowed() -> None:
    assert probe(png_of(NO_PIXELS, (8_000, 8_000))) == ("png", (8_000, 8_000))


def test_a_file_too_large_is_not_read(root: Path) -> None:
    with (root / "a.png").open("wb") as stream:
        stream.truncate(64 * 1024 * 1024 + 1)
    with pytest.raises(ScreenshotError, match="larger than 64 MiB"):
        read_screenshot(root, "a.png", (40, 60))


@every_row("kind", FORMATS)
def test_resizing_gives_a_png_of_that_size_with_those_pixels(kind: str) -> None:
    from PIL import Image

    data = picture(kind)
    resized = resized_png(Screenshot(data, kind, (40, 60)), (28, 56))  # type: ignore[arg-type]
    assert probe(resized.data) == ("png", (28, 56))
    assert (resized.format, resized.size) == ("png", (28, 56))
    with Image.open(io.BytesIO(data)) as image, Image.open(io.BytesIO(resized.data)) as got:
        assert got.tobytes() == image.convert("RGB").resize((28, 56), Image.Resampling.BICUBIC).tobytes()


def test_resizing_drops_transparency_and_palettes() -> None:
    from PIL import Image

    for mode in ("RGBA", "LA", "P", "L", "1"):
        buffer = io.BytesIO()
        Image.new(mode, (40, 60)).save(buffer, format="PNG")
        resized = resized_png(Screenshot(buffer.getvalue(), "png", (40, 60)), (28, 28))
        with Image.open(io.BytesIO(resized.data)) as got:
            assert got.mode == "RGB"


def test_one_changed_bit_of_a_png_is_noticed_wherever_it_is() -> None:
    whole = picture(size=(6, 6))
    assert probe(whole) == ("png", (6, 6))
    for place in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << place % 8
        with pytest.raises(ValueError, match=r"is damaged|is truncated|not a readable|unpacks to"):
            probe(bytes(changed))


def test_data_that_cannot_be_decoded_is_a_screenshot_error() -> None:
    whole = picture("webp", (200, 200), lossless=True)
    middle = len(whole) // 2
    damaged = whole[:middle] + b"\xff" * (len(whole) - middle)
    assert probe(damaged) == ("webp", (200, 200))
    with pytest.raises(ScreenshotError, match="cannot be decoded"):
        resized_png(Screenshot(damaged, "webp", (200, 200)), (28, 28))


@every_row(
    ("kind", "mode"),
    [("jpeg", mode) for mode in ("RGB", "L")]
    + [(kind, mode) for kind in ("png", "webp") for mode in ("RGB", "L", "RGBA", "P", "1")],
)
def test_whole_data_passes_the_decode_check(kind: str, mode: str) -> None:
    from PIL import Image

    buffer = io.BytesIO()
    Image.effect_noise((97, 33), 80).convert(mode).save(buffer, format=kind)
    data = buffer.getvalue()
    check_data(Screenshot(data, *probe(data)))


def test_the_same_content_is_decoded_once_by_all_runs_of_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It depends on what the files hold, not by their names or dates, so a file that changes is decoded again."""
    decoded: list[Any] = []
    unpack = zlib.decompressobj

    def unpacker() -> Any:
        decoded.append(unpack())
        return decoded[-1]

    monkeypatch.setattr(zlib, "decompressobj", unpacker)
    shade = os.urandom(60 * 30)
    rows = b"".join(b"\0" + shade[start : start + 60] for start in range(0, 60 * 30, 60))
    for name, content in (("one.png", rows), ("two.png", rows), ("three.png", rows[:-1] + bytes([rows[-1] ^ 1]))):
        (tmp_path / name).write_bytes(png_of(zlib.compress(content)))
    for name, count in (("one.png", 1), ("two.png", 1), ("one.png", 1), ("three.png", 2)):
        check_data(read_screenshot(tmp_path, name, (20, 30)))
        assert len(decoded) == count
    (tmp_path / "one.png").write_bytes(png_of(zlib.compress(rows)[:-9]))
    for _ in range(2):
        with pytest.raises(ScreenshotError, match="cannot be decoded"):
            check_data(read_screenshot(tmp_path, "one.png", (20, 30)))


@every_row(
    "data",
    [
        b"no compressed data",
        zlib.compress(bytes(61 * 30))[:-9],
        zlib.compress(bytes(61 * 29)),
        zlib.compress(bytes(61 * 31)),
        b"",
    ],
)
def test_a_png_whose_data_do_not_decode_is_refused(data: bytes) -> None:
    """Its chunks and their checksums are right, so that nothing else notices."""
    assert probe(png_of(data)) == ("png", (20, 30))
    with pytest.raises(ScreenshotError, match="cannot be decoded"):
        check_data(Screenshot(png_of(data), "png", (20, 30)))
    check_data(Screenshot(png_of(zlib.compress(bytes(61 * 30))), "png", (20, 30)))


def test_a_jpeg_whose_data_do_not_decode_is_refused() -> None:
    """Its tables are lost. Pixels that are lost are filled with grey by every decoder, and no error is raised."""
    whole = picture("jpeg", (400, 400))
    tables = whole.index(b"\xff\xc4")
    damaged = whole[: tables + 4] + bytes(200) + whole[tables + 204 :]
    assert probe(damaged) == ("jpeg", (400, 400))
    with pytest.raises(ScreenshotError, match="cannot be decoded"):
        check_data(Screenshot(damaged, "jpeg", (400, 400)))


def test_the_digest_is_that_of_the_file(root: Path) -> None:
    data = picture()
    (root / "a.png").write_bytes(data)
    shot = read_screenshot(root, "a.png", (40, 60))
    assert shot.original == FileDigest(len(data), sha256(data).hexdigest()[:16])
    assert resized_png(shot, (20, 30)).original == shot.original


@pytest.mark.ci
def test_every_real_screenshot_passes(shared_data: Path) -> None:
    suffixes = {".png", ".jpg", ".jpeg", ".webp"}
    files = sorted(path for path in shared_data.rglob("*") if path.suffix.lower() in suffixes and path.is_file())
    if not files:
        pytest.skip(f"no screenshot in {shared_data}")
    for file in files:
        try:
            kind, size = probe(file.read_bytes())
        except ValueError as error:
            pytest.fail(f"{file} {error}")
        assert kind in FORMATS
        check_data(Screenshot(file.read_bytes(), kind, size, file))
        assert min(size) >= 1
