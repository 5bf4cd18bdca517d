"""How figures are shown. Nothing here computes a score: that is :mod:`guieval.metrics`."""

from guieval.reports.console import action_table, group_table, print_report, run_table, warning_lines

__all__ = ["action_table", "group_table", "print_report", "run_table", "warning_lines"]
