"""What the filters have in common."""

from typing import Any

import numpy as np

from seqmem_ros.core.window import JointWindows


class Filter:
    """Velocity of any joint, from positions alone, as an estimator without weights."""

    task = 'velocity'
    labels: tuple[str, ...] = ()
    joints: tuple[str, ...] = ()
    per_joint = True
    window = 5
    fields = ('position',)
    source = 'filter'
    digest = ''
    compile_count = 0
    name = ''

    def init_state(self, capacity: int) -> dict[str, np.ndarray]:
        """Make an empty memory; see :class:`~seqmem_ros.core.estimator.Estimator`."""
        return {}

    def step(self, windows: JointWindows, advance: np.ndarray, state: Any) -> tuple:
        """Take one new sample; see :class:`~seqmem_ros.core.estimator.Estimator`."""
        raise NotImplementedError


def newest_difference(windows: JointWindows) -> np.ndarray:
    """
    Differentiate the last two samples.

    :param windows: of R rows
    :returns: rad/s, shape (R,); 0 where there is only one sample
    """
    elapsed_s = windows.elapsed_s()[:, 0]
    difference = windows.differences()[:, 0]
    return np.divide(difference, elapsed_s, out=np.zeros_like(difference), where=elapsed_s > 0)


def kept(
    advance: np.ndarray, new: dict[str, np.ndarray], old: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """
    Leave the memory of rows without a new sample as it was.

    :param advance: bool, shape (R,)
    :param new: memory after the sample, R rows each
    :param old: memory before it
    :returns: the memory to go on with
    """
    return {
        name: np.where(advance.reshape((-1,) + (1,) * (value.ndim - 1)), value, old[name])
        for name, value in new.items()
    }


def positive(name: str, value: float, unit: str) -> float:
    """
    Refuse a setting that no filter can work with.

    :param name: of the setting
    :param value: to be checked
    :param unit: of the value
    :returns: the value
    :raises ValueError: if it is not a finite number above 0
    """
    if not 0 < value < float('inf'):
        raise ValueError(f'{name}: expected a number above 0 {unit}, got {value}')
    return value
