"""Screenshots: what a model sees of every kind of file, every way in which one can be unsafe or damaged, and real ones."""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
import zlib
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from guieval.data import screenshots
from guieval.data.screenshots import (
    MAX_PIXELS,
    FileDigest,
    Header,
    Screenshot,
    header,
    picture,
    probe,
    read_picture,
    read_screenshot,
    resolve,
)
from guieval.errors import ScreenshotError
from tests.pictures import KINDS, SIZE, Kind
from tests.rows import every_row

FORMATS = ("png", "jpeg", "webp")


def drawn(kind: str = "png", size: tuple[int, int] = (40, 60), **options: Any) -> bytes:
    """A small image with a gradient, so that its data cannot be packed to nothing."""
    image = Image.new("RGB", size)
    image.putdata([(x * 37 % 256, y * 91 % 256, (x * y) % 256) for y in range(size[1]) for x in range(size[0])])
    buffer = io.BytesIO()
    image.save(buffer, format=kind.upper(), **options)
    return buffer.getvalue()


def png_of(data: bytes, size: tuple[int, int] = (20, 30)) -> bytes:
    """A PNG of RGB pixels whose chunks are whole, whatever its size and its compressed data are."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    first = struct.pack(">IIBBBBB", *size, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", first) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def sent(root: Path, data: bytes, size: tuple[int, int], *args: Any, **options: Any) -> Screenshot:
    """What a model is sent of a file with these bytes."""
    (root / "a").write_bytes(data)
    return read_screenshot(root, "a", size, *args, **options)


NO_PIXELS = zlib.compress(b"")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    (folder / "images").mkdir(parents=True)
    return folder


@every_row("kind", FORMATS)
def test_a_whole_image_is_read_as_it_is_with_the_digest_of_its_file(root: Path, kind: str) -> None:
    data = drawn(kind)
    (root / "images" / "a").write_bytes(data)
    shot = read_screenshot(root, "images/a", (40, 60), check=True)
    assert shot == Screenshot(data, kind, (40, 60))  # type: ignore[arg-type]
    digest = FileDigest(len(data), sha256(data).hexdigest()[:16])
    assert shot.original == read_screenshot(root, "images/a", (40, 60), (20, 30)).original == digest
    assert probe(data + b"\x00" * 100) == Header(kind, (40, 60))  # type: ignore[arg-type]  # bytes after the end do no harm


@every_row("path", ["../secret.png", "images/../../secret.png", "/etc/hostname", "images/out/secret.png", "link.png"])
def test_a_path_that_leaves_the_folder_is_refused(tmp_path: Path, path: str) -> None:
    root = tmp_path / "data"
    (root / "images").mkdir(parents=True)
    (tmp_path / "secret.png").write_bytes(drawn())
    (root / "images" / "out").symlink_to(tmp_path)
    (root / "link.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(ScreenshotError, match="leads out of its folder"):
        read_screenshot(root, path, (40, 60))


def test_a_link_that_stays_inside_is_followed(root: Path) -> None:
    (root / "images" / "a.png").write_bytes(drawn())
    (root / "b.png").symlink_to(root / "images" / "a.png")
    assert resolve(root, "b.png") == (root / "images" / "a.png").resolve()
    assert read_screenshot(root, "b.png", (40, 60)).size == (40, 60)


@every_row("path", ["images/none.png", "images", ""])
def test_a_missing_file_is_named(root: Path, path: str) -> None:
    with pytest.raises(ScreenshotError, match=r"does not exist|is empty"):
        read_screenshot(root, path, (40, 60))


def test_the_wrong_size_is_reported_with_both_sizes(root: Path) -> None:
    with pytest.raises(ScreenshotError, match=r"a' is 40x60 pixels, but its record says 60x40$"):
        sent(root, drawn(), (60, 40))
    turned = next(each for each in KINDS if each.name == "JPEG turned 6").data
    with pytest.raises(
        ScreenshotError, match=r"a' is 30x40 pixels once it is turned as its EXIF orientation 6 says,?.* but its "
    ):
        sent(root, turned, SIZE)
    with pytest.raises(ScreenshotError, match=r"but its record says 40x30, the size of the unturned file"):
        sent(root, turned, SIZE)


@pytest.mark.parametrize("kind", FORMATS)
@given(data=st.data())
def test_a_cut_image_is_never_taken_for_whole(kind: str, data: st.DataObject) -> None:
    whole = drawn(kind)
    kept = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(ValueError, match=r"truncated|not a readable"):
        probe(whole[:kept])


@every_row("kind", FORMATS)
def test_losing_the_last_quarter_is_called_truncated(root: Path, kind: str) -> None:
    whole = drawn(kind, (200, 200))
    with pytest.raises(ScreenshotError, match="is truncated"):
        sent(root, whole[: len(whole) * 3 // 4], (200, 200))


@given(st.binary(max_size=200))
@example(drawn("gif"))
@example(drawn("bmp"))
@example(drawn("tiff"))
def test_other_bytes_and_other_formats_are_no_image(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a readable PNG, JPEG or WebP image"):
        probe(data)


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@every_row("size", [(100_000, 100_000), (8_001, 8_000), (MAX_PIXELS + 1, 1)])
def test_a_small_file_of_a_huge_image_is_refused(root: Path, size: tuple[int, int]) -> None:
    bomb = png_of(NO_PIXELS, size)
    assert len(bomb) < 100
    (root / "a.png").write_bytes(bomb)
    with pytest.raises(ScreenshotError, match="unpacks to"):
        read_screenshot(root, "a.png", size)


def test_the_largest_image_allowed_is_allowed() -> None:
    assert probe(png_of(NO_PIXELS, (8_000, 8_000))) == Header("png", (8_000, 8_000))


def test_a_file_too_large_is_not_read(root: Path) -> None:
    with (root / "a.png").open("wb") as stream:
        stream.truncate(64 * 1024 * 1024 + 1)
    with pytest.raises(ScreenshotError, match="larger than 64 MiB"):
        read_screenshot(root, "a.png", (40, 60))


def test_one_changed_bit_of_a_png_is_noticed_wherever_it_is() -> None:
    whole = drawn(size=(6, 6))
    assert probe(whole) == Header("png", (6, 6))
    for place in range(8 * len(whole)):
        changed = bytearray(whole)
        changed[place // 8] ^= 1 << place % 8
        with pytest.raises(ValueError, match=r"is damaged|is truncated|not a readable|unpacks to"):
            probe(bytes(changed))


def test_data_that_cannot_be_decoded_is_a_screenshot_error(root: Path) -> None:
    whole = drawn("webp", (200, 200), lossless=True)
    middle = len(whole) // 2
    damaged = whole[:middle] + b"\xff" * (len(whole) - middle)
    assert probe(damaged) == Header("webp", (200, 200))
    for options in ({"resize": (28, 28)}, {"check": True}):
        with pytest.raises(ScreenshotError, match="a' cannot be decoded"):
            sent(root, damaged, (200, 200), **options)


def test_the_same_content_is_decoded_once_by_all_runs_of_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It depends on what the files hold, not on their names or dates, so a file that changes is decoded again."""
    unpacked: list[bytes] = []
    unpack = screenshots._unpack_png

    def counted(data: bytes) -> None:
        unpacked.append(data)
        unpack(data)

    monkeypatch.setattr(screenshots, "_unpack_png", counted)
    shade = os.urandom(60 * 30)
    rows = b"".join(b"\0" + shade[start : start + 60] for start in range(0, 60 * 30, 60))
    for name, content in (("one.png", rows), ("two.png", rows), ("three.png", rows[:-1] + bytes([rows[-1] ^ 1]))):
        (tmp_path / name).write_bytes(png_of(zlib.compress(content)))
    for name, count in (("one.png", 1), ("two.png", 1), ("one.png", 1), ("three.png", 2)):
        read_screenshot(tmp_path, name, (20, 30), check=True)
        assert len(unpacked) == count
    (tmp_path / "one.png").write_bytes(png_of(zlib.compress(rows)[:-9]))
    for _ in range(2):
        with pytest.raises(ScreenshotError, match="cannot be decoded"):
            read_screenshot(tmp_path, "one.png", (20, 30), check=True)


