"""``guieval view``: runs in a browser, served from this machine to this machine.

:mod:`.app` decides who may ask and answers requests, :mod:`.library` finds runs, :mod:`.overview` and :mod:`.comparing` make
the tables of their pages, :mod:`.steps` and :mod:`.trajectories` make the parts of the report's pages when they are asked for.
Only notes are written (:mod:`guieval.reports.notes`).
"""
