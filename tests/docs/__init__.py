"""The documentation is carried out: every command and snippet on its pages."""
