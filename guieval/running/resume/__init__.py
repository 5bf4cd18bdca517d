"""Everything about continuing a run: what makes it the same run, what may have changed, what is answered, whom to trust."""
