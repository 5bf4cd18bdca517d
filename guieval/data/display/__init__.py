"""Displays for notebooks: screenshots with the marks of the step viewer, and benchmarks and episodes as HTML."""
