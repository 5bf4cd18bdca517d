"""Tests of what coding agents use: the MCP server, the skills, and the instructions in the repository."""
