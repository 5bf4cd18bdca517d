"""Judges of trajectories: models and rules that say whether a task is done, and how far they can be believed.

A judge is a file of ``configs/judges`` or a rule (``judge.py``). It judges the tasks of a run or the trajectories of a data set
with human labels (``cases.py``, ``datasets.py``); its verdicts are lines of files next to those, which are never changed
(``asking.py``).
``agreement.py`` compares them with the labels, and ``correction.py`` corrects the success rates that a judge gives.
"""
