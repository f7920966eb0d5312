"""What every estimator offers, a trained network and a classical filter alike."""

from typing import Any
from typing import Protocol

import numpy as np

from seqmem_ros.core.window import JointWindows

# Six or seven axes and a gripper, the common arm, fit without a second compilation.
SMALLEST_CAPACITY = 8


class Estimator(Protocol):
    """
    From the windows of all joints to one output a row, with memory in between.

    An estimator holds no memory itself: ``step`` takes it and returns it, so that one loaded
    model serves any number of streams. A row whose ``windows.count`` is 1 has just been
    started and its memory is taken as zero, whatever ``state`` holds: this is the only reset
    there is.

    :ivar name: short name for tables and logs
    :ivar task: ``'velocity'`` or ``'label'``
    :ivar labels: names of the classes, empty for velocity
    :ivar joints: joint names in the order that the model expects, empty if any joint will do
    :ivar per_joint: one row of output a joint; False: one row for the whole arm
    :ivar window: samples that a joint needs before its estimate is published
    :ivar fields: fields of the message that must be there, ``'position'`` at least
    :ivar source: where it comes from: path of the weights file, or ``'filter'``
    :ivar digest: first 12 hex digits of the SHA-256 of the weights file, empty for a filter
    :ivar compile_count: programs compiled so far, 0 for a filter
    """

    name: str
    task: str
    labels: tuple[str, ...]
    joints: tuple[str, ...]
    per_joint: bool
    window: int
    fields: tuple[str, ...]
    source: str
    digest: str
    compile_count: int

    def init_state(self, capacity: int) -> Any:
        """
        Make the memory of a stream that has seen nothing.

        :param capacity: number of rows
        :returns: memory; every array in it has ``capacity`` rows
        """

    def step(self, windows: JointWindows, advance: np.ndarray, state: Any) -> tuple:
        """
        Take one new sample of some joints.

        :param windows: windows that already hold the sample
        :param advance: rows that got a sample, bool, shape (capacity,); the memory of the
            others stays as it is
        :param state: memory before the sample
        :returns: outputs, shape (capacity,) in rad/s or (capacity, n_labels) as
            probabilities, float64, meaningful where ``advance``, or (1, n_labels) if not
            ``per_joint``; and the memory after the sample
        """


def capacity_for(n_joints: int, estimator: Estimator) -> int:
    """
    Round up to a power of two, so that a few late joints do not compile again and again.

    :param n_joints: number of joints
    :param estimator: has a fixed number of rows if it is over named joints
    :returns: number of rows
    """
    if estimator.joints:
        return len(estimator.joints)
    return max(SMALLEST_CAPACITY, 1 << (n_joints - 1).bit_length() if n_joints else 0)
