"""The step viewer: a folder that shows every step of a run in a browser, without a server and without a network.

Call :func:`write_report`. :mod:`.reading` reads journals, :mod:`.step` produces the page's data of a step, :mod:`.pictures`
the images, :mod:`.writing` all of it into a :mod:`.folder`. The page is ``page.html.jinja``; styles and scripts,
those of :mod:`guieval.reports.pages` first, are joined into one file each.
"""
