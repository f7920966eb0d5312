"""Layouts of serialised joint states, against bytes written by hand."""

import struct

import numpy as np
import pytest

from seqmem_ros.core.joint_layout import find_layout
from seqmem_ros.core.joint_layout import fixed_bytes

NAMES = ('a', 'élbow', '')


def cdr(frame=b'base\0', names=NAMES, fields=((1.0, 2.0, 3.0), (), ()), junk=0):
    """Write a message as the specification has it, with junk where bytes have no meaning."""
    data = bytearray(b'\0\1\0\0' + struct.pack('<iI', -5, 7))

    def align(size):
        data.extend([junk] * (-(len(data) - 4) % size))

    def text(value):
        align(4)
        data.extend(struct.pack('<I', len(value)) + value)

    text(frame)
    align(4)
    data.extend(struct.pack('<I', len(names)))
    for name in names:
        text(name.encode() + b'\0')
    for values in fields:
        align(4)
        data.extend(struct.pack('<I', len(values)))
        if values:
            align(8)
            data.extend(struct.pack(f'<{len(values)}d', *values))
    return bytes(data)


def test_everything_is_found_where_it_was_written():
    data = cdr(fields=((1.0, 2.0, 3.0), (4.0,), (-0.0, 5.0)))
    layout = find_layout(data, 'cdr')
    assert (layout.names, layout.frame_id, layout.stamp_at) == (NAMES, 'base', 4)
    assert layout.size == layout.end == len(data)
    read = [struct.unpack_from(f'<{size}d', data, at) for at, size in layout.fields]
    assert read == [(1.0, 2.0, 3.0), (4.0,), (-0.0, 5.0)]


def test_padding_stamp_and_numbers_are_what_may_differ():
    fields = ((1.0, 2.0, 3.0), (), (4.0, 5.0))
    first = cdr(fields=fields)
    others = cdr(fields=((7.0, np.nan, 8.0), (), (9.0, 0.0)), junk=255)
    fixed = fixed_bytes(find_layout(first, 'cdr'))
    different = np.frombuffer(first, np.uint8) != np.frombuffer(others, np.uint8)
    assert different.any() and not (different & fixed).any()
    for changed in (
        cdr(frame=b'bass\0', fields=fields),
        cdr(names=('b', *NAMES[1:]), fields=fields),
    ):
        different = np.frombuffer(first, np.uint8) != np.frombuffer(changed, np.uint8)
        assert (different & fixed).sum() == 1


@pytest.mark.parametrize('longest', [0, 3, 12])
def test_what_follows_the_content_is_bounded(longest):
    data = cdr()
    assert find_layout(data + b'x' * longest, 'cdr', longest).end == len(data)
    assert find_layout(data + b'x' * (longest + 1), 'cdr', longest) is None


def test_a_message_that_ends_too_early_has_no_layout():
    data = cdr()
    assert all(find_layout(data[:size], 'cdr', len(data)) is None for size in range(len(data)))


@pytest.mark.parametrize(
    'frame', [b'ba\0se\0', b'base', b'base\0\0', b'\xff\0'], ids=['zero', 'open', 'two', 'utf-8']
)
def test_a_text_that_readers_do_not_agree_on_has_no_layout(frame):
    assert find_layout(cdr(frame=frame), 'cdr') is None


def test_an_empty_text_may_have_no_zero():
    assert find_layout(cdr(frame=b''), 'cdr').frame_id == ''


def test_other_encodings_have_no_layout():
    assert find_layout(b'\0\0' + cdr()[2:], 'cdr') is None
