"""Names of keys, as Chromium writes them."""

from __future__ import annotations

import re

_KEYS = {
    **dict.fromkeys(("ctrl", "control", "ctrlleft", "ctrlright"), "Control"),
    **dict.fromkeys(("shift", "shiftleft", "shiftright"), "Shift"),
    **dict.fromkeys(("alt", "option", "altleft", "altright"), "Alt"),
    **dict.fromkeys(("meta", "cmd", "command", "win", "super"), "Meta"),
    **dict.fromkeys(("enter", "return", "kpenter"), "Enter"),
    **dict.fromkeys(("esc", "escape"), "Escape"),
    **dict.fromkeys(("delete", "del"), "Delete"),
    **dict.fromkeys(("pageup", "pgup"), "PageUp"),
    **dict.fromkeys(("pagedown", "pgdn"), "PageDown"),
    **{f"{arrow}{side}": f"Arrow{side.capitalize()}" for side in ("up", "down", "left", "right") for arrow in ("", "arrow")},
    **{
        "tab": "Tab",
        "backspace": "Backspace",
        "home": "Home",
        "end": "End",
        "insert": "Insert",
        "space": "Space",
        "spacebar": "Space",
    },
    **{"plus": "+", "minus": "-"},
}


def key_name(key: str) -> str | None:
    """Chromium's name of a key as pyautogui or xdotool write it, e.g. ``ctrl``, ``Return`` or ``a``; ``None`` for another."""
    if len(key) == 1:
        return key if key.isprintable() else None
    plain = key.strip().lower().replace("_", "").replace(" ", "")
    if re.fullmatch(r"f([1-9]|1[0-2])", plain):
        return plain.upper()
    return _KEYS.get(plain)
