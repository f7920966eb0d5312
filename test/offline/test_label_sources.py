"""Labels out of topics, CSV files and files of windows: when they hold, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from rosbags import rosbag2
from rosbags.typesys import get_typestore
from rosbags.typesys import Stores

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.offline.label_sources import read_label_intervals
from seqmem_ros.offline.label_sources import read_label_topic
from seqmem_ros.offline.label_sources import read_label_track
from seqmem_ros.offline.label_sources import sorted_labels
from seqmem_ros.offline.recording import Recording
from seqmem_ros.offline.windows_file import read_windows

SECOND = 1_000_000_000
STORE = get_typestore(Stores.LATEST)


def write_labels(path, kind, values, topic='/label'):
    """Write messages of ``std_msgs/<kind>``: pairs of record time in s and content."""
    message_type = f'std_msgs/msg/{kind}'
    with rosbag2.Writer(path, version=8) as bag:
        connection = bag.add_connection(topic, message_type, typestore=STORE)
        for time_s, value in values:
            message = STORE.types[message_type](value)
            data = STORE.serialize_cdr(message, message_type)
            bag.write(connection, round(time_s * SECOND), data)
    return path


def recording_at(stamp_s, record_s=None):
    """Make a recording of one joint with these times."""
    stamp_ns = np.round(np.array(stamp_s) * SECOND).astype(np.int64)
    record_ns = stamp_ns if record_s is None else np.round(np.array(record_s) * SECOND).astype(int)
    empty = np.empty((len(stamp_ns), 0), np.float32)
    position = np.zeros((len(stamp_ns), 1))
    return Recording(('a',), stamp_ns, record_ns, position, empty, empty, 0, 0)


def csv_of(tmp_path, text):
    path = tmp_path / 'labels.csv'
    path.write_text(text)
    return path


def test_a_text_holds_until_the_next_by_the_time_of_recording(tmp_path):
    values = [(10.0, 'idle'), (11.0, 'lift'), (12.0, ''), (13.0, 'idle')]
    track = read_label_topic(write_labels(tmp_path / 'bag', 'String', values), 'label')
    assert track.names == ('idle', 'lift')
    # Stamps are a second early; they must not matter.
    times = [9.9, 10.0, 10.9, 11.0, 11.9, 12.0, 12.9, 13.0, 99.0]
    recording = recording_at(np.array(times) - 1, times)
    np.testing.assert_array_equal(
        track.indices(recording, ('idle', 'lift')), [-1, 0, 0, 1, 1, -1, -1, 0, 0]
    )
    np.testing.assert_array_equal(
        track.indices(recording, ('lift',)), [-1, -1, -1, 0, 0, -1, -1, -1, -1]
    )
    assert (track.indices(recording, ('other',)) == -1).all()


@pytest.mark.parametrize(
    ('kind', 'values', 'names'),
    [('Int32', [10, 9, -1], ('-1', '9', '10')), ('Bool', [True, False], ('False', 'True'))],
)
def test_numbers_and_truths_are_names(tmp_path, kind, values, names):
    bag = write_labels(tmp_path / 'bag', kind, list(enumerate(values)))
    track = read_label_track('/label', bag)
    assert track.names == names
    found = track.indices(recording_at([0.5, 1.5]), names)
    assert [names[index] for index in found] == [str(value) for value in values[:2]]


def test_intervals_count_from_the_first_joint_state_and_leave_out_their_end(tmp_path):
    path = csv_of(tmp_path, '\ufeffStart, End ,label\n2,3, b\n\n0.5,1.5,a\n')
    track = read_label_track(str(path), tmp_path / 'no_bag')
    recording = recording_at([100.0, 100.499, 100.5, 101.499, 101.5, 102.0, 102.999, 103.0])
    np.testing.assert_array_equal(
        track.indices(recording, ('a', 'b')), [-1, -1, 0, 0, -1, 1, 1, -1]
    )
    # The oldest stamp is the start, wherever it stands.
    late = replace(recording, stamp_ns=recording.stamp_ns[::-1].copy())
    assert track.indices(late, ('a', 'b'))[-3] == 0


def test_large_times_are_stamps(tmp_path):
    path = csv_of(tmp_path, 'start,end,label\n1700000000.5,1700000001,x\n')
    found = read_label_intervals(path).indices(
        recording_at([1700000000, 1700000000.5, 1700000000.9, 1700000001]), ('x',)
    )
    np.testing.assert_array_equal(found, [-1, 0, 0, -1])


def test_labels_are_sorted_alike_everywhere():
    assert sorted_labels(['b', '10', '9', 'a', '9', '-1', '--']) == (
        '-1', '9', '10', '--', 'a', 'b'
    )  # fmt: skip


@pytest.mark.parametrize(
    ('text', 'sentence'),
    [
        ('', "expected the first line 'start,end,label', got 'nothing'"),
        ('0,1,a\n', "expected the first line 'start,end,label', got '0,1,a'"),
        ('start,end,label\n', 'expected intervals below its first line, found none'),
        (
            'start,end,label\n0,1\n',
            "line 2: expected 'start,end,label' with times in s, got '0,1'",
        ),
        ('start,end,label\n0,x,a\n', 'with times in s'),
        ('start,end,label\n\n2,1,a\n', 'line 3: expected 0 <= start < end and a label'),
        ('start,end,label\nnan,1,a\n', "expected 0 <= start < end and a label, got 'nan,1,a'"),
        ('start,end,label\n0,1,\n', "expected 0 <= start < end and a label, got '0,1,'"),
        (
            'start,end,label\n1,3,b\n0,2,a\n',
            "that do not overlap, but 'b' begins at 1 s, before 'a' ends at 2 s",
        ),
    ],
)
def test_what_is_wrong_with_a_csv_is_said(tmp_path, text, sentence):
    path = csv_of(tmp_path, text)
    with pytest.raises(SeqmemError) as error:
        read_label_intervals(path)
    assert str(error.value).startswith(str(path)) and sentence in str(error.value)


def test_a_csv_that_is_not_there(tmp_path):
    with pytest.raises(
        SeqmemError, match=r'no\.csv: expected a CSV file of labels: .*No such file'
    ):
        read_label_intervals(tmp_path / 'no.csv')


def test_a_topic_of_another_type_or_none(tmp_path):
    bag = write_labels(tmp_path / 'bag', 'Float64', [(0, 1.0)])
    with pytest.raises(SeqmemError) as error:
        read_label_topic(bag, 'label')
    assert str(error.value) == (
        f'{bag}: expected labels of type std_msgs/String, Int32 or Bool on /label, '
        'got std_msgs/msg/Float64'
    )
    bag = write_labels(tmp_path / 'other', 'String', [(0, 'a')], '/mode')
    with pytest.raises(SeqmemError) as error:
        read_label_topic(bag, '/label')
    assert str(error.value) == (
        f"{bag}: no topic '/label' with labels; topics that could be: /mode"
    )


def test_windows_keep_their_order_and_name_their_labels(tmp_path):
    x = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    np.savez(tmp_path / 'w.npz', X=x, y=np.array([10, 2, 10]))
    windows = read_windows(tmp_path / 'w.npz')
    np.testing.assert_array_equal(windows.x, x)
    assert windows.labels == ('2', '10')
    np.testing.assert_array_equal(windows.y, [1, 0, 1])
    np.savez(tmp_path / 's.npz', X=x, y=np.array(['push', 'free', 'push']))
    assert read_windows(tmp_path / 's.npz').labels == ('free', 'push')


@pytest.mark.parametrize(
    ('arrays', 'sentence'),
    [
        ({'a': np.zeros(3)}, 'expected arrays X and y, found a'),
        (
            {'X': np.zeros((3, 4)), 'y': np.zeros(3, int)},
            r'expected X of shape \(N, T, n\) and y of shape \(N,\), got \(3, 4\) and \(3,\)',
        ),
        (
            {'X': np.zeros((3, 4, 2)), 'y': np.zeros(2, int)},
            r'got \(3, 4, 2\) and \(2,\)',
        ),
        (
            {'X': np.zeros((3, 4, 2)), 'y': np.zeros(3)},
            'whole numbers or strings in y, got float64 and float64',
        ),
        (
            {'X': np.full((3, 4, 2), np.nan), 'y': np.zeros(3, int)},
            'expected finite numbers in X, got NaN or infinity',
        ),
        (
            {'X': np.zeros((3, 4, 2)), 'y': np.array([object()] * 3)},
            r'expected an \.npz file of windows: Object arrays cannot be loaded',
        ),
    ],
)
def test_what_is_wrong_with_windows_is_said(tmp_path, arrays, sentence):
    np.savez(tmp_path / 'w.npz', **arrays)
    with pytest.raises(SeqmemError, match=sentence):
        read_windows(tmp_path / 'w.npz')


def test_windows_that_are_no_file_of_arrays(tmp_path):
    path = tmp_path / 'w.npz'
    with pytest.raises(SeqmemError, match=r'w\.npz: expected an \.npz file of windows'):
        read_windows(path)
    path.write_bytes(b'hello')
    with pytest.raises(SeqmemError, match=r'w\.npz: expected an \.npz file of windows'):
        read_windows(path)
