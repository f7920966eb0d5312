"""Recordings that are whole and yet strange: what real robots and recorders leave behind."""

from lz4.frame import compress as lz4_compress
import numpy as np
import pytest
from rosbags import rosbag2
from rosbags.typesys import get_typestore
from rosbags.typesys import Stores

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.offline.bags import read_joint_blocks
from seqmem_ros.offline.bags import read_joint_samples
from seqmem_ros.offline.bags import Selection
from seqmem_ros.offline.bags import write_joint_bag
from seqmem_ros.offline.degrade import AS_RECORDED
from seqmem_ros.offline.evaluate import evaluate_bag
from seqmem_ros.offline.evaluate import Setting

JOINT_STATE = 'sensor_msgs/msg/JointState'
START_NS = 1_700_000_000_000_000_000
STEP_NS = 10_000_000
NAMES = ('shoulder', 'elbow')


def samples(count=200, names=NAMES, start=0):
    """Return record times and samples of joints at 1 and 2 rad/s, at 100 Hz."""
    pairs = []
    for index in range(start, start + count):
        stamp_ns = START_NS + index * STEP_NS
        position = 0.01 * index * np.arange(1.0, len(names) + 1.0)
        pairs.append((stamp_ns + 200_000, JointSample(stamp_ns, names, position)))
    return pairs


def evaluate(tmp_path, pairs, fast=False, **options):
    write_joint_bag(tmp_path / 'bag', '/joint_states', pairs)
    setting = Setting(AS_RECORDED, StreamOptions(**options), fast=fast)
    return evaluate_bag(tmp_path / 'bag', {'difference': load_estimator('difference')}, setting)


def velocities(result):
    """Return the mean of what the filter said of each joint."""
    return np.nanmean(result.estimators['difference'].outputs, axis=0)


@pytest.mark.parametrize('fast', [False, True])
def test_nan_inside_a_message(tmp_path, fast):
    pairs = samples()
    for index in (50, 51, 120):
        pairs[index][1].position[1] = np.nan
    result = evaluate(tmp_path, pairs, fast)
    assert result.health.non_finite == 3
    outputs = result.estimators['difference'].outputs
    assert np.isnan(outputs[[50, 51, 120], 1]).all() and not np.isnan(outputs[50:121, 0]).any()
    np.testing.assert_allclose(velocities(result), [1.0, 2.0], rtol=1e-5)
    assert result.estimators['difference'].counts['value_non_finite'] == 3


@pytest.mark.parametrize('fast', [False, True])
def test_an_order_of_joints_that_changes(tmp_path, fast):
    pairs = samples()
    for index in range(1, 200, 3):
        record_ns, sample = pairs[index]
        turned = JointSample(sample.stamp_ns, NAMES[::-1], sample.position[::-1])
        pairs[index] = (record_ns, turned)
    result = evaluate(tmp_path, pairs, fast)
    assert result.recording.names == NAMES
    np.testing.assert_allclose(velocities(result), [1.0, 2.0], rtol=1e-5)


@pytest.mark.parametrize('fast', [False, True])
def test_publishers_of_different_joints_on_one_topic(tmp_path, fast):
    arm, hand = samples(), samples(100, ('finger',))
    hand = [
        (record_ns + 3_000_000 + index * STEP_NS, JointSample(
            sample.stamp_ns + 3_000_000 + index * STEP_NS, sample.names, sample.position))
        for index, (record_ns, sample) in enumerate(hand)
    ]  # fmt: skip
    result = evaluate(tmp_path, sorted(arm + hand, key=lambda pair: pair[0]), fast)
    assert result.recording.names == (*NAMES, 'finger')
    assert result.health.absent == {'shoulder': 100, 'elbow': 100, 'finger': 200}
    # The hand moves at half the pace, as its samples are 20 ms apart.
    np.testing.assert_allclose(velocities(result), [1.0, 2.0, 0.5], rtol=1e-4)


@pytest.mark.parametrize('fast', [False, True])
def test_a_bag_that_starts_over(tmp_path, fast):
    once = samples(100)
    again = [(record_ns + 2 * 10**9, sample) for record_ns, sample in once]
    result = evaluate(tmp_path, once + again, fast)
    assert result.health.clock_restarts == 1
    counts = result.estimators['difference'].counts
    assert counts['reset_time_backwards'] == 1
    # Two starts cost a window of five each, and the sixth message from which the new time is
    # believed.
    np.testing.assert_allclose(velocities(result), [1.0, 2.0], rtol=1e-5)


