"""One run on many machines: episodes are handed out to Ray workers, and what they record is merged into one journal.

A worker is an ordinary :class:`guieval.running.runner.Runner` over the episodes it gets, with an engine of its own and its own
journal, the *shard*. The driver alone writes the run directory, so code that reads a run does not depend on how it was made.
Ray is imported where it is used: ``pip install 'guieval[cluster]'``.
"""

from guieval.running.cluster.driver import Cluster
from guieval.running.cluster.merging import Merger, absorb_shards, has_shards
from guieval.running.cluster.worker import Ended, HandOut, Job, Reading, Worker, dealt_first

__all__ = ["Cluster", "Ended", "HandOut", "Job", "Merger", "Reading", "Worker", "absorb_shards", "dealt_first", "has_shards"]