@every_row(
    "data",
    [
        b"no compressed data",
        zlib.compress(bytes(61 * 30))[:-9],
        zlib.compress(bytes(61 * 29)),  # without its last row
        zlib.compress(bytes(61 * 31)),
        b"",
    ],
)
def test_a_png_whose_data_do_not_decode_is_refused(root: Path, data: bytes) -> None:
    """Its chunks and their checksums are right, so that nothing else notices."""
    assert probe(png_of(data)) == Header("png", (20, 30))
    with pytest.raises(ScreenshotError, match="cannot be decoded"):
        sent(root, png_of(data), (20, 30), check=True)
    sent(root, png_of(zlib.compress(bytes(61 * 30))), (20, 30), check=True)


def test_a_jpeg_whose_data_do_not_decode_is_refused(root: Path) -> None:
    """Its tables are lost. Pixels that are lost are filled with grey by every decoder, and no error is raised."""
    whole = drawn("jpeg", (400, 400))
    tables = whole.index(b"\xff\xc4")
    damaged = whole[: tables + 4] + bytes(200) + whole[tables + 204 :]
    assert probe(damaged) == Header("jpeg", (400, 400))
    with pytest.raises(ScreenshotError, match="cannot be decoded"):
        sent(root, damaged, (400, 400), check=True)


