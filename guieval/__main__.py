"""The ``guieval`` script and ``python -m guieval``: a Ctrl-C during the first imports ends with a sentence too."""

import os
import signal
from typing import Any, NoReturn


def _stop(*_: Any) -> NoReturn:
    os.write(2, b"guieval: stopped\n")
    os._exit(130)


def main() -> None:
    """Import the commands, and run the one that is named."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else it is ignored, e.g. by nohup
    if ours:
        signal.signal(signal.SIGINT, _stop)  # an exception inside an import may be printed, or end up as another one
    from guieval.cli import main as command_line

    if ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    command_line()


if __name__ == "__main__":
    main()
