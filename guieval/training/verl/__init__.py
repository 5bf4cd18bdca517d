"""verl (0.9): the same semi-online RL and GRPO for several nodes, as a plug-in that verl finds by itself (extra ``verl``).

:mod:`.settings`, :mod:`.records` and :mod:`.rows` need nothing that the base install lacks; :mod:`.loop`, :mod:`.sampler` and
:mod:`.trainer` are subclasses of verl's classes, and :mod:`.plugin` is the entry point by which verl loads them.
"""
