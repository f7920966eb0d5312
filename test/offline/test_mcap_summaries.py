"""MCAP files whose summary leaves out what the format lets it leave out."""

import struct

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer
from rosbags.typesys import get_typestore
from rosbags.typesys import Stores

from seqmem_ros.offline.bags import read_joint_blocks

N_MESSAGES = 60
CHANNEL, FOOTER, SCHEMA = 4, 2, 3
MAGIC_BYTES = 8


def records(data):
    """Give the offset, opcode and end of each record of a part of a file."""
    at = 0
    while at < len(data):
        opcode, size = struct.unpack_from('<BQ', data, at)
        yield at, opcode, at + 9 + size
        at += 9 + size


def without_channels(content):
    """Write the summary of a file again, without schemas and channels."""
    footer_at = len(content) - MAGIC_BYTES - 29
    opcode, _, summary_at, _, _ = struct.unpack_from('<BQQQI', content, footer_at)
    assert opcode == FOOTER
    summary = content[summary_at:footer_at]
    kept = b''.join(
        summary[begin:end]
        for begin, opcode, end in records(summary)
        if opcode not in (SCHEMA, CHANNEL)
    )
    footer = struct.pack('<BQQQI', FOOTER, 20, summary_at, 0, 0)
    return content[:summary_at] + kept + footer + content[-MAGIC_BYTES:]


@pytest.fixture
def bag(tmp_path):
    store = get_typestore(Stores.ROS2_JAZZY)
    kinds = store.types
    with Writer(tmp_path / 'bag', version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        name = 'sensor_msgs/msg/JointState'
        connection = writer.add_connection('/arm', name, typestore=store)
        for k in range(N_MESSAGES):
            stamp = kinds['builtin_interfaces/msg/Time'](sec=k, nanosec=1)
            header = kinds['std_msgs/msg/Header'](stamp=stamp, frame_id='')
            none = np.empty(0)
            message = kinds[name](header, ['elbow'], np.array([0.1 * k]), none, none)
            writer.write(connection, 10**9 * (k + 1), store.serialize_cdr(message, name))
    (file,) = (tmp_path / 'bag').glob('*.mcap')
    changed = without_channels(file.read_bytes())
    assert len(changed) < len(file.read_bytes())
    file.write_bytes(changed)
    return tmp_path / 'bag'


@pytest.mark.parametrize('kind', ['folder', 'file', 'folder without metadata'])
def test_channels_that_are_not_in_the_summary(kind, bag):
    if kind == 'folder without metadata':
        (bag / 'metadata.yaml').unlink()
    path = next(bag.glob('*.mcap')) if kind == 'file' else bag
    blocks = list(read_joint_blocks(path))
    position = np.concatenate([block.position[:, 0] for block in blocks])
    np.testing.assert_array_equal(position, 0.1 * np.arange(N_MESSAGES))
