"""Scorers with the signatures of training frameworks: one module per framework, which does not import it.

The step is in a column named ``task`` or in the ground truth of a row, as the text of ``StepTaskModel.model_dump_json()``. For
frameworks that load a function from a file, the function takes the scorer's names as keyword arguments; for the others
``reward_function(scorer)`` returns it.
"""
