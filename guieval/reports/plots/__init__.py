"""Pictures for a paper: each function takes plain values and returns a matplotlib figure, :func:`write` saves it.

matplotlib comes with the extra ``report`` and is imported when a picture is drawn. Metrics and intervals are defined in
:mod:`guieval.metrics`; shares are drawn in percent.
"""
