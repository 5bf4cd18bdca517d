"""guieval's protocols inside other harnesses: Inspect, lmms-eval, evalscope, verifiers, NeMo Gym.

A plug-in never scores: it hands a response to :class:`guieval.plugins.harness_steps.HarnessSteps`, which does with it what
``guieval run`` does. There is one module for each harness, and no other part of guieval imports it.
"""

OFFERS: dict[str, dict[str, str]] = {}
"""What is found by name (:mod:`guieval.wings`): nothing, since the harnesses find these modules."""
