"""Reasoning-execution consistency: does an execution do what its reasoning announces? (GUIEvalKit paper, section 5.4.1)"""
