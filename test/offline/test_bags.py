"""Bags of every kind, written here with the writers of rosbags, whole and damaged."""

import logging
import shutil
import sqlite3

import numpy as np
import pytest
from rosbags import rosbag1
from rosbags import rosbag2
from rosbags.typesys import get_typestore
from rosbags.typesys import Stores

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.joints import JointSample
from seqmem_ros.offline import joint_decoder
from seqmem_ros.offline.bags import list_topics
from seqmem_ros.offline.bags import read_joint_messages
from seqmem_ros.offline.bags import read_joint_samples
from seqmem_ros.offline.bags import write_joint_bag

JOINT_STATE = 'sensor_msgs/msg/JointState'
START_NS = 1_700_000_000_123_456_789


def make_samples(count=20, names=('elbow', 'wrist'), record_delay_ns=1_500_000):
    """Return (record_ns, sample) pairs with values that have no short decimal form."""
    pairs = []
    for index in range(count):
        stamp_ns = START_NS + index * 9_999_993
        position = np.array([np.sqrt(2.0) * index + joint for joint in range(len(names))])
        sample = JointSample(stamp_ns, names, position, position / 3.0, position / 7.0)
        pairs.append((stamp_ns + record_delay_ns, sample))
    return pairs


def assert_same(read, written):
    assert [record_ns for record_ns, _ in read] == [record_ns for record_ns, _ in written]
    for (_, got), (_, expected) in zip(read, written):
        assert got.stamp_ns == expected.stamp_ns
        assert got.names == expected.names
        for name in ('position', 'velocity', 'effort'):
            np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))


@pytest.fixture
def warnings():
    """Return the list that collects the texts of logged warnings."""
    texts = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: texts.append(record.getMessage())
    logger = logging.getLogger('seqmem_ros')
    logger.addHandler(handler)
    yield texts
    logger.removeHandler(handler)


@pytest.fixture(params=['mcap', 'sqlite3'])
def storage(request):
    return request.param


@pytest.mark.parametrize(
    ('storage', 'compressed'), [('mcap', False), ('mcap', True), ('sqlite3', False)]
)
def test_what_is_written_is_read_back_to_the_bit(tmp_path, storage, compressed):
    written = make_samples()
    path = tmp_path / 'bag'
    count = write_joint_bag(path, '/joint_states', written, 'base', storage, compressed)
    assert count == 20
    assert_same(list(read_joint_samples(path)), written)
    assert {message.frame_id for message in read_joint_messages(path)} == {'base'}


def test_absent_fields_stay_absent(tmp_path, storage):
    sample = JointSample(5, ('a',), np.array([0.5]))
    write_joint_bag(tmp_path / 'bag', 'joint_states', [(7, sample)], storage=storage)
    ((record_ns, read),) = read_joint_samples(tmp_path / 'bag')
    assert (record_ns, read.stamp_ns) == (7, 5)
    assert (read.velocity.size, read.effort.size) == (0, 0)


def test_messages_come_in_the_order_of_record_times_not_of_stamps(tmp_path, storage):
    records = [(30, 300), (10, 200), (20, 100)]
    samples = [(r, JointSample(stamp, ('a',), np.array([float(stamp)]))) for r, stamp in records]
    write_joint_bag(tmp_path / 'bag', '/joint_states', samples, storage=storage)
    read = [
        (record_ns, sample.stamp_ns) for record_ns, sample in read_joint_samples(tmp_path / 'bag')
    ]
    assert read == [(10, 200), (20, 100), (30, 300)]


@pytest.mark.parametrize('given', ['folder', 'file', 'metadata', 'no metadata'])
def test_a_bag_may_be_named_in_several_ways(tmp_path, storage, given, warnings):
    written = make_samples()
    folder = tmp_path / 'bag'
    write_joint_bag(folder, '/joint_states', written, storage=storage)
    suffix = {'mcap': '.mcap', 'sqlite3': '.db3'}[storage]
    path = {'file': folder / f'bag{suffix}', 'metadata': folder / 'metadata.yaml'}.get(
        given, folder
    )
    if given == 'no metadata':
        (folder / 'metadata.yaml').unlink()
    assert_same(list(read_joint_samples(path)), written)
    assert warnings == []


