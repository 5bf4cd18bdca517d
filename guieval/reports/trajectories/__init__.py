"""The report of an online run: a page that shows each trajectory as a film strip, without a server and without a network.

:mod:`.reading` reads a run's trajectories, :mod:`.writing` writes the folder. The page is ``page.html.jinja``, ``style.css``
and ``page.js``, with the colours and marks of :mod:`guieval.reports.viewer`.
"""
