"""Joint states and estimates into a rosbag2, as ``ros2 bag record`` would write them."""

from collections.abc import Iterable
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rosbags import rosbag2
from rosbags.typesys import get_typestore
from rosbags.typesys import Stores

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimate import Estimate
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.joints import NANOSECONDS_PER_SECOND
from seqmem_ros.offline.topics import JOINT_STATE

STORAGES = ('mcap', 'sqlite3')
STRING = 'std_msgs/msg/String'
MULTI_ARRAY = 'std_msgs/msg/Float64MultiArray'


class BagWriter:
    """
    Writes messages into a bag that is open; see :func:`new_bag`.

    :param writer: of rosbags
    """

    def __init__(self, writer: rosbag2.Writer) -> None:
        self._writer = writer
        self._connections: dict[str, Any] = {}

    def joint_state(
        self, topic: str, record_ns: int, sample: JointSample, frame_id: str = ''
    ) -> None:
        """
        Append a JointState.

        :param topic: name of the topic
        :param record_ns: record time, ns
        :param sample: its content
        :param frame_id: for the header
        """
        self._write(topic, record_ns, JOINT_STATE, _message_from_sample(sample, frame_id))

    def labels(
        self, topic: str, record_ns: int, estimate: Estimate, names: tuple[str, ...], whole: bool
    ) -> None:
        """
        Append labels as the node publishes them: a text, and the probabilities.

        :param topic: name before ``/label`` and ``/label_scores``
        :param record_ns: record time, ns
        :param estimate: labels and scores
        :param names: of the L labels
        :param whole: whether there is one label for the whole arm
        """
        types = _types()
        prefixes = [''] if whole else [f'{name}: ' for name in estimate.names]
        text = ', '.join(prefix + label for prefix, label in zip(prefixes, estimate.labels))
        self._write(f'{topic}/label', record_ns, STRING, types[STRING](text))
        n_rows, n_labels = estimate.scores.shape
        rows = 'arm' if whole else 'joint=' + ','.join(estimate.names)
        dimension = types['std_msgs/msg/MultiArrayDimension']
        dimensions = [
            dimension(rows, n_rows, n_rows * n_labels),
            dimension('label=' + ','.join(names), n_labels, n_labels),
        ]
        layout = types['std_msgs/msg/MultiArrayLayout'](dimensions, 0)
        scores = np.ascontiguousarray(estimate.scores, dtype=np.float64).ravel()
        message = types[MULTI_ARRAY](layout, scores)
        self._write(f'{topic}/label_scores', record_ns, MULTI_ARRAY, message)

    def _write(self, topic: str, record_ns: int, message_type: str, message: Any) -> None:
        connection = self._connections.get(topic)
        if connection is None:
            connection = self._writer.add_connection(topic, message_type, typestore=_store())
            self._connections[topic] = connection
        data = _store().serialize_cdr(message, message_type)
        self._writer.write(connection, int(record_ns), data)


@contextmanager
def new_bag(
    path: str | Path, storage: str = 'mcap', compressed: bool = False
) -> Iterator[BagWriter]:
    """
    Make a rosbag2 to write to.

    :param path: folder to make; it must not exist
    :param storage: ``'mcap'`` or ``'sqlite3'``
    :param compressed: compress the chunks of an MCAP file with Zstandard
    :returns: context of the writer, which closes the bag
    :raises SeqmemError: if the folder exists or cannot be made, or the storage is unknown
    """
    if storage not in STORAGES:
        raise SeqmemError(f'storage: expected one of {", ".join(STORAGES)}, got {storage!r}')
    if Path(path).exists():
        raise SeqmemError(f'{path} exists already: give a new name or remove it first')
    # Version 8 of the metadata is the newest whose QoS profiles are a string, which the
    # rosbag2 of Humble and Iron expect.
    writer = rosbag2.Writer(
        Path(path), version=8, storage_plugin=rosbag2.StoragePlugin[storage.upper()]
    )
    if compressed:
        writer.set_compression(rosbag2.CompressionMode.STORAGE, rosbag2.CompressionFormat.ZSTD)
    try:
        writer.open()
    except OSError as error:
        raise SeqmemError(f'{path}: expected a folder that can be made: {error}') from None
    try:
        yield BagWriter(writer)
    finally:
        writer.close()


def write_joint_bag(
    path: str | Path,
    topic: str,
    samples: Iterable[tuple[int, JointSample]],
    frame_id: str = '',
    storage: str = 'mcap',
    compressed: bool = False,
) -> int:
    """
    Write joint states as a rosbag2.

    :param path: folder to make; it must not exist
    :param topic: name of the topic
    :param samples: record time in ns, and sample
    :param frame_id: for every header
    :param storage: ``'mcap'`` or ``'sqlite3'``
    :param compressed: compress the chunks of an MCAP file with Zstandard
    :returns: number of messages written
    :raises SeqmemError: if the folder exists, or the storage is unknown
    """
    count = 0
    with new_bag(path, storage, compressed) as bag:
        for record_ns, sample in samples:
            bag.joint_state(topic, record_ns, sample, frame_id)
            count += 1
    return count


@cache
def _store() -> Any:
    return get_typestore(Stores.LATEST)


def _types() -> Any:
    return _store().types


def _message_from_sample(sample: JointSample, frame_id: str) -> Any:
    types = _types()
    sec, nanosec = divmod(int(sample.stamp_ns), NANOSECONDS_PER_SECOND)
    header = types['std_msgs/msg/Header'](
        types['builtin_interfaces/msg/Time'](sec, nanosec), frame_id
    )
    return types[JOINT_STATE](
        header,
        list(sample.names),
        np.ascontiguousarray(sample.position, dtype=np.float64),
        np.ascontiguousarray(sample.velocity, dtype=np.float64),
        np.ascontiguousarray(sample.effort, dtype=np.float64),
    )
