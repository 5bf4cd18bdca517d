"""Writes docs/reliability.md from the tests in this folder: ``python -m tests.faults.page``."""

from __future__ import annotations

from tests.conftest import REPOSITORY
from tests.faults.rows import tables

PAGE = REPOSITORY / "docs" / "reliability.md"

INTRODUCTION = """\
# Reliability

This page lists faults and what guieval does about them. Each row is a test: `tests/faults/` runs the `guieval` command
against a server, a disk or another process with this fault. The last column says what it checks; what is in `code` in
the third one is checked literally. The command `python -m tests.faults.page` writes this page from those tests.

These guarantees hold throughout:

- A step is one line of the journal, with a checksum
  (`tests/journal/test_journal.py::test_a_changed_character_is_noticed_wherever_it_stands`). The operating system has it as
  soon as the step is answered, so no kill or crash of guieval loses it
  (`tests/running/resume/test_resume.py::test_kills_lose_and_double_nothing`). It is on the disk at most a second later, or
  after a hundred steps (`tests/journal/test_journal.py::test_records_reach_the_disk_by_time_and_by_number`): a machine that
  loses power can lose that second (`tests/faults/test_disks.py::test_a_loss_of_power_takes_a_second_of_answers`).
- A step of an online run is on the disk, with its screenshot, before its action is carried out
  (`tests/faults/test_disks.py::test_a_loss_of_power_takes_no_step_of_a_task`). Where a step in the middle of an attempt is
  lost all the same, the task is begun again
  (`tests/online/test_runs.py::test_what_a_loss_of_power_leaves_never_counts_as_a_half_trajectory`).
- `guieval run --resume` runs no answered step again (the kills above). If a step is in the journal twice, the last answer
  counts (`tests/running/runner/test_hostile.py::test_doubled_lines_count_once_and_the_last_finished_one_counts`).
- A step that could not be measured is an *infrastructure failure*, counted apart: it is not a wrong answer. Offline and
  semi-online it stays in the denominators (`tests/faults/test_servers.py::test_a_lasting_failure_is_no_wrong_answer`); a
  task of an online run is in none until it is judged
  (`tests/online/test_runs.py::test_every_list_shows_success_over_the_judged_tasks`).
- A run that was disturbed and resumed has the figures of a run that was not (the kills above, and every row that says so),
  also on a Ray cluster that loses a worker, a node or its driver
  (`tests/cluster/test_ray.py::test_a_killed_worker_loses_and_doubles_nothing`,
  `tests/cluster/test_ray.py::test_a_killed_node_loses_and_doubles_nothing`,
  `tests/cluster/test_ray.py::test_a_run_whose_driver_was_killed_goes_on`).
- `guieval data prepare`, `import` and `export` that were killed make, with the same command again, what undisturbed ones make
  (`tests/cli/test_cli_prepare.py::test_the_same_command_again_makes_the_same`). A training that was killed goes on,
  with `--resume`, from its last complete checkpoint and comes to the same weights, log and evaluations, on a CPU bit for
  bit (`tests/training/test_kills.py::test_kills_at_any_moment_lose_and_double_nothing`).

"As usual" means that the result is printed and the exit code is 0.
"""


def page() -> str:
    """The whole page as text."""
    parts = [INTRODUCTION]
    for section, described in tables().items():
        parts.append(f"\n## {section}\n\n| fault | what guieval does | what the user sees | what is checked |\n")
        parts.append("| --- | --- | --- | --- |\n")
        for row, checked in described:
            ending = f"; exit code {row.code}" if row.code else ""
            cells = (row.fault, row.does, row.sees + ending, checked)
            parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