@pytest.mark.ci
def test_every_real_screenshot_passes(shared_data: Path) -> None:
    suffixes = {".png", ".jpg", ".jpeg", ".webp"}
    files = sorted(path for path in shared_data.rglob("*") if path.suffix.lower() in suffixes and path.is_file())
    if not files:
        pytest.skip(f"no screenshot in {shared_data}")
    for file in files:
        try:
            found = probe(file.read_bytes())
        except ValueError as error:
            pytest.fail(f"{file} {error}")
        shown = read_screenshot(file.parent, file.name, found.size, check=True)
        assert min(shown.size) >= 1 and (shown.path == file.resolve()) == found.ready


@every_row("kind", KINDS)
def test_a_model_sees_the_same_picture_whatever_file_it_is_in(root: Path, kind: Kind) -> None:
    """Turned, on white, 8 bits a channel, the size taken after the turn: in what is sent, in a training and in a viewer.

    It is resized once, after all else.
    """
    (root / "a").write_bytes(kind.data)
    height, width, _ = kind.pixels.shape
    shown = read_screenshot(root, "a", (width, height), check=True)
    assert (shown.data == kind.data, shown.path is not None) == (kind.ready, kind.ready)
    assert probe(shown.data)._replace(format="png") == Header("png", (width, height))
    with Image.open(io.BytesIO(shown.data)) as plain:
        assert plain.mode == "RGB" and plain.getexif().get(0x0112, 1) not in range(2, 9)
        assert np.array_equal(np.asarray(plain), kind.pixels)
    assert np.array_equal(np.asarray(read_picture(root, "a", (width, height))), kind.pixels)
    assert np.array_equal(np.asarray(picture(shown.data)), kind.pixels)
    assert header(root / "a").size == probe(kind.data).size == (width, height)
    expected = Image.fromarray(kind.pixels).resize((20, 17), Image.Resampling.BICUBIC)
    resized = read_screenshot(root, "a", (width, height), (20, 17))
    assert (resized.format, resized.size, resized.path) == ("png", (20, 17), None)
    assert picture(resized.data).tobytes() == expected.tobytes()
    assert read_picture(root, "a", (width, height), (20, 17)).tobytes() == expected.tobytes()
    small = read_picture(root, "a", (width, height), at_most=(8, 12))
    scale = min(8 / width, 12 / height)
    assert small.mode == "RGB" and abs(small.width - scale * width) <= 0.5 + 1e-9 and abs(small.height - scale * height) <= 1
    assert abs(np.asarray(small, float).mean() - kind.pixels.mean()) < 12


def test_without_a_fast_inflate_a_lost_last_row_is_found_all_the_same(tmp_path: Path) -> None:
    """Where zlib-ng has no wheel."""
    (tmp_path / "a.png").write_bytes(png_of(zlib.compress(bytes(61 * 29))))
    (tmp_path / "b.png").write_bytes(png_of(zlib.compress(bytes(61 * 30))))
    script = (
        "import sys; sys.modules['zlib_ng'] = None\n"
        "from pathlib import Path\n"
        "from guieval.data.screenshots import read_screenshot, zlib\n"
        "print(zlib.__name__, read_screenshot(Path(sys.argv[1]), 'b.png', (20, 30), check=True).size)\n"
        "read_screenshot(Path(sys.argv[1]), 'a.png', (20, 30), check=True)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout.strip() == "zlib (20, 30)" and "does not hold a whole image" in done.stderr
