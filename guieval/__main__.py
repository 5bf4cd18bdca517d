"""``python -m guieval``."""

from guieval.cli import main

main()
