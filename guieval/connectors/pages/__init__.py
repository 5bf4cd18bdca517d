"""Environments of web pages, which guieval opens in a browser of its own."""
