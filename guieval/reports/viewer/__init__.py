"""The step viewer: a folder that shows every step of a run in a browser, without a server and without a network.

Call :func:`write_report`. :mod:`.reading` reads journals, :mod:`.step` produces the page's data of a step, :mod:`.pictures`
the images, :mod:`.writing` all of it into a :mod:`.folder`. The page is ``page.html.jinja``; the styles, and the parts in
``script``, are joined into one file each.
"""

from guieval.reports.viewer.folder import Written
from guieval.reports.viewer.pictures import Pictures
from guieval.reports.viewer.reading import Prompter, ShownRun, protocols_to_show, shown_run
from guieval.reports.viewer.writing import write_report

__all__ = ["Pictures", "Prompter", "ShownRun", "Written", "protocols_to_show", "shown_run", "write_report"]