def test_files_of_a_split_bag_without_metadata_are_read_in_their_order(tmp_path):
    written = make_samples(count=33)
    folder = tmp_path / 'bag'
    folder.mkdir()
    for part in range(11):
        write_joint_bag(tmp_path / 'part', '/j', written[3 * part : 3 * part + 3])
        shutil.move(tmp_path / 'part' / 'part.mcap', folder / f'bag_{part}.mcap')
        shutil.rmtree(tmp_path / 'part')
    assert_same(list(read_joint_samples(folder)), written)
    assert list_topics(folder)['/j'] == (JOINT_STATE, 33)


def test_a_bag_without_definitions_is_read(tmp_path):
    written = make_samples()
    write_joint_bag(tmp_path / 'bag', '/joint_states', written, storage='sqlite3')
    with sqlite3.connect(tmp_path / 'bag' / 'bag.db3') as database:
        database.execute('DELETE FROM message_definitions')
    database.close()
    assert_same(list(read_joint_samples(tmp_path / 'bag')), written)


def write_bag1(path, samples, topic='joint_states', compression=None, header='std_msgs/Header'):
    """Write a ROS 1 bag; ``header`` may be the legacy roslib/Header."""
    store = get_typestore(Stores.ROS1_NOETIC)
    types = store.types
    definition, md5sum = store.generate_msgdef(JOINT_STATE)
    definition = definition.replace('std_msgs/Header', header)
    writer = rosbag1.Writer(path)
    if compression:
        writer.set_compression(compression)
    with writer:
        connection = writer.add_connection(topic, JOINT_STATE, msgdef=definition, md5sum=md5sum)
        for record_ns, sample in samples:
            stamp = types['builtin_interfaces/msg/Time'](*divmod(sample.stamp_ns, 10**9))
            message = types[JOINT_STATE](
                types['std_msgs/msg/Header'](7, stamp, 'torso'),
                list(sample.names),
                sample.position,
                sample.velocity,
                sample.effort,
            )
            writer.write(connection, record_ns, store.serialize_ros1(message, JOINT_STATE))


@pytest.mark.parametrize('header', ['std_msgs/Header', 'roslib/Header'])
@pytest.mark.parametrize('compression', [None, *rosbag1.Writer.CompressionFormat])
def test_ros1_bags_are_read(tmp_path, header, compression):
    written = make_samples()
    write_bag1(tmp_path / 'old.bag', written, compression=compression, header=header)
    assert_same(list(read_joint_samples(tmp_path / 'old.bag')), written)
    assert next(read_joint_messages(tmp_path / 'old.bag')).frame_id == 'torso'


def cut(path, share):
    """Keep the first part of a file."""
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    return len(content), int(share * len(content))


@pytest.mark.parametrize('compressed', [False, True])
@pytest.mark.parametrize('as_folder', [False, True])
def test_a_truncated_mcap_is_read_up_to_the_cut(tmp_path, compressed, as_folder, warnings):
    written = make_samples(count=6000, names=tuple('abcdefg'))
    write_joint_bag(tmp_path / 'bag', '/joint_states', written, compressed=compressed)
    file = tmp_path / 'bag' / 'bag.mcap'
    cut(file, 0.6)
    read = list(read_joint_samples(tmp_path / 'bag' if as_folder else file))
    assert 0.4 * 6000 < len(read) < 0.7 * 6000
    assert_same(read, written[: len(read)])
    (warning,) = warnings
    assert 'bag.mcap: it ends in the middle of a record, which lacks' in warning
    assert f'bytes; {len(read)} messages of /joint_states were read' in warning


def test_an_mcap_that_was_never_closed_is_read_whole(tmp_path, warnings):
    written = make_samples()
    write_joint_bag(tmp_path / 'bag', '/joint_states', written)
    file = tmp_path / 'bag' / 'bag.mcap'
    content = file.read_bytes()
    # What follows the chunk and its index begins with the metadata record named rosbag2.
    file.write_bytes(content[: content.index(b'\x07\x00\x00\x00rosbag2') - 9])
    assert_same(list(read_joint_samples(file)), written)
    assert warnings == [
        f'{file}: its recorder did not close it; 20 messages of /joint_states were read'
    ]


