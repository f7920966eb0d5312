"""Sequences in rows: nothing lost, nothing invented, memory begun anew where a sequence does."""

import numpy as np

from seqmem_ros.core.inputs import raw_inputs
from seqmem_ros.core.window import JointWindows
from seqmem_ros.offline.bag_sequences import _cut
from seqmem_ros.offline.packing import pack
from seqmem_ros.offline.packing import Training
from seqmem_ros.offline.sequences import raw_together


def sequence(begin, length, floor=0.0):
    """Give each sample a number, so that it can be found again."""
    numbers = np.arange(begin, begin + length, dtype=np.float32)
    return Training(numbers[:, None], numbers.copy(), numbers % 3 != 0, floor)


def test_every_sample_is_there_once_in_order_and_a_row_begins_anew_with_each_sequence():
    sequences = [sequence(100, 7, 0.5), sequence(200, 4, 0.25), sequence(300, 5)]
    packed = pack(sequences, 2, 4)
    # The third goes behind the shorter row; both rows are cut at a multiple of 4.
    np.testing.assert_array_equal(packed.raw[0, :, 0], [*range(100, 107), 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(
        packed.raw[1, :, 0], [*range(200, 204), *range(300, 305), 0, 0, 0]
    )
    np.testing.assert_array_equal(np.flatnonzero(packed.fresh[0]), [0, 7, 8, 9, 10, 11])
    np.testing.assert_array_equal(np.flatnonzero(packed.fresh[1]), [0, 4, 9, 10, 11])
    seen = packed.target[packed.counts]
    assert sorted(seen) == sorted(x for s in sequences for x in s.target if x % 3 != 0)
    assert packed.target[~packed.counts].sum() == 0
    assert set(packed.floor[1, :4]) == {0.25} and set(packed.floor[1, 4:9]) == {0.0}
    chunks = list(packed.chunks(4))
    assert [chunk[0].shape for chunk in chunks] == [(2, 4, 1)] * 3
    np.testing.assert_array_equal(np.concatenate([c[3] for c in chunks], 1), packed.counts)


def pushed(stamp_ns, position, velocity, effort):
    """Push samples one by one into the windows of a stream."""
    windows = JointWindows(position.shape[1], 5)
    raw = []
    for stamp, p, v, e in zip(stamp_ns, position, velocity, effort):
        windows.push(np.arange(len(p)), int(stamp), p, velocity=v, effort=e)
        raw.append(raw_inputs(windows))
    return np.stack(raw)


def series(rng, n_samples, n_joints):
    stamp_ns = np.cumsum(rng.integers(1_000_000, 9_000_000, n_samples))
    return stamp_ns, *rng.standard_normal((3, n_samples, n_joints))


def test_all_joints_at_once_give_what_the_windows_of_a_stream_give():
    data = series(np.random.default_rng(0), 12, 3)
    np.testing.assert_array_equal(raw_together(*data), pushed(*data))


def test_a_sequence_that_is_cut_goes_on_like_a_stream_that_starts_there():
    rng = np.random.default_rng(1)
    data = series(rng, 60, 2)
    whole = Training(raw_together(*data), np.arange(60.0), np.arange(60) >= 4)
    parts = [_cut(whole, np.random.default_rng(seed)) for seed in range(20)]
    assert {len(part) for part in parts} == {1, 2}
    for first, *rest in parts:
        if rest:
            at = len(first.raw)
            np.testing.assert_array_equal(first.raw, whole.raw[:at])
            np.testing.assert_array_equal(rest[0].raw, pushed(*(each[at:] for each in data)))
            np.testing.assert_array_equal(rest[0].target, np.arange(at, 60.0))
            assert not rest[0].counts[:4].any() and rest[0].counts[4:].all()
