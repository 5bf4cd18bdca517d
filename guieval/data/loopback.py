"""The names under which a server on loopback may be asked: a page elsewhere that bound a name to this machine has it."""

from __future__ import annotations

import re

LOOPBACK_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?")
"""The ``Host`` of a request that was meant for this machine."""