def test_a_damaged_chunk_does_not_hide_the_others(tmp_path, warnings):
    written = make_samples(count=9000, names=tuple('abcdefg'))
    write_joint_bag(tmp_path / 'bag', '/joint_states', written, compressed=True)
    file = tmp_path / 'bag' / 'bag.mcap'
    content = bytearray(file.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 200] = bytes(200)
    file.write_bytes(content)
    read = list(read_joint_samples(file))
    kept = {record_ns for record_ns, _ in read}
    assert len(written) // 3 < len(read) < len(written)
    assert_same(read, [pair for pair in written if pair[0] in kept])
    assert written[0][0] in kept and written[-1][0] in kept
    assert len(warnings) == 1 and f'{len(read)} messages of /joint_states' in warnings[0]


@pytest.mark.parametrize('compression', [None, *rosbag1.Writer.CompressionFormat])
def test_a_truncated_ros1_bag_is_read_up_to_the_cut(tmp_path, compression, warnings):
    written = make_samples(count=6000, names=tuple('abcdefg'))
    path = tmp_path / 'old.bag'
    write_bag1(path, written, compression=compression)
    cut(path, 0.7)
    read = list(read_joint_samples(path))
    assert 0.3 * 6000 < len(read) < 0.8 * 6000
    assert_same(read, written[: len(read)])
    assert len(warnings) == 1 and 'old.bag: it ends in the middle of a record' in warnings[0]


@pytest.mark.parametrize('as_folder', [False, True])
def test_a_truncated_sqlite_bag_is_read_up_to_the_cut(tmp_path, as_folder, warnings):
    written = make_samples(count=3000, names=tuple('abcdefg'))
    write_joint_bag(tmp_path / 'bag', '/joint_states', written, storage='sqlite3')
    file = tmp_path / 'bag' / 'bag.db3'
    size, kept = cut(file, 0.5)
    read = list(read_joint_samples(tmp_path / 'bag' if as_folder else file))
    assert 0.3 * 3000 < len(read) < 0.6 * 3000
    assert_same(read, written[: len(read)])
    (warning,) = warnings
    assert f'bag.db3: it holds {kept} of {size} bytes (50 %); {len(read)} messages' in warning


def test_messages_in_the_write_ahead_log_of_a_killed_recorder_are_read(tmp_path, warnings):
    written = make_samples()
    write_joint_bag(tmp_path / 'bag', '/joint_states', written[:15], storage='sqlite3')
    write_joint_bag(tmp_path / 'rest', '/joint_states', written[15:], storage='sqlite3')
    source = sqlite3.connect(tmp_path / 'rest' / 'rest.db3')
    database = sqlite3.connect(tmp_path / 'bag' / 'bag.db3')
    database.execute('PRAGMA journal_mode = WAL')
    for row in source.execute('SELECT timestamp, data FROM messages'):
        database.execute('INSERT INTO messages (topic_id, timestamp, data) VALUES (1, ?, ?)', row)
    database.commit()
    # Copied while the writer lives: a log that nobody merged, as a killed recorder leaves it.
    shutil.copytree(tmp_path / 'bag', tmp_path / 'killed')
    database.close()
    source.close()
    assert_same(list(read_joint_samples(tmp_path / 'killed')), written)
    assert warnings == []


def test_a_folder_whose_metadata_name_a_missing_file_is_read(tmp_path, warnings):
    written = make_samples()
    folder = tmp_path / 'bag'
    write_joint_bag(folder, '/joint_states', written)
    (folder / 'bag.mcap').rename(folder / 'renamed.mcap')
    assert_same(list(read_joint_samples(folder)), written)
    (warning,) = warnings
    assert warning.startswith(f'{folder}: metadata.yaml is of no use (Some database files are')


def write_two_topics(path, names=('/left/joint_states', '/right/joint_states')):
    store = get_typestore(Stores.LATEST)
    types = store.types
    with rosbag2.Writer(path, version=8) as writer:
        note = writer.add_connection('/note', 'std_msgs/msg/String', typestore=store)
        text = types['std_msgs/msg/String']('hello')
        writer.write(note, 1, store.serialize_cdr(text, 'std_msgs/msg/String'))
        for index, name in enumerate(names):
            connection = writer.add_connection(name, JOINT_STATE, typestore=store)
            header = types['std_msgs/msg/Header'](types['builtin_interfaces/msg/Time'](0, 1), '')
            message = types[JOINT_STATE](
                header, ['a'], np.array([float(index)]), np.empty(0), np.empty(0)
            )
            writer.write(connection, 2 + index, store.serialize_cdr(message, JOINT_STATE))


