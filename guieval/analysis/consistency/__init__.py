"""Reasoning-execution consistency: does an execution do what its reasoning says? (GUIEvalKit paper, section 5.4.1)"""
