"""The step viewer: a folder that shows every step of a run in a browser, without a server and without a network.

:func:`write_report` is all there is to call. :mod:`.reading` walks journals, :mod:`.step` says what the page is told of a
step, :mod:`.pictures` makes the images, :mod:`.writing` the folder; the page itself is ``page.html.jinja``, ``style.css`` and
the parts in ``script``, which are joined into one.
"""

from guieval.reports.viewer.pictures import Pictures
from guieval.reports.viewer.reading import Prompter, ShownRun, open_run, protocols_to_show
from guieval.reports.viewer.writing import Written, write_report

__all__ = ["Pictures", "Prompter", "ShownRun", "Written", "open_run", "protocols_to_show", "write_report"]
