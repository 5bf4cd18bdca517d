"""A scorer with the signature that a training framework asks for: one module a framework, and none of them imports it.

Every framework carries a step beside its prompt in a column, or as ground truth, named ``task``: the text of
``StepTaskModel.model_dump_json()``. A framework that loads a function from a file finds one that takes the scorer's names as
keyword arguments; one that is given a function gets it from ``reward_function(scorer)``.
"""
