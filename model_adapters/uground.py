"""UGround-V1 (Qwen2-VL based): a point ``(x, y)`` in thousandths of the screen.

Source: OSU-NLP-Group/UGround@3a9b9f2, ``grounding/uground_qwen2vl_serve.py`` (prompt of the server's mode, which the authors'
numbers are from; division by 1000). The first UGround, which is LLaVA based, has another format and no server.
"""

from __future__ import annotations

from guieval.frames import PER_1000
from guieval.models import UNBOUND, Family

from ._grounder import Grounder


class UGround(Grounder):
    """Adapter of UGround-V1. Options: image limits (its places are relative, so by default files are sent as they are)."""

    user = "uground"
    query = "description"
    pixels = 1, UNBOUND
    fixed_frame = PER_1000
    family = Family(2024, ("grounding",), reader="makers")
    source = frame_source = "github.com/OSU-NLP-Group/UGround@3a9b9f2 grounding/uground_qwen2vl_serve.py"
