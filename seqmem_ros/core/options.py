"""The rules of a stream that a user may set; every field is a parameter of the node, too."""

from dataclasses import dataclass

from seqmem_ros.core.errors import SeqmemError

ZERO_STAMP_RULES = ('reject', 'receive_time')


@dataclass(frozen=True)
class StreamOptions:
    """
    What a stream accepts and when it forgets.

    :param joints: names of the joints to estimate; empty: all joints of every message
    :param max_gap_s: a longer time between two samples of a joint restarts that joint
    :param zero_stamp: a message without a stamp is refused (``'reject'``) or takes the time
        of its receipt (``'receive_time'``)
    :param assume_joint_order: names for messages that carry none; empty: refuse those
    :param continuous_joints: joints that wrap; their shortest difference is taken
    :param max_velocity_rad_s: a position that would need a higher speed is rejected; 0: off
    :param joint_max_velocity: speeds for single joints in rad/s, as ``'elbow: 3.1'``, which stand
        above ``max_velocity_rad_s``; 0: off
    :param max_rejected: after so many rejected values of a joint in a row, or so many late
        messages in a row, the stream believes them and restarts
    :param clock_jump_tolerance_s: a stamp that is back by at most this much is late, never a
        sign of a clock that was set back
    :param max_merge_age_s: for a model over named joints, messages that carry only some of them
        are merged if no value is older than this against the newest; 0: they are refused
    :param min_label_duration_s: a new label replaces the old one once it has won for so long
    :param min_label_score: a label that wins with less is ``unknown``
    :raises SeqmemError: if a value is out of its range
    """

    joints: tuple[str, ...] = ()
    max_gap_s: float = 0.25
    zero_stamp: str = 'reject'
    assume_joint_order: tuple[str, ...] = ()
    continuous_joints: tuple[str, ...] = ()
    max_velocity_rad_s: float = 0.0
    joint_max_velocity: tuple[str, ...] = ()
    max_rejected: int = 5
    clock_jump_tolerance_s: float = 0.1
    max_merge_age_s: float = 0.1
    min_label_duration_s: float = 0.0
    min_label_score: float = 0.0

    def __post_init__(self) -> None:
        if self.zero_stamp not in ZERO_STAMP_RULES:
            raise SeqmemError(
                f'zero_stamp: expected one of {", ".join(ZERO_STAMP_RULES)}, '
                f"got '{self.zero_stamp}'"
            )
        for name, lowest in (
            ('max_gap_s', 1e-6),
            ('max_velocity_rad_s', 0.0),
            ('max_rejected', 1),
            ('clock_jump_tolerance_s', 0.0),
            ('max_merge_age_s', 0.0),
            ('min_label_duration_s', 0.0),
            ('min_label_score', 0.0),
        ):
            value = getattr(self, name)
            if not lowest <= value < float('inf'):
                raise SeqmemError(f'{name}: expected a number from {lowest} up, got {value}')
        if self.min_label_score > 1:
            raise SeqmemError(
                f'min_label_score: expected a probability up to 1, got {self.min_label_score}'
            )
        self.velocity_limits()
        for name in ('joints', 'assume_joint_order', 'continuous_joints'):
            names = getattr(self, name)
            if len(set(names)) < len(names):
                raise SeqmemError(f'{name}: expected each joint once, got {", ".join(names)}')

    def velocity_limits(self) -> dict[str, float]:
        """
        Read ``joint_max_velocity``.

        :returns: speed in rad/s by joint
        :raises SeqmemError: if an entry is not a joint and a number, or a joint stands twice
        """
        limits: dict[str, float] = {}
        for entry in self.joint_max_velocity:
            joint, _, number = (part.strip() for part in entry.rpartition(':'))
            try:
                limit_rad_s = float(number)
            except ValueError:
                limit_rad_s = -1.0
            if not joint or joint in limits or not 0 <= limit_rad_s < float('inf'):
                raise SeqmemError(
                    "joint_max_velocity: expected entries as 'elbow: 3.1', each joint once, in "
                    f"rad/s from 0 up, got '{entry}'"
                )
            limits[joint] = limit_rad_s
        return limits
