"""Reading serialised joint states: what rclpy reads, to the bit, and never a crash."""

from array import array
import struct

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')
pytest.importorskip('hypothesis', reason='hypothesis is not installed')

from builtin_interfaces.msg import Time
import hypothesis
from hypothesis import strategies as st
from joint_states import joint_states
from rclpy.serialization import deserialize_message
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from seqmem_ros.ros import joint_reader
from seqmem_ros.ros.joint_reader import JointReader
from seqmem_ros.ros.joint_reader import MalformedMessage

FEW = hypothesis.settings(max_examples=200, deadline=None, derandomize=True, database=None)
PLAIN = JointState(
    header=Header(stamp=Time(sec=1, nanosec=2_000_000_001), frame_id='base'),
    name=['a', 'bc'],
    position=array('d', [0.5, -0.0]),
)


def check(received, message):
    sample, head = received
    header = message.header
    assert head == (header.stamp.sec, header.stamp.nanosec, header.frame_id)
    assert sample.stamp_ns == header.stamp.sec * 10**9 + header.stamp.nanosec
    assert sample.names == tuple(message.name)
    for field in ('position', 'velocity', 'effort'):
        values = getattr(sample, field)
        assert values.dtype == 'float64' and values.flags.aligned and values.flags.writeable
        assert values.tobytes() == getattr(message, field).tobytes()


@FEW
@hypothesis.given(st.lists(joint_states(), min_size=1, max_size=4))
def test_the_same_as_rclpy_reads(messages):
    reader = JointReader()
    # Twice: the second time, all are of kinds that are known.
    for message in messages * 2:
        check(reader.read(serialize_message(message)), message)


def test_most_messages_are_not_laid_out(monkeypatch):
    reader, laid_out = JointReader(), []
    find_layout = joint_reader.find_layout
    monkeypatch.setattr(
        joint_reader, 'find_layout', lambda *a, **kw: laid_out.append(a) or find_layout(*a, **kw)
    )
    names = set()
    for k in range(20):
        message = JointState(name=['a', f'b{k % 2}'], position=array('d', [k, -k]))
        message.header.stamp.sec = k
        received = reader.read(serialize_message(message))
        check(received, message)
        names.add(id(received.sample.names))
    assert len(laid_out) == len(names) == 2


def test_samples_do_not_share_their_numbers_with_each_other():
    reader, data = JointReader(), serialize_message(PLAIN)
    first, second = reader.read(data).sample, reader.read(data).sample
    first.position[:] = 9.0
    assert second.position.tolist() == [0.5, 0.0]


@pytest.mark.parametrize('name', ['', 'ab' * 50])
def test_kinds_that_come_and_go_are_forgotten(name):
    reader = JointReader()
    for k in range(3 * joint_reader.MOST_KINDS):
        reader.read(serialize_message(JointState(name=[name, str(k)])))
        assert sum(map(len, reader._kinds.values())) <= joint_reader.MOST_KINDS
        assert len(reader._names) <= joint_reader.MOST_KINDS
    check(reader.read(serialize_message(PLAIN)), PLAIN)


def test_nothing_is_remembered_of_bytes_that_are_no_message():
    reader = JointReader()
    for size in range(60):
        with pytest.raises(MalformedMessage):
            reader.read(b'\0\1\0\0' + size * b'\xff')
    assert not reader._kinds and not reader._names


def big_endian():
    data = b'\0\0\0\0' + struct.pack('>iI', 1, 2_000_000_001) + struct.pack('>I5s', 5, b'base\0')
    data += b'\0\0\0' + struct.pack('>II2s2xI3sxI', 2, 2, b'a\0', 3, b'bc\0', 2)
    data += b'\0' * (-(len(data) - 4) % 8) + struct.pack('>ddII', 0.5, -0.0, 0, 0)
    return data


def test_the_other_order_of_bytes_goes_through_rclpy():
    data = big_endian()
    check(JointReader().read(data), deserialize_message(data, JointState))
    check(JointReader().read(data), PLAIN)


def test_names_in_no_known_encoding_go_through_rclpy():
    data = serialize_message(PLAIN).replace(b'bc\0', b'b\xff\0')
    assert JointReader().read(data).sample.names == ('a', 'b�')


def test_bytes_that_are_no_message():
    data = serialize_message(PLAIN)
    with pytest.raises(MalformedMessage) as info:
        JointReader().read(data[:40])
    assert str(info.value) == (
        'expected a serialised sensor_msgs/JointState, got 40 bytes that are none'
    )


@FEW
@hypothesis.given(joint_states(), st.data())
def test_damaged_bytes_are_read_as_rclpy_does_or_refused(message, data):
    raw = bytearray(serialize_message(message))
    for _ in range(data.draw(st.integers(1, 3))):
        # Past the header, whose other values rclpy does not all refuse without a crash.
        at = data.draw(st.integers(4, len(raw) - 1))
        raw[at] = data.draw(st.integers(0, 255))
    raw = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    try:
        received = JointReader().read(raw)
    except MalformedMessage:
        return
    check(received, deserialize_message(raw, JointState))


@FEW
@hypothesis.given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(raw):
    reader = JointReader()
    for data in (raw, b'\0\1\0\0' + raw):
        try:
            assert isinstance(reader.read(data), joint_reader.Received)
        except MalformedMessage:
            pass
