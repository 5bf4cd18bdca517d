"""lmms-eval: tasks in YAML, which its ``--include_path`` takes, and the functions that they name.

A task's data are one row of settings (``NAME.json``), which :func:`guieval.plugins.lmms_tasks.functions.documents` turns into
the steps; the other settings are those of ``guieval.yaml`` and the variables ``GUIEVAL_...``, as in every run. This folder is
the value of ``--include_path``.
"""
