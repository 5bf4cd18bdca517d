"""Semi-online RL and GRPO on several nodes with verl 0.9, as a plug-in that verl discovers (extra ``verl``).

:mod:`.settings`, :mod:`.records` and :mod:`.rows` need only the base install; :mod:`.loop`, :mod:`.sampler` and
:mod:`.trainer` are subclasses of verl's classes, and :mod:`.plugin` is the entry point by which verl loads them.

Rollouts, replay buffer and advantages were run on CPUs. verl's servers, the update of the weights and a whole training need a
GPU and were not run (docs/training/verl.md lists the parts).
"""
