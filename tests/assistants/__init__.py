"""Tests of what coding agents use: the MCP server, the skills, and what a reader of the repository is told."""
