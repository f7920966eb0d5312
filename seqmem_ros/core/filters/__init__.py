"""
The classical estimators that a learned one has to beat, with the same interface.

All of them take the measured time between samples, work on every joint at once and are
plain NumPy. The settings are those that won on the simulated training set (see
:mod:`seqmem_ros.offline.tune`).
"""

from seqmem_ros.core.filters.difference import Difference
from seqmem_ros.core.filters.filter import Filter
from seqmem_ros.core.filters.kalman import Kalman
from seqmem_ros.core.filters.least_squares import Cubic
from seqmem_ros.core.filters.least_squares import Line
from seqmem_ros.core.filters.least_squares import Quadratic
from seqmem_ros.core.filters.lowpass import LowPass
from seqmem_ros.core.filters.one_euro import OneEuro
from seqmem_ros.core.filters.savitzky_golay import SavitzkyGolay
from seqmem_ros.core.filters.super_twisting import SuperTwisting
from seqmem_ros.core.filters.tracking import Tracking

__all__ = [
    'Cubic',
    'Difference',
    'Filter',
    'Kalman',
    'Line',
    'LowPass',
    'OneEuro',
    'Quadratic',
    'SavitzkyGolay',
    'SuperTwisting',
    'Tracking',
]