def test_messages_written_at_once_without_stamps(tmp_path):
    pairs = [(START_NS + index * 50_000, JointSample(0, s.names, s.position))
             for index, (_, s) in enumerate(samples())]  # fmt: skip
    with pytest.raises(SeqmemError, match=r'drop_zero_stamp 200 .expected a header stamp, got 0'):
        evaluate(tmp_path, pairs)


def write_compressed(path, mode, storage, monkeypatch=None):
    """Write a bag with the writer of rosbags as it is, or with LZ4 in place of Zstandard."""
    store = get_typestore(Stores.LATEST)
    types = store.types
    writer = rosbag2.Writer(path, version=8, storage_plugin=rosbag2.StoragePlugin[storage.upper()])
    writer.set_compression(mode, rosbag2.CompressionFormat.ZSTD)
    writer.open()
    if monkeypatch is not None:
        monkeypatch.setattr(writer.storage, 'compression', 'lz4')
        monkeypatch.setattr(writer.storage, 'compressor', lz4_compress)
    connection = writer.add_connection('/joint_states', JOINT_STATE, typestore=store)
    for record_ns, sample in samples():
        stamp = types['builtin_interfaces/msg/Time'](*divmod(sample.stamp_ns, 10**9))
        message = types[JOINT_STATE](
            types['std_msgs/msg/Header'](stamp, ''), list(sample.names), sample.position,
            np.empty(0), np.empty(0),
        )  # fmt: skip
        writer.write(connection, record_ns, store.serialize_cdr(message, JOINT_STATE))
    writer.close()


@pytest.mark.parametrize(
    ('mode', 'storage', 'lz4'),
    [
        (rosbag2.CompressionMode.STORAGE, 'mcap', False),
        (rosbag2.CompressionMode.STORAGE, 'mcap', True),
        (rosbag2.CompressionMode.MESSAGE, 'mcap', False),
        (rosbag2.CompressionMode.FILE, 'sqlite3', False),
        (rosbag2.CompressionMode.MESSAGE, 'sqlite3', False),
    ],
)
def test_every_kind_of_compression(tmp_path, monkeypatch, mode, storage, lz4):
    write_compressed(tmp_path / 'bag', mode, storage, monkeypatch if lz4 else None)
    read = list(read_joint_samples(tmp_path / 'bag'))
    expected = samples()
    assert [record_ns for record_ns, _ in read] == [record_ns for record_ns, _ in expected]
    np.testing.assert_array_equal(
        [sample.position for _, sample in read], [sample.position for _, sample in expected]
    )


def test_the_order_of_stamps_and_its_inversions(tmp_path):
    pairs = samples(50)
    record_times = [record_ns for record_ns, _ in pairs]
    late = [sample for _, sample in pairs]
    late[20], late[23] = late[23], late[20]
    write_joint_bag(tmp_path / 'bag', '/j', zip(record_times, late))
    recorded, sorted_ = (
        np.concatenate(
            [
                block.stamp_ns
                for block in read_joint_blocks(tmp_path / 'bag', Selection(order=order))
            ]
        )
        for order in ('record', 'header')
    )
    assert (np.diff(recorded) < 0).sum() == 2 and (np.diff(sorted_) > 0).all()
    for order, late_ones, back in (('record', 2, 0), ('header', 0, 2)):
        result = evaluate_bag(
            tmp_path / 'bag',
            {'difference': load_estimator('difference')},
            Setting(AS_RECORDED, selection=Selection(order=order)),
        )
        assert (result.health.late, result.health.record_inversions) == (late_ones, back)
        assert result.recording.order == order


def test_a_stretch_of_a_bag(tmp_path):
    write_joint_bag(tmp_path / 'bag', '/j', samples(100))
    blocks = list(read_joint_blocks(tmp_path / 'bag', Selection(start_s=0.3, end_s=0.5)))
    stamps = np.concatenate([block.stamp_ns for block in blocks])
    assert ((stamps - START_NS) // STEP_NS).tolist() == list(range(30, 50))
    with pytest.raises(SeqmemError, match='no joint state from 5 s on: the recording lasts'):
        read_joint_blocks(tmp_path / 'bag', Selection(start_s=5.0))
    with pytest.raises(SeqmemError, match='no joint state from 5 s to 6 s: the recording lasts'):
        read_joint_blocks(tmp_path / 'bag', Selection(start_s=5.0, end_s=6.0))
    with pytest.raises(SeqmemError, match='expected 0 <= start < end, got 2 and 1 s'):
        Selection(start_s=2.0, end_s=1.0)
    with pytest.raises(SeqmemError, match="order: expected one of record, header, got 'time'"):
        Selection(order='time')
