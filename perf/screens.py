"""Made-up screenshots of a phone's size, for measuring what work on pictures costs."""

from __future__ import annotations

import io
import random

from PIL import Image, ImageDraw, ImageFilter, ImageFont

SIZE = (1080, 2400)


def picture(draw: random.Random) -> bytes:
    """One screen-like PNG: a gradient header, rows with text and discs, patches of blurred noise."""
    image = Image.new("RGB", SIZE, (draw.randint(235, 255),) * 3)
    canvas = ImageDraw.Draw(image)
    tint = [draw.randint(0, 255) for _ in range(3)]
    for y in range(260):
        canvas.line((0, y, SIZE[0], y), fill=tuple(min(255, value + y // 3) for value in tint))
    font = ImageFont.load_default(38)
    for row in range(300, 2300, 150):
        canvas.ellipse((40, row, 140, row + 100), fill=tuple(draw.randint(0, 255) for _ in range(3)))
        words = " ".join("".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(2, 9))) for _ in range(6))
        canvas.text((170, row + 20), words, fill=(40, 40, 40), font=font)
    for _ in range(2):
        side = draw.randint(230, 330)
        noise = Image.frombytes("RGB", (side, side), draw.randbytes(side * side * 3)).filter(ImageFilter.GaussianBlur(1.2))
        image.paste(noise, (draw.randint(0, SIZE[0] - side), draw.randint(300, SIZE[1] - side)))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def blank(draw: random.Random) -> bytes:
    """One PNG of a plain colour: for what is not about the work that pictures make."""
    buffer = io.BytesIO()
    Image.new("RGB", SIZE, (draw.randint(0, 255),) * 3).save(buffer, "PNG")
    return buffer.getvalue()