def test_of_several_topics_one_must_be_chosen(tmp_path):
    write_two_topics(tmp_path / 'bag')
    with pytest.raises(
        SeqmemError,
        match=r'bag: several joint state topics, choose one with --topic: '
        r'/left/joint_states \(1 messages\), /right/joint_states \(1 messages\)',
    ):
        read_joint_samples(tmp_path / 'bag')
    for topic in ('/right/joint_states', 'right/joint_states'):
        ((_, sample),) = read_joint_samples(tmp_path / 'bag', topic)
        assert sample.position == [1.0]


def test_a_missing_topic_is_named_with_what_is_there(tmp_path):
    write_two_topics(tmp_path / 'bag', names=())
    with pytest.raises(
        SeqmemError,
        match=r'bag: no sensor_msgs/msg/JointState messages; it holds '
        r'/note \(std_msgs/msg/String, 1 messages\)',
    ):
        read_joint_samples(tmp_path / 'bag')
    with pytest.raises(SeqmemError, match="bag: no topic 'wrong' with sensor_msgs/msg/JointState"):
        read_joint_samples(tmp_path / 'bag', 'wrong')


def test_what_is_no_bag_is_refused_in_one_line(tmp_path):
    (tmp_path / 'photo.png').write_bytes(b'\x89PNG\r\n\x1a\n0000')
    (tmp_path / 'empty.bag').write_bytes(b'')
    (tmp_path / 'folder').mkdir()
    cases = {
        'missing.mcap': r'missing\.mcap: no such file or folder',
        'photo.png': r'photo\.png: expected a bag \(\.mcap, \.db3, \.bag\), but it begins with '
        r"b'\\x89PNG",
        'empty.bag': r'empty\.bag: expected a bag \(\.mcap, \.db3, \.bag\), but it is empty',
        'folder': r'folder: expected the folder of a rosbag2 with an \.mcap or \.db3 file in it, '
        r'found nothing',
    }
    for name, text in cases.items():
        with pytest.raises(SeqmemError, match=text) as error:
            read_joint_samples(tmp_path / name)
        assert '\n' not in str(error.value)


@pytest.mark.parametrize('magic', [b'#ROSBAG V2.0\n', b'\x89MCAP0\r\n', b'SQLite format 3\x00'])
def test_a_bag_of_which_nothing_is_left_is_refused(tmp_path, magic):
    (tmp_path / 'rest').write_bytes(magic + b'\xff' * 40)
    with pytest.raises(SeqmemError, match='rest: nothing in it can be read: '):
        read_joint_samples(tmp_path / 'rest')


def test_messages_that_cannot_be_decoded_are_refused_or_counted(tmp_path, warnings):
    write_joint_bag(tmp_path / 'bag', '/joint_states', make_samples(3), storage='sqlite3')
    database = sqlite3.connect(tmp_path / 'bag' / 'bag.db3')
    database.execute('UPDATE messages SET data = substr(data, 1, 30) WHERE id = 2')
    database.commit()
    assert len(list(read_joint_samples(tmp_path / 'bag'))) == 2
    assert warnings == [
        f'{tmp_path / "bag"}: 1 of its joint states are damaged; 2 messages of '
        '/joint_states were read'
    ]
    database.execute('UPDATE messages SET data = substr(data, 1, 30)')
    database.commit()
    database.close()
    with pytest.raises(
        SeqmemError,
        match='bag: no joint state in it can be read: 3 of its joint states are damaged',
    ):
        read_joint_samples(tmp_path / 'bag')


def test_the_writer_refuses_what_it_cannot_do(tmp_path):
    with pytest.raises(SeqmemError, match="storage: expected one of mcap, sqlite3, got 'csv'"):
        write_joint_bag(tmp_path / 'bag', '/j', [], storage='csv')
    (tmp_path / 'bag').mkdir()
    with pytest.raises(SeqmemError, match='bag exists already: give a new name or remove it'):
        write_joint_bag(tmp_path / 'bag', '/j', [])


def test_reading_is_lazy(tmp_path, monkeypatch, storage):
    write_joint_bag(tmp_path / 'bag', '/joint_states', make_samples(20_000), storage=storage)
    decoded = []
    decode = joint_decoder.decode_run
    monkeypatch.setattr(joint_decoder, 'decode_run', lambda *a: decoded.append(a) or decode(*a))
    messages = read_joint_samples(tmp_path / 'bag')
    for _ in range(11):
        next(messages)
    assert 11 <= sum(len(rows) for rows, *_ in decoded) < 10_000
