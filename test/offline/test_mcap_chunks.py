"""Chunks as arrays: what rosbags gives one by one, or nothing."""

import numpy as np
import pytest
from rosbags import rosbag2
from rosbags.interfaces import Qos
from rosbags.interfaces import QosDurability
from rosbags.interfaces import QosHistory
from rosbags.interfaces import QosLiveliness
from rosbags.interfaces import QosReliability
from rosbags.interfaces import QosTime
from rosbags.typesys import get_typestore
from rosbags.typesys import Stores

from seqmem_ros.core.joints import JointSample
from seqmem_ros.offline import storage
from seqmem_ros.offline.bag_writer import new_bag
from seqmem_ros.offline.bags import read_joint_messages
from seqmem_ros.offline.bags import Selection
from seqmem_ros.offline.bags import write_joint_bag
from seqmem_ros.offline.mcap_chunks import read_by_chunks

JOINT_STATE = 'sensor_msgs/msg/JointState'
MCAP = rosbag2.StoragePlugin.MCAP
QOS = Qos(
    QosHistory.KEEP_LAST,
    10,
    QosReliability.RELIABLE,
    QosDurability.VOLATILE,
    QosTime(0, 0),
    QosTime(0, 0),
    QosLiveliness.AUTOMATIC,
    QosTime(0, 0),
    False,
)


def pairs(count=20_000, names=('a', 'b', 'c'), step_ns=1000):
    rng = np.random.default_rng(0)
    return [
        (step_ns * i + 17, JointSample(step_ns * i + 1, names, *rng.normal(size=(3, len(names)))))
        for i in range(count)
    ]


def content(path, selection=None):
    return [
        (m.record_ns, m.frame_id, m.sample.stamp_ns, m.sample.names,
         tuple(m.sample.position), tuple(m.sample.velocity), tuple(m.sample.effort))
        for m in read_joint_messages(path, '/js', pytest.fail, selection)
    ]  # fmt: skip


def both_ways(path, monkeypatch, selection=None):
    """Read by chunks and by rosbags; return both, after checking that the first was chosen."""
    chosen = []

    def watched(paths, topic):
        rows = read_by_chunks(paths, topic)
        chosen.append(rows is not None)
        return rows

    monkeypatch.setattr(storage, 'read_by_chunks', watched)
    quick = content(path, selection)
    monkeypatch.setattr(storage, 'read_by_chunks', lambda paths, topic: None)
    return any(chosen), quick, content(path, selection)


@pytest.mark.parametrize('compressed', [False, True])
@pytest.mark.parametrize('as_file', [False, True])
@pytest.mark.parametrize('selection', [None, Selection(start_s=0.005, end_s=0.0123)])
def test_messages_are_those_of_rosbags(tmp_path, monkeypatch, compressed, as_file, selection):
    bag = tmp_path / 'bag'
    write_joint_bag(bag, '/js', pairs(), 'base', compressed=compressed)
    chosen, quick, slow = both_ways(bag / 'bag.mcap' if as_file else bag, monkeypatch, selection)
    assert chosen and quick == slow
    assert len(quick) == (20_000 if selection is None else 7300)


def test_other_topics_and_other_sizes_lie_between(tmp_path, monkeypatch):
    with new_bag(tmp_path / 'bag') as bag:
        for number, (record_ns, sample) in enumerate(pairs(3000)):
            bag.joint_state('/other', record_ns - 1, sample, 'far away')
            names = (*sample.names, 'gripper') if number % 500 > 400 else sample.names
            values = np.arange(len(names), dtype=float)
            odd = JointSample(sample.stamp_ns, names, values, values[: number % 2 * len(names)])
            bag.joint_state('/js', record_ns, odd, 'base' if number < 2000 else 'tool')
    chosen, quick, slow = both_ways(tmp_path / 'bag', monkeypatch)
    assert chosen and quick == slow and len(quick) == 3000


def test_times_that_go_back_are_left_to_rosbags(tmp_path, monkeypatch):
    samples = pairs(5000)
    samples[100], samples[4000] = samples[4000], samples[100]
    write_joint_bag(tmp_path / 'bag', '/js', samples)
    chosen, quick, slow = both_ways(tmp_path / 'bag', monkeypatch)
    assert not chosen and quick == slow


def write_messages(writer, sizes_of_qos):
    """Write messages through connections of their own, in turns."""
    store = get_typestore(Stores.LATEST)
    types = store.types
    with writer:
        connections = [
            writer.add_connection('/js', JOINT_STATE, typestore=store, offered_qos_profiles=qos)
            for qos in sizes_of_qos
        ]
        for number in range(100):
            stamp = types['builtin_interfaces/msg/Time'](1, number)
            header = types['std_msgs/msg/Header'](stamp, 'base')
            message = types[JOINT_STATE](header, ['a'], *np.full((3, 1), number / 7))
            data = store.serialize_cdr(message, JOINT_STATE)
            writer.write(connections[number % len(connections)], 5 + number, data)


def test_a_topic_of_two_channels_is_left_to_rosbags(tmp_path, monkeypatch):
    writer = rosbag2.Writer(tmp_path / 'bag', version=9, storage_plugin=MCAP)
    write_messages(writer, [(), (QOS,)])
    with rosbag2.Reader(tmp_path / 'bag' / 'bag.mcap') as reader:
        assert len(reader.connections) == 2
    chosen, quick, slow = both_ways(tmp_path / 'bag' / 'bag.mcap', monkeypatch)
    assert not chosen and quick == slow and len(quick) == 100


@pytest.mark.parametrize('damage', ['chunk', 'index', 'message'])
def test_damage_is_told_and_the_rest_is_read(tmp_path, damage):
    write_joint_bag(tmp_path / 'bag', '/js', pairs(), compressed=damage == 'chunk')
    file = tmp_path / 'bag' / 'bag.mcap'
    data = bytearray(file.read_bytes())
    with rosbag2.Reader(file) as reader:
        chunks = list(reader.storage.chunks)
    assert len(chunks) > 2
    second = chunks[1]
    (index_at,) = second.message_index_offsets.values()
    # Where the compressed content begins; or in the index of the chunk.
    at = {'chunk': second.chunk_start_offset + 53, 'index': index_at, 'message': index_at + 23}
    data[at[damage]] ^= 0xFF
    file.write_bytes(data)
    warnings = []
    read = [m.record_ns for m in read_joint_messages(file, '/js', warnings.append)]
    written = [record_ns for record_ns, _ in pairs()]
    assert set(read) <= set(written) and read == sorted(read)
    if damage == 'chunk':
        assert 0.6 * 20_000 < len(read) < 20_000
        (warning,) = warnings
        assert 'chunks is damaged' in warning or 'CRC' in warning or 'crc' in warning
    else:
        # The index is wrong, the messages are not.
        assert len(read) == 20_000


def test_a_message_compressed_alone_is_left_to_rosbags(tmp_path, monkeypatch):
    writer = rosbag2.Writer(tmp_path / 'bag', version=8, storage_plugin=MCAP)
    writer.set_compression(rosbag2.CompressionMode.MESSAGE, rosbag2.CompressionFormat.ZSTD)
    write_messages(writer, [()])
    chosen, quick, slow = both_ways(tmp_path / 'bag', monkeypatch)
    assert not chosen and quick == slow and len(quick) == 100
    # Without its metadata nothing says so but the messages themselves.
    assert content(tmp_path / 'bag' / 'bag.mcap') == slow
