"""The runner: answers every step of a resolved run in one directory, asynchronously and without a barrier."""

from guieval.running.runner.runner import Runner

__all__ = ["Runner"]
