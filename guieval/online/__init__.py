"""Environments to act in: the contract, the simulated phone, and web pages in a real browser."""

from guieval.online.contract import ABCDevice, ABCEnvironment, EnvironmentTask, Observation
from guieval.steps import Score

__all__ = ["ABCDevice", "ABCEnvironment", "EnvironmentTask", "Observation", "Score"]
