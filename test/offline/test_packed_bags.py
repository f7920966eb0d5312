"""Bag files that were compressed as a whole, with and without the metadata that says so."""

import logging
from pathlib import Path
import tempfile

import numpy as np
import pytest
from rosbags import rosbag2
from rosbags.typesys import get_typestore
from rosbags.typesys import Stores

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.joints import JointSample
from seqmem_ros.offline.bags import list_topics
from seqmem_ros.offline.bags import read_joint_samples
from seqmem_ros.offline.bags import write_joint_bag
from seqmem_ros.offline.salvage import zstd
from seqmem_ros.offline.unpacked import Unpacked

SUFFIX = {'mcap': '.mcap', 'sqlite3': '.db3'}


def make_samples(count=200):
    rng = np.random.default_rng(0)
    return [
        (10 * index + 7, JointSample(10 * index + 1, ('a', 'b'), rng.normal(size=2)))
        for index in range(count)
    ]


def stamps(path):
    return [(record_ns, sample.stamp_ns) for record_ns, sample in read_joint_samples(path)]


def pack(file, folder):
    """Compress a file as rosbag2 does."""
    packed = folder / f'{file.name}.zstd'
    packed.write_bytes(zstd.compress(file.read_bytes()))
    return packed


@pytest.fixture(params=['mcap', 'sqlite3'])
def plain(request, tmp_path):
    """Return the file of a bag that is not compressed."""
    write_joint_bag(tmp_path / 'bag', '/js', make_samples(), storage=request.param)
    return tmp_path / 'bag' / f'bag{SUFFIX[request.param]}'


@pytest.mark.parametrize('as_folder', [False, True])
def test_a_packed_file_is_read_without_metadata(plain, tmp_path, as_folder, caplog):
    folder = tmp_path / 'packed'
    folder.mkdir()
    packed = pack(plain, folder)
    path = folder if as_folder else packed
    assert list_topics(path)['/js'].count == 200
    assert stamps(path) == stamps(plain)
    assert not caplog.records


def test_a_split_bag_of_packed_files_is_read_in_order(tmp_path):
    samples = make_samples(30)
    folder = tmp_path / 'packed'
    folder.mkdir()
    for part in range(3):
        write_joint_bag(tmp_path / f'bag_{part}', '/js', samples[10 * part : 10 * part + 10])
        pack(tmp_path / f'bag_{part}' / f'bag_{part}.mcap', folder)
    assert stamps(folder) == [(record_ns, sample.stamp_ns) for record_ns, sample in samples]


def test_a_packed_bag_with_its_metadata_is_read(tmp_path):
    store = get_typestore(Stores.LATEST)
    writer = rosbag2.Writer(tmp_path / 'bag', version=8)
    writer.set_compression(rosbag2.CompressionMode.FILE, rosbag2.CompressionFormat.ZSTD)
    types = store.types
    with writer:
        connection = writer.add_connection('/js', 'sensor_msgs/msg/JointState', typestore=store)
        header = types['std_msgs/msg/Header'](types['builtin_interfaces/msg/Time'](1, 2), 'base')
        empty = np.empty(0)
        message = types['sensor_msgs/msg/JointState'](header, ['a'], np.ones(1), empty, empty)
        writer.write(connection, 5, store.serialize_cdr(message, 'sensor_msgs/msg/JointState'))
    assert [file.name for file in (tmp_path / 'bag').glob('bag*')] == ['bag.db3.zstd']
    assert stamps(tmp_path / 'bag') == [(5, 1_000_000_002)]
    (tmp_path / 'bag' / 'metadata.yaml').unlink()
    assert stamps(tmp_path / 'bag') == [(5, 1_000_000_002)]


def test_a_packed_file_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path, caplog):
    rng = np.random.default_rng(1)
    pairs = [(i, JointSample(i, ('a',), rng.normal(size=1))) for i in range(1, 20_000)]
    write_joint_bag(tmp_path / 'bag', '/js', pairs)
    packed = pack(tmp_path / 'bag' / 'bag.mcap', tmp_path)
    packed.write_bytes(packed.read_bytes()[: packed.stat().st_size // 2])
    with caplog.at_level(logging.WARNING):
        read = stamps(packed)
    assert 2000 < len(read) < 19_999
    assert read == [(record_ns, sample.stamp_ns) for record_ns, sample in pairs[: len(read)]]
    (record,) = caplog.records
    assert f'{packed}: it ends in the middle of a record' in record.getMessage()
    assert 'its compressed content ends too early' in record.getMessage()


@pytest.mark.parametrize(
    ('content', 'text'),
    [
        (zstd.compress(b'no bag at all'), "but it begins with b'no bag a'"),
        (zstd.compress(b''), 'but it is empty'),
        (zstd.compress(b'') + b'rubbish', 'but it is empty'),
    ],
)
def test_what_is_no_bag_is_refused_under_its_own_name(tmp_path, content, text):
    path = tmp_path / 'bag.mcap.zstd'
    path.write_bytes(content)
    with pytest.raises(SeqmemError) as caught:
        stamps(path)
    assert str(caught.value) == f'{path}: expected a bag (.mcap, .db3, .bag), {text}'


def test_nothing_is_left_behind(plain, tmp_path, monkeypatch):
    room = tmp_path / 'temporary'
    room.mkdir()
    monkeypatch.setattr(tempfile, 'tempdir', str(room))
    packed = pack(plain, tmp_path)
    unpacked = Unpacked(packed)
    assert unpacked.path.read_bytes() == plain.read_bytes()
    assert unpacked.loss == '' and len(list(room.iterdir())) == 1
    del unpacked
    assert len(stamps(packed)) == 200
    assert list(room.iterdir()) == []


def test_a_file_of_several_frames_is_unpacked_whole(tmp_path):
    path = Path(tmp_path / 'frames.zstd')
    path.write_bytes(b''.join(zstd.compress(part * 100_000) for part in (b'a', b'b', b'c')))
    assert Unpacked(path).path.read_bytes() == b'a' * 100_000 + b'b' * 100_000 + b'c' * 100_000
