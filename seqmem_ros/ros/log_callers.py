"""
A log that does not look for its callers on the disk.

rclpy finds out which module each line of the log comes from. Python's ``inspect`` answers by
asking the disk where every module that is loaded really lies, thousands of questions beside JAX,
before the first line and again after each import. What it knows, it does not ask.
"""

import inspect
import sys

PACKAGES = ('rclpy', 'seqmem_ros')


def know_callers() -> None:
    """Tell ``inspect`` where the modules lie that a line of the log can come from."""
    # Public by its name, though not in the manual: without it, the first line just takes longer.
    known = getattr(inspect, 'modulesbyfile', {})
    for name, module in list(sys.modules.items()):
        path = getattr(module, '__file__', None)
        if path and name.partition('.')[0] in PACKAGES:
            known[path] = name
