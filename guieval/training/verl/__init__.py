"""verl (0.9): the same semi-online RL and GRPO for several nodes, as a plug-in that verl finds by itself (extra ``verl``).

:mod:`.settings`, :mod:`.records` and :mod:`.rows` need nothing that the base install lacks; :mod:`.loop`, :mod:`.sampler` and
:mod:`.trainer` are subclasses of verl's classes, and :mod:`.plugin` is the entry point by which verl loads them.

Run on CPUs up to the rollouts, the replay buffer and the advantages. Not run, for want of a GPU: verl's servers, the update of
the weights and a training from end to end (docs/verl.md says which parts).
"""
