"""Limits of a resize are found from counts of tokens, whatever text the prompts hold; other counts are explained by none."""

from __future__ import annotations

from guieval.frames import Size, smart_resize
from guieval.models.image_tokens import ANY, FACTORS, fitted
from tests.rows import every_row

SIZES: tuple[Size, ...] = ((168, 224), (360, 800), (700, 700), (2520, 360), (1080, 2400), (1600, 2560), (3840, 2160))


def counted(size: Size, factor: int, least: int, most: int, text: int) -> int:
    width, height = smart_resize(size, factor, least, most)
    return width * height // factor**2 + text


@every_row(
    ("factor", "least", "most"),
    [
        (28, 3136, 12_845_056),
        (28, 78_400, 602_112),
        (28, 500_000, 1_003_520),  # which no screen of usual size is within
        (32, 4096, 2_000_000),
        (32, 1, 100_352),
    ],
)
def test_the_limits_are_bounded_and_give_every_size(factor: int, least: int, most: int) -> None:
    for text in (0, -551, 1200):
        found = fitted([(size, counted(size, factor, least, most, text)) for size in SIZES], factor)
        assert found is not None and found.least[0] <= least < found.least[1]
        assert found.most[0] <= most < found.most[1]
        assert all(found.frame.resized(size) == smart_resize(size, factor, least, most) for size in SIZES)
        [other] = {*FACTORS} - {factor}
        assert fitted([(size, counted(size, factor, least, most, text)) for size in SIZES], other) is None


def test_counts_of_another_kind_have_no_limits() -> None:
    tiles = [(size, 256 * (1 + size[0] // 448 * (size[1] // 448))) for size in SIZES]
    lost = [(size, counted(size, 28, 1, ANY, 7 * (size == (1080, 2400)))) for size in SIZES]
    assert [fitted(counts, factor) for counts in (tiles, lost) for factor in FACTORS] == [None] * 4
