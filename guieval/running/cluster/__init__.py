"""One run on many machines: its plan is divided into shards, Ray workers run them, and their records become one journal.

A shard is an ordinary run folder over a part of the plan, and a worker an ordinary :class:`guieval.running.runner.Runner` with
an engine of its own. The driver alone writes the run directory, so code that reads a run does not depend on how it was made.
Ray is imported where it is used: ``pip install 'guieval[cluster]'``.
"""

from guieval.running.cluster.driver import RayCluster
from guieval.running.cluster.merging import Merger, absorb_shards, has_shards
from guieval.running.cluster.worker import Ended, News, Worker

__all__ = ["Ended", "Merger", "News", "RayCluster", "Worker", "absorb_shards", "has_shards"]
