"""How figures are shown. Nothing here computes a score: that is :mod:`guieval.metrics`."""

from guieval.reports.console import Run, action_table, group_table, report_tables, run_table, warning_lines

__all__ = ["Run", "action_table", "group_table", "report_tables", "run_table", "warning_lines"]
