"""Which steps and episodes to train on.

Everything reads what :mod:`guieval.running.runner` wrote or what a benchmark lists, and writes sample sets
(:mod:`guieval.data.sample_sets`) or lists of steps, for evaluation and training. No model runs and nothing is trained here.

Sources: UI-R1 paper (three-stage selection), GUIEvalKit paper (HyperTrack's nested subsets).
"""
