"""What a notebook shows: screenshots with the marks of the step viewer, and benchmarks and episodes as HTML."""
