"""Sequence models with memory for the joint states of a robot arm."""

__version__ = '0.1.0'
