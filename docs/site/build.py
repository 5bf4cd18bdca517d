"""Builds the documentation site: ``make docs``, or ``python docs/site/build.py``.

The README as the start page, the pages and notebooks of ``docs/``, and the pages that :mod:`reference` writes are put into one
folder, from which Zensical makes the site. In ``search`` is iframe-worker 1.0.4 (MIT), with which the search works in pages
opened from a disk.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from reference import navigation, pages

REPOSITORY = Path(__file__).parents[2]
ROLES = "docs/site/roles.py"
"""Named in mkdocs.yml from here, looked for from where the site is built."""


def build(out: Path) -> Path:
    """Build the site below ``out``, and return its first page. A broken link or an unknown name in the API ends it."""
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
    (out / "mkdocs.yml").write_text(settings + written(navigation()), encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", str(out / "mkdocs.yml")]
    subprocess.run(command, cwd=REPOSITORY, check=True)
    return out / "site" / "index.html"


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
    print(f"open {build(REPOSITORY / 'build' / 'site')}")
