"""What a release brings along: extras, citation, changelog, workflows, issue forms, the image."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import yaml
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import guieval
from tests.conftest import REPOSITORY
from tests.rows import every_row
from tests.waiting import until

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def extras(requirement: str) -> set[str]:
    found = re.search(r"\[([\w,-]+)\]", requirement)
    assert found is not None
    return set(found[1].split(","))


def test_the_extra_all_holds_every_extra_that_resolves_with_the_others() -> None:
    optional = PROJECT["optional-dependencies"]
    apart = {
        "webarena-verified",  # its pydantic is older than the one that google-genai needs
        "evalscope",  # allows datasets up to 4.8.4 only
        "verifiers",  # needs openai below 3
        "lmms-eval",  # resolves, and has 150 packages that nothing else needs
    }
    assert extras(optional["all"][0]) == set(optional) - {"all", "dev", "dev-all", *apart}


LOCK = re.compile(r"^([\w.-]+)==(\S+?)(?: ; (.+?))? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)


def places() -> Iterator[dict[str, str]]:
    """What markers say of every Python that the package allows, on Linux and on macOS."""
    for system, platform, machine in (("linux", "Linux", "x86_64"), ("darwin", "Darwin", "arm64")):
        for version in ("3.11", "3.12", "3.13", "3.14"):
            full = {"python_version": version, "python_full_version": f"{version}.1"}
            yield {"sys_platform": system, "platform_system": platform, "platform_machine": machine, **full}


def outside_of_ranges(lock: str, wanted: Sequence[str]) -> list[str]:
    """The requirements that the pins of a lock file do not satisfy in some place."""
    pins = [(canonicalize_name(name), version, marker) for name, version, marker, _ in LOCK.findall(lock)]
    found = set()
    for place in places():
        here = {name: version for name, version, marker in pins if not marker or Marker(marker).evaluate(place)}
        for each in map(Requirement, wanted):
            if each.marker is None or each.marker.evaluate(place):
                version = here.get(canonicalize_name(each.name))
                if version is None or not each.specifier.contains(version):
                    found.add(f"{each} ({version or 'missing'}), Python {place['python_version']}")
    return sorted(found)


def test_the_lock_file_of_the_demo_satisfies_what_the_package_requires() -> None:
    """Else `make lock` was forgotten after a change of pyproject.toml."""
    lock = (ROOT / "requirements" / "demo.txt").read_text("utf-8")
    assert lock.count("==") == len(LOCK.findall(lock)) + len(re.findall(r" ; .*==", lock)), "a pin without hashes"
    optional = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *optional["baseline"], *optional["report"]]
    assert outside_of_ranges(lock, wanted) == [], "run `make lock`"
    assert [each[:14] for each in outside_of_ranges(lock, ["numpy>=99"])] == ["numpy>=99 (2.4"] + ["numpy>=99 (2.5"] * 3


def test_citation_and_changelog_know_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == PROJECT["version"] == guieval.__version__
    assert citation["license"] == PROJECT["license"] and citation["cff-version"] == "1.2.0"
    assert "## Unreleased" in (ROOT / "CHANGELOG.md").read_text("utf-8")


@every_row("file", WORKFLOWS, ids=lambda file: file.name)
def test_workflows_run_targets_that_the_makefile_has(file: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    jobs = yaml.safe_load(file.read_text("utf-8"))["jobs"].values()
    run = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    commands = [command for command in run if not command.startswith("sudo rm ")]
    named = {word for command in commands for word in command.removeprefix("make ").split()} - {"${{", "matrix.target", "}}"}
    named |= {target for job in jobs for target in job.get("strategy", {}).get("matrix", {}).get("target", [])}
    assert commands and all(command.startswith("make ") for command in commands)
    assert named <= targets


def test_the_workflow_tests_every_python_that_the_package_allows() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text("utf-8"))
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]
    assert f">={matrix['python'][0]}" == PROJECT["requires-python"] and matrix["python"][-1] == "3.14"
    named = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", each) for each in PROJECT["classifiers"]]
    assert [each[1] for each in named if each] == matrix["python"]


@every_row("file", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda file: file.name)
def test_issue_forms_have_what_a_form_needs(file: Path) -> None:
    form = yaml.safe_load(file.read_text("utf-8"))
    assert {"name", "description", "body"} <= form.keys()
    assert all(field["type"] in {"input", "textarea"} and field["attributes"]["label"] for field in form["body"])


def test_the_image_installs_extras_that_there_are() -> None:
    assert extras((ROOT / "Dockerfile").read_text("utf-8").split("pip install")[1]) <= PROJECT["optional-dependencies"].keys()


TESTS = """
import os, signal, subprocess, sys
from tests.programs import started
SERVER = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
PROGRAM = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True).wait()"
with started([sys.executable, "-c", PROGRAM, SERVER], stdout=subprocess.PIPE) as program:
    print(program.pid, program.stdout.readline(), flush=True)
    {ending}
"""


def left_by(ending: str) -> list[int]:
    """Run such tests; the process ids of the program that they started and of its server, in a session of its own."""
    words = [sys.executable, "-c", TESTS.format(ending=ending)]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True)
    return [int(number) for number in done.stdout.split()]


def test_a_program_and_its_server_end_with_the_tests_that_are_killed() -> None:
    program, server = left_by("os.kill(os.getpid(), signal.SIGKILL)")
    until(lambda: not psutil.pid_exists(program) and not psutil.pid_exists(server), "their end")


def test_a_program_ends_with_its_block() -> None:
    program, server = left_by("pass")
    assert not psutil.pid_exists(program)
    until(lambda: not psutil.pid_exists(server), "the end of the server, with the tests")
