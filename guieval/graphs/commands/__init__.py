"""Commands about runs in graphs."""
