"""What a message must have before anything is computed from it."""

from collections.abc import Sequence

from seqmem_ros.core.dropped import Dropped
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.options import StreamOptions


def checked_names(
    sample: JointSample, fields: Sequence[str], options: StreamOptions
) -> tuple[str, ...]:
    """
    Check the lengths of a message's arrays, and name its joints.

    :param sample: the message
    :param fields: fields that the estimator reads
    :param options: uses ``assume_joint_order``
    :returns: one name for each value
    :raises Dropped: if a length fits neither 0 nor the names, or a field or the names lack
    """
    n = len(sample.names) or len(sample.position)
    for field in ('position', 'velocity', 'effort'):
        length = len(getattr(sample, field))
        if length not in (0, n):
            raise Dropped(
                'drop_length_mismatch', f'{field}: expected 0 or {n} values, got {length}'
            )
        if length == 0 and field in fields:
            raise Dropped(
                f'drop_no_{field}', f'{field}: expected a value for each joint, got none'
            )
    if sample.names:
        return sample.names
    assumed = options.assume_joint_order
    if len(assumed) != n:
        raise Dropped(
            'drop_no_names',
            f'expected names for {n} joints, got none; assume_joint_order (offline: '
            f'--assume-joint-order) lists {len(assumed)}: list all, in the order of the message',
        )
    return assumed


def checked_stamp_ns(sample: JointSample, receive_ns: int | None, options: StreamOptions) -> int:
    """
    Say at which time a message was measured.

    :param sample: the message
    :param receive_ns: when it was received in ns, None if unknown
    :param options: uses ``zero_stamp``
    :returns: time in ns
    :raises Dropped: if it has no stamp and none may be assumed
    """
    if sample.stamp_ns != 0:
        return sample.stamp_ns
    if options.zero_stamp == 'receive_time' and receive_ns is not None:
        return receive_ns
    raise Dropped(
        'drop_zero_stamp',
        "expected a header stamp, got 0; zero_stamp: 'receive_time' (offline: --zero-stamp) takes "
        'the time of receipt',
    )
