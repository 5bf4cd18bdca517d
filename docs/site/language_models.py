"""The site for language models: ``llms.txt``, ``llms-full.txt``, and each page as Markdown next to its HTML (llmstxt.org)."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOT_WHOLE = ("reference/", "protocols.md", "labels.md", "models.md", "reproduce.md", "reproduced.md")
"""Pages that ``llms-full.txt`` leaves out: to look things up in, and ten times as long as all others."""
API = "reference/api/"
"""Pages that are made of docstrings while the site is built, so that their Markdown says nothing."""


def write(pages: Path, site: Path, settings: dict[str, Any], version: str) -> None:
    """Put the files into ``site``; ``pages`` are the sources of its pages, ``settings`` those of mkdocs.yml."""
    head = f"# {settings['site_name']} {version}\n\n> {settings['site_description']}\n"
    listed, whole = [head], [head]
    for section, names in sections(settings["nav"]):
        listed.append(f"\n## {section}\n\n")
        for name in names:
            text = (pages / name).read_text(encoding="utf-8")
            title, summary = heads(text)
            made_of_docstrings = name.startswith(API) and not name.endswith("index.md")
            address = f"{name.removesuffix('.md')}.html" if made_of_docstrings else name
            listed.append(f"- [{title}]({address}){f': {summary}' if summary else ''}\n")
            if not made_of_docstrings:
                shutil.copyfile(pages / name, site / name)
            if not name.startswith(NOT_WHOLE):
                whole.append(f"\n<!-- {name} -->\n{text.rstrip()}\n")
    (site / "llms.txt").write_text("".join(listed), encoding="utf-8")
    (site / "llms-full.txt").write_text("".join(whole), encoding="utf-8")


def sections(nav: list[Any]) -> Iterator[tuple[str, list[str]]]:
    """The sections of the navigation with their pages; a section inside of another is named after both."""
    for entry in nav:
        for title, inside in entry.items():
            own = [inside] if isinstance(inside, str) else []
            below = []
            for part in inside if isinstance(inside, list) else ():
                if isinstance(part, str):
                    own.append(part)
                    continue
                own += [page for page in part.values() if isinstance(page, str)]
                below += [{f"{title}: {name}": pages} for name, pages in part.items() if isinstance(pages, list)]
            if own:
                yield title, own
            yield from sections(below)


def heads(text: str) -> tuple[str, str]:
    """A page's title and the first sentence of its first paragraph, without links and emphasis; it may have none."""
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    below = text[title.end() :] if title else text
    paragraphs = (" ".join(part.split()) for part in below.split("\n\n") if re.match(r"[\w`*\[]", part))
    first = re.sub(r"\[([^\]]+)\]\([^)]+\)|\*\*", r"\1", next(paragraphs, ""))
    sentence = re.match(r".+?\.(?= |$)", first)
    return (title[1] if title else "guieval").replace("`", ""), (sentence[0] if sentence else first).rstrip(":")
