"""How far a run is: what is counted, the view of a moment, and the displays: a terminal, a log, a notebook."""
