"""``make docs``: the site builds without a warning, its reference covers the code, and it needs no network and no server."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import guieval
from guieval.cli import COMMANDS
from guieval.registry import list_benchmarks
from guieval.settings import SETTINGS
from tests.browser.conftest import Opened
from tests.conftest import REPOSITORY

pytest.importorskip("zensical")
SITE = REPOSITORY / "docs" / "site"


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SITE / f"{name}.py")
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the site; the build ends with an error where a link is broken or the API lacks a name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SITE))
        yield module("build").build(tmp_path_factory.mktemp("site") / "out").parent


def test_there_is_a_page_for_everything(site: Path) -> None:
    pages = {str(path.relative_to(site)) for path in site.rglob("*.html")}
    assert {f"reference/commands/{name.replace(' ', '-')}.html" for name in COMMANDS} <= pages
    assert {f"reference/benchmarks/{name}.html" for name in list_benchmarks()} <= pages
    settings = (site / "reference" / "settings.html").read_text(encoding="utf-8")
    assert all(f"<code>{name}</code>" in settings for name in SETTINGS)
    names = (site / "reference" / "api" / "index.html").read_text(encoding="utf-8")
    assert all(f"<code>{name}</code>" in names for name in guieval.__all__ if not name.startswith("__"))
    notebooks = {f"notebooks/{path.stem}.html" for path in (REPOSITORY / "docs" / "notebooks").glob("*.ipynb")}
    assert notebooks and notebooks <= pages


def test_an_option_and_a_docstring_are_shown(site: Path) -> None:
    assert "--sample-set" in (site / "reference" / "commands" / "run.html").read_text(encoding="utf-8")
    evaluation = (site / "reference" / "api" / "evaluation.html").read_text(encoding="utf-8")
    assert "Judge <code>action</code> as the answer" in evaluation
    assert not re.search(r":(?:class|func|meth|mod|data|attr):", evaluation), "a role of Sphinx is left in the page"


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loads = re.compile(r"""<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)=["']?(https?:)?//[^>]*>""")
    for path in site.rglob("*.html"):
        found = loads.search(path.read_text(encoding="utf-8"))
        assert found is None or 'rel="canonical"' in found[0], f"{path.name} loads {found[0]}"


def test_the_search_needs_no_server(site: Path, tab: Opened) -> None:
    from playwright.sync_api import expect

    tab.page.goto((site / "concepts" / "modes.html").as_uri())
    expect(tab.page.get_by_role("button", name="Search")).to_be_visible()
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("denominator")
    expect(tab.page.get_by_text(re.compile(r"\d+ results"))).to_be_visible()
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_url("**/concepts/denominators.html*")


LINK = re.compile(r"^- \[[^]]+\]\(([^)]+)\)", re.MULTILINE)


def test_every_page_is_in_llms_txt_and_every_link_leads_to_a_file(site: Path) -> None:
    """A page that is missing there does not exist for a language model."""
    text = (site / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith(f"# guieval {guieval.__version__}\n\n> ") and "\n## How to: Run\n" in text
    links = LINK.findall(text)
    assert [link for link in links if not (site / link).is_file()] == [] and len(links) == len(set(links))
    pages = {str(path.relative_to(site).with_suffix("")) for path in site.rglob("*.html")} - {"404"}
    assert pages == {str(Path(link).with_suffix("")) for link in links}


def test_the_markdown_of_pages_is_next_to_their_html_and_has_the_same_links(site: Path) -> None:
    pages = [path for path in site.rglob("*.md") if not path.is_relative_to(site / "reference")]
    named = [(path, link) for path in pages for link in re.findall(r"\]\(([\w./-]+\.md)\)", path.read_text("utf-8"))]
    assert len(named) > 100 and [(path, link) for path, link in named if not (path.parent / link).is_file()] == []


def test_llms_full_has_the_pages_of_the_guide_whole(site: Path) -> None:
    whole = (site / "llms-full.txt").read_text(encoding="utf-8")
    for name in ("start/install.md", "concepts/verdicts.md", "assistants/assistants.md"):
        assert (site / name).read_text(encoding="utf-8").rstrip() in whole
    assert "reference/commands" not in re.findall(r"^<!-- (\S+) -->$", whole, re.MULTILINE) and len(whole) < 2_000_000


def test_several_versions_are_listed_the_newest_first(site: Path, tmp_path: Path) -> None:
    build = sys.modules["build"]
    for name in ("0.1.0", "0.2.0", "0.1.0"):
        first = build.add_version(site / "concepts", tmp_path, name)
    assert [each["version"] for each in json.loads((tmp_path / "versions.json").read_text("utf-8"))] == ["0.1.0", "0.2.0"]
    page = first.read_text("utf-8")
    assert "url=0.1.0/index.html" in page and all((tmp_path / name / "verdicts.html").is_file() for name in ("0.1.0", "0.2.0"))
    with pytest.raises(SystemExit, match="expected letters"):
        build.add_version(site, tmp_path, "../else")
    assert f"guieval {guieval.__version__}" in (site / "concepts" / "verdicts.html").read_text("utf-8")


def test_the_drawings_are_those_of_the_script(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    module("drawings").write(tmp_path)
    drawn = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.svg")}
    assert len(drawn) == 4
    for name, text in drawn.items():
        assert re.findall(r"<text.*?</text>", text, re.DOTALL) == re.findall(
            r"<text.*?</text>", (REPOSITORY / "docs" / "concepts" / name).read_text(encoding="utf-8"), re.DOTALL
        ), f"run docs/site/drawings.py: {name} is not the one in docs/concepts"
