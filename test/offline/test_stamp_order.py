"""The order of stamps, held against a sort of everything at once."""

import numpy as np
import pytest

from seqmem_ros.offline import stamp_order
from seqmem_ros.offline.joint_layout import JointBlock
from seqmem_ros.offline.stamp_order import by_stamp


def make_blocks(seed, sizes, widths=(2, 2, 0)):
    """Return blocks whose stamps come in any order, some equal and some missing."""
    rng = np.random.default_rng(seed)
    blocks = []
    for number, size in enumerate(sizes):
        names = tuple(f'{number % 3}_{joint}' for joint in range(widths[0]))
        values = (rng.normal(size=(size, width)) for width in widths)
        stamps = rng.integers(0, 50, size)
        records = rng.integers(0, 50, size)
        blocks.append(JointBlock(records, stamps, names, f'frame {number % 2}', *values))
    return blocks


def rows_of(blocks):
    return [
        (block.names, block.frame_id, int(block.record_ns[row]), int(block.stamp_ns[row]),
         *(tuple(getattr(block, field)[row]) for field in ('position', 'velocity', 'effort')))
        for block in blocks
        for row in range(len(block))
    ]  # fmt: skip


@pytest.mark.parametrize('in_memory', [0, 64_000_000])
@pytest.mark.parametrize('sizes', [(1,), (40, 1, 7), (1,) * 60, (100, 3) * 20])
def test_messages_come_as_a_stable_sort_of_all_has_them(monkeypatch, in_memory, sizes):
    monkeypatch.setattr(stamp_order, '_IN_MEMORY_BYTES', in_memory)
    blocks = make_blocks(len(sizes), sizes)
    # Without a stamp, the record time counts.
    expected = sorted(rows_of(blocks), key=lambda row: row[3] or row[2])
    assert rows_of(by_stamp(iter(blocks))) == expected


def test_what_is_in_order_already_stays_in_its_blocks():
    blocks = make_blocks(0, (50, 50))
    stamps = np.arange(1, 101)
    blocks = [
        JointBlock(stamps[at], stamps[at], b.names, b.frame_id, b.position, b.velocity, b.effort)
        for b, at in zip(blocks, (slice(0, 50), slice(50, 100)))
    ]
    assert [len(block) for block in by_stamp(blocks)] == [50, 50]


def test_no_messages_are_no_blocks():
    assert list(by_stamp([])) == []
