"""Computes the package list, so that a new plug-in file or folder is never left out; all else is in pyproject.toml."""

from setuptools import find_namespace_packages, setup

FOLDERS = ("benchmarks", "model_adapters", "configs")

setup(
    packages=find_namespace_packages(include=["guieval", "guieval.*"])
    + [f"guieval.{name}" for folder in FOLDERS for name in find_namespace_packages(include=[folder, f"{folder}.*"])],
    package_dir={f"guieval.{folder}": folder for folder in FOLDERS},
)
