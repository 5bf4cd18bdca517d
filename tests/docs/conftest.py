"""The browser in which the site is searched."""

from tests.browser.conftest import chromium, tab

__all__ = ["chromium", "tab"]
