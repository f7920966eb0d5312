"""
Whole vectors out of messages that carry some of a model's joints each.

A model over named joints takes all of them in one step. Each value enters its memory once: a
vector is whole when every joint has a new value and none is older than allowed against the
newest, so the slowest publisher sets the pace.
"""

from collections.abc import Sequence

import numpy as np

from seqmem_ros.core.accepted import Accepted
from seqmem_ros.core.dropped import Dropped
from seqmem_ros.core.dropped import Waiting
from seqmem_ros.core.joint_map import missing_joints
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.timing import nanoseconds

MEASURED = ('received', 'position', 'velocity', 'effort')


class VectorMerge:
    """
    Collects the newest values of a model's joints until they are a whole vector.

    :param joints: the joints of the model, one row each
    :param options: uses ``max_merge_age_s``
    :ivar values: by name, shape (J,): ``received`` and ``position`` (without wraps) in rad,
        ``velocity`` and ``effort`` where the model reads them
    :ivar stamp_ns: stamp of each value in ns, shape (J,)
    :ivar new: joints with a value that no step has taken, bool, shape (J,)
    """

    def __init__(self, joints: Sequence[str], options: StreamOptions) -> None:
        self._joints = tuple(joints)
        self.values = {name: np.zeros(len(joints)) for name in MEASURED}
        self.stamp_ns = np.zeros(len(joints), dtype=np.int64)
        self.new = np.zeros(len(joints), dtype=bool)
        self._since_ns: int | None = None
        self._whole_ns: int | None = None
        self.use(options)

    def use(self, options: StreamOptions) -> None:
        """
        Take another limit; values that have been collected stay.

        :param options: see the class
        """
        self._max_age_ns = nanoseconds(options.max_merge_age_s)

    def clear(self, since_ns: int | None = None) -> None:
        """
        Forget what has been collected.

        :param since_ns: stamp of the last whole vector in ns, None if there is none to go on from
        """
        self.new[:] = False
        self._since_ns = self._whole_ns = since_ns

    def whole(self, part: Accepted) -> Accepted:
        """
        Take what was let through of one message.

        :param part: values of some of the joints, or of all
        :returns: values of all joints, each with its stamp where they are of several messages
        :raises Waiting: see :meth:`add`
        :raises Dropped: see :meth:`add`
        """
        if len(part.rows) == len(self._joints):
            return part
        fields = {'received': part.received, 'position': part.position, **part.measured}
        self.add(part.rows, part.stamp_ns, **fields)
        received, position, *measured = (self.values[name].copy() for name in fields)
        return Accepted(
            np.arange(len(self._joints)), self._joints, self.stamp_ns.copy(), received, position,
            dict(zip(part.measured, measured)),
        )  # fmt: skip

    def add(self, rows: np.ndarray, stamp_ns: int, **values: np.ndarray) -> None:
        """
        Take the values of one message.

        :param rows: rows of its joints, shape (n,)
        :param stamp_ns: its stamp in ns
        :param values: see the class, shape (n,)
        :raises Waiting: if joints lack that may still come
        :raises Dropped: if joints have been lacking for longer than a value may wait, or a
            vector of this very stamp has been made of older values
        """
        if stamp_ns == self._whole_ns:
            # Kept, it would be paired with the others' next values from now on.
            raise Dropped('drop_late', f'the vector of stamp {stamp_ns} ns was made without it')
        for name, value in values.items():
            self.values[name][rows] = value
        self.stamp_ns[rows] = stamp_ns
        self.new[rows] = True
        newest_ns = int(self.stamp_ns[self.new].max())
        if self._since_ns is None:
            self._since_ns = stamp_ns
        lacking = ~self.new | (newest_ns - self.stamp_ns > self._max_age_ns)
        if not lacking.any():
            return
        if newest_ns - self._since_ns <= self._max_age_ns:
            raise Waiting
        raise missing_joints(self._joints, [self._joints[k] for k in np.flatnonzero(lacking)])
