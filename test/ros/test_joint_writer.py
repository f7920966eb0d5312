"""Writing estimates: the bytes that rclpy would send, but for padding, which is zero."""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')
pytest.importorskip('hypothesis', reason='hypothesis is not installed')

import hypothesis
from hypothesis import strategies as st
from joint_states import INT32
from joint_states import NAMES
from joint_states import TEXTS
from joint_states import UINT32
from rclpy.serialization import deserialize_message
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from seqmem_ros.core.estimate import Estimate
from seqmem_ros.core.joint_layout import find_layout
from seqmem_ros.core.joint_layout import fixed_bytes
from seqmem_ros.ros import joint_writer
from seqmem_ros.ros.joint_writer import JointWriter
from seqmem_ros.ros.messages import Head
from seqmem_ros.ros.messages import joint_state

FEW = hypothesis.settings(max_examples=200, deadline=None, derandomize=True, database=None)


@st.composite
def outputs(draw):
    """Make a header and an estimate, with any bits as numbers."""
    names = tuple(draw(NAMES))
    size = 8 * len(names)
    position, velocity = (
        np.frombuffer(draw(st.binary(min_size=size, max_size=size)), np.float64) for _ in range(2)
    )
    head = Head(draw(INT32), draw(UINT32), draw(TEXTS))
    return head, Estimate(0, names, position, velocity=velocity)


def check(data, head, estimate):
    expected = serialize_message(joint_state(head, estimate))
    layout = find_layout(expected, 'cdr', longest_padding=len(expected))
    assert len(data) == layout.end
    fixed = fixed_bytes(layout)
    for at, size in ((layout.stamp_at, 8), *((at, 8 * size) for at, size in layout.fields)):
        fixed[at : at + size] = True
    ours, theirs = (np.frombuffer(d, np.uint8)[: layout.end] for d in (data, expected))
    fixed = fixed[: layout.end]
    assert ours[fixed].tobytes() == theirs[fixed].tobytes()
    assert not ours[~fixed].any()
    message = deserialize_message(data, JointState)
    assert message.name == list(estimate.names)
    assert message.velocity.tobytes() == estimate.velocity.tobytes()
    assert len(message.effort) == 0


@FEW
@hypothesis.given(st.lists(outputs(), min_size=1, max_size=4))
def test_bit_by_bit_what_rclpy_writes(each):
    writer = JointWriter()
    for head, estimate in each * 2:
        check(writer.write(head, estimate), head, estimate)


def test_a_kind_is_serialised_once(monkeypatch):
    serialised = []
    monkeypatch.setattr(
        joint_writer, 'serialize_message', lambda m: serialised.append(m) or serialize_message(m)
    )
    writer, sent = JointWriter(), []
    for k in range(10):
        head = Head(k, 1, f'frame {k % 2}')
        estimate = Estimate(0, ('a', 'b'), np.full(2, k), velocity=np.full(2, -k / 3))
        sent.append((writer.write(head, estimate), head, estimate))
    assert len(serialised) == 2
    # None of those sent before has changed.
    for each in sent:
        check(*each)


def test_every_other_element_of_an_array_is_written_as_it_reads():
    # The bytes of a slice are not those of its memory.
    estimate = Estimate(0, ('a', 'b'), np.arange(4.0)[::2], velocity=np.arange(4.0)[::-2])
    message = deserialize_message(JointWriter().write(Head(0, 0, ''), estimate), JointState)
    assert list(message.position) == [0.0, 2.0]
    assert list(message.velocity) == [3.0, 1.0]


def test_kinds_that_come_and_go_are_forgotten():
    writer = JointWriter()
    for k in range(3 * joint_writer.MOST_KINDS):
        estimate = Estimate(0, (str(k),), np.zeros(1), velocity=np.ones(1))
        check(writer.write(Head(1, 2, 'base'), estimate), Head(1, 2, 'base'), estimate)
        assert len(writer._templates) <= joint_writer.MOST_KINDS


def test_what_has_no_layout_is_left_to_rclpy(monkeypatch):
    monkeypatch.setattr(joint_writer, 'find_layout', lambda *a, **kw: None)
    writer, head = JointWriter(), Head(1, 2, 'base')
    for value in (1.0, 2.0):
        estimate = Estimate(0, ('a',), np.zeros(1), velocity=np.full(1, value))
        assert writer.write(head, estimate) == joint_state(head, estimate)
