"""Progress rates of a run, its tokens and costs, and experiment trackers.

None of this affects a run's results.
"""
