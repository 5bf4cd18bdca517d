"""Builds the documentation site: ``make docs``, or ``python docs/site/build.py``; with ``VERSION=NAME`` one of several.

The README as the start page, the pages and notebooks of ``docs/``, and the pages that :mod:`reference` writes are put into one
folder, from which Zensical makes the site. In ``search`` is iframe-worker 1.0.4 (MIT), with which the search works in pages
opened from a disk.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import language_models
from reference import navigation, pages

from guieval.data.shipped import __version__

REPOSITORY = Path(__file__).parents[2]
ROLES = "docs/site/roles.py"
"""Named in mkdocs.yml from here, looked for from where the site is built."""


def build(out: Path, *, selector: bool = False) -> Path:
    """Build the site below ``out``, and return its first page. A broken link or an unknown name in the API ends it.

    With a ``selector`` its pages list the other versions that :func:`add_version` put next to it.
    """
    import yaml

    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(REPOSITORY / "docs", out / "pages", ignore=shutil.ignore_patterns("site", "__pycache__"))
    (out / "pages" / "index.md").write_text(start_page(), encoding="utf-8")
    for address, text in pages():
        page = out / "pages" / "reference" / f"{address}.md"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text + "\n", encoding="utf-8")
    shutil.copytree(REPOSITORY / "docs" / "site" / "search", out / "pages" / "search")
    for notebook in (out / "pages" / "notebooks").glob("*.ipynb"):
        write_notebook(notebook)
    settings = (REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8").replace(ROLES, str(REPOSITORY / ROLES))
    settings = settings.replace("extra:\n", "extra:\n  version: {provider: mike}\n") if selector else settings
    settings = f"copyright: guieval {__version__}\n{settings}{written(navigation())}"
    (out / "mkdocs.yml").write_text(settings, encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", str(out / "mkdocs.yml")]
    subprocess.run(command, cwd=REPOSITORY, check=True)
    language_models.write(out / "pages", out / "site", yaml.safe_load(settings), __version__)
    return out / "site" / "index.html"


def add_version(site: Path, folder: Path, name: str) -> Path:
    """Put a site into ``folder/name``, the list of all versions there into ``versions.json``; return the first page.

    The folder's own first page leads to the version that was added last. The list is in the form of mike, which the selector on
    the pages reads.
    """
    if not re.fullmatch(r"\w[\w.+-]*", name):
        raise SystemExit(f"VERSION is {name!r}: expected letters, digits, dots and dashes, as in 0.1.0")
    shutil.rmtree(folder / name, ignore_errors=True)
    shutil.copytree(site, folder / name)
    listed = folder / "versions.json"
    before = json.loads(listed.read_text(encoding="utf-8")) if listed.is_file() else []
    versions = [{"version": name, "title": name, "aliases": []}, *(each for each in before if each["version"] != name)]
    listed.write_text(json.dumps(versions, indent=2) + "\n", encoding="utf-8")
    items = "".join(f'<li><a href="{each["version"]}/index.html">{each["title"]}</a></li>' for each in versions)
    head = '<!doctype html><meta charset="utf-8"><title>guieval</title>'
    head += f'<meta http-equiv="refresh" content="0; url={name}/index.html">'
    (folder / "index.html").write_text(f"{head}<ul>{items}</ul>\n", encoding="utf-8")
    return folder / "index.html"


def start_page() -> str:
    """The README, with its links from the folder of the pages."""
    return (REPOSITORY / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")


def write_notebook(notebook: Path) -> None:
    """Put a notebook's page beside it, with the outputs that are stored in it."""
    from nbconvert import MarkdownExporter
    from nbconvert.writers import FilesWriter

    text, resources = MarkdownExporter().from_filename(
        str(notebook), {"output_files_dir": f"{notebook.stem}_files", "unique_key": notebook.stem}
    )
    FilesWriter(build_directory=str(notebook.parent)).write(text, resources, notebook_name=notebook.stem)
    notebook.unlink()


def written(navigation: dict[str, object]) -> str:
    """One more entry of ``nav``, the last key of mkdocs.yml."""
    import yaml

    text = yaml.safe_dump([navigation], sort_keys=False, width=1000)
    return "".join(f"  {line}\n" for line in text.splitlines())


if __name__ == "__main__":
    named = sys.argv[1:]
    page = build(REPOSITORY / "build" / "site", selector=bool(named))
    print(f"open {add_version(page.parent, REPOSITORY / 'build' / 'docs', named[0]) if named else page}")
