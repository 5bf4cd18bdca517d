"""WebArena-Verified: its own package judges what an agent left behind; guieval counts."""
