"""Tables of metrics as data, and their writers: terminal, Markdown, CSV, JSON, LaTeX and HTML.

A command builds :class:`Table` values and never lays out text itself. Metrics are :class:`Number` cells, which keep their full
precision, interval and n for CSV and JSON and know how they are rounded for people.
"""
