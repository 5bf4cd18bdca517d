"""Computes the package list and the description, and makes editable installs findable; all else is in pyproject.toml."""

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from setuptools import find_namespace_packages, setup
from setuptools.command.editable_wheel import editable_wheel

FOLDERS = ("benchmarks", "model_adapters", "configs")
FINDER_FIRST = 'import sys; sys.meta_path.sort(key=lambda f: not f.__module__.startswith("__editable___guieval_"))\n'


def description() -> str:
    """README.md as a package index shows it: without pictures and links of the repository, which lead nowhere there."""
    text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    text = re.sub(r"^!\[[^\]]*\]\((?!https:)[^)]*\)\n\n", "", text, flags=re.MULTILINE)
    return re.sub(r"\[([^\]]*)\]\((?!https:)[^)]*\)", r"\1", text)


class EditableWheel(editable_wheel):
    """Puts the import finder of an editable install first.

    Since packages are mapped from several folders, setuptools installs a finder, and appends it to ``sys.meta_path``. There
    Python's own finder comes before it: in the parent folder of a clone that is named ``guieval``, it takes the clone for a
    namespace package. The added file sorts after the one of setuptools, and Python reads them in that order.
    """

    def run(self):
        super().run()
        from wheel.wheelfile import WheelFile  # setuptools brings it along, and finds it only once it has run

        for path in Path(self.dist_dir).glob("guieval-*.whl"):
            with TemporaryDirectory() as folder:
                with ZipFile(path) as built:
                    built.extractall(folder)
                Path(folder, "guieval_finder_first.pth").write_text(FINDER_FIRST)
                path.unlink()
                with WheelFile(path, "w") as rewritten:
                    rewritten.write_files(folder)


setup(
    long_description=description(),
    long_description_content_type="text/markdown",
    packages=find_namespace_packages(include=["guieval", "guieval.*"])
    + [f"guieval.{name}" for folder in FOLDERS for name in find_namespace_packages(include=[folder, f"{folder}.*"])],
    package_dir={f"guieval.{folder}": folder for folder in FOLDERS},
    cmdclass={"editable_wheel": EditableWheel},
)
