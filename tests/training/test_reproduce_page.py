"""The launcher's part of the commands of docs/reproduce.md, in accelerate's own parser."""

from __future__ import annotations

import shlex

import pytest

pytest.importorskip("accelerate")

from accelerate.commands.launch import launch_command_parser

from tests.perf.test_reproduce import commands


def test_accelerate_takes_its_part_of_every_command() -> None:
    launched = [shlex.split(command)[2:] for command in commands() if command.startswith("accelerate")]
    assert len(launched) > 50
    for words in launched:
        given = launch_command_parser().parse_args(words)
        assert (given.training_script, given.module) == ("guieval", True)
        assert given.num_processes == 8 * (given.num_machines or 1)
        assert given.training_script_args[0] == "train"
    with pytest.raises(SystemExit):
        launch_command_parser().parse_args(["--num_machine_s", "4", "-m", "guieval", "train"])
