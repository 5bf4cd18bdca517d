"""What a run tells while it goes and what it cost: rates, tokens and prices, and other programs that want to know.

Nothing here decides what a run does or what its figures are; a run without any of it gives the same results.
"""
