"""One run on many machines: its plan is divided into shards, Ray workers run them, and their records become one journal.

A shard is an ordinary run folder over a part of the plan, and a worker an ordinary :class:`guieval.running.runner.Runner` with
an engine of its own. The driver alone writes the run directory, so code that reads a run does not depend on how it was made.
Ray is imported when it is used: ``pip install 'guieval[cluster]'``.
"""

OFFERS = {"running": {"cluster": "guieval.cluster.driver:RayCluster", "shards": "guieval.cluster.merging:absorb_shards"}}
"""What is found by name (:mod:`guieval.wings`)."""
