"""The estimate that needs no setting."""

from typing import Any

import numpy as np

from seqmem_ros.core.filters.filter import Filter
from seqmem_ros.core.filters.filter import newest_difference
from seqmem_ros.core.window import JointWindows


class Difference(Filter):
    r"""
    The two-point backward difference.

    .. math:: v_t = (p_t - p_{t-1}) / T_1

    Its noise gain is :math:`\sqrt{2}/T` and its lag half a sample.
    """

    name = 'difference'

    def step(self, windows: JointWindows, advance: np.ndarray, state: Any) -> tuple:
        """Take one new sample; see :class:`~seqmem_ros.core.estimator.Estimator`."""
        return newest_difference(windows), state
