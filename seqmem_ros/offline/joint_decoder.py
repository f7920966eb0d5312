"""Serialised joint states to blocks: by layout where they have a common one, else one by one."""

from collections.abc import Iterable
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from rosbags.typesys import get_typestore
from rosbags.typesys import Stores

from seqmem_ros.core.joint_layout import find_layout
from seqmem_ros.core.joints import sample_from_message
from seqmem_ros.offline import salvage
from seqmem_ros.offline.joint_layout import decode_run
from seqmem_ros.offline.joint_layout import JointBlock
from seqmem_ros.offline.joint_layout import run_length
from seqmem_ros.offline.joint_layout import same_layout
from seqmem_ros.offline.salvage import RawMessage
from seqmem_ros.offline.salvage import RawRows
from seqmem_ros.offline.topics import JOINT_STATE

# So much is read before it is decoded together.
_BATCH_MESSAGES = 4096
_BATCH_BYTES = 4_000_000


class Decoder:
    """
    Decodes messages, counting those that are damaged.

    :ivar undecoded: messages that could not be read
    """

    def __init__(self) -> None:
        self.undecoded = 0

    def blocks(self, raws: Iterable[RawMessage | RawRows]) -> Iterator[JointBlock]:
        """
        Decode messages, those of one layout together.

        :param raws: serialised joint states
        :returns: what they hold, in the same order
        """
        batch: list[RawMessage] = []
        size = 0
        for raw in raws:
            if isinstance(raw, RawRows):
                yield from self._decoded(batch)
                batch, size = [], 0
                yield from self._of_rows(raw)
                continue
            batch.append(raw)
            size += len(raw.data)
            if len(batch) >= _BATCH_MESSAGES or size >= _BATCH_BYTES:
                yield from self._decoded(batch)
                batch, size = [], 0
        yield from self._decoded(batch)

    def _decoded(self, batch: list[RawMessage]) -> Iterator[JointBlock]:
        datas = [_plain(raw.data) for raw in batch]
        at = 0
        while at < len(batch):
            layout = find_layout(datas[at], batch[at].encoding)
            if layout is None:
                yield from self._one(batch[at], datas[at])
                at += 1
                continue
            count, rows = run_length(datas, layout, at)
            record_ns = np.array([raw.record_ns for raw in batch[at : at + count]], dtype=np.int64)
            yield decode_run(rows, layout, record_ns)
            at += count

    def _of_rows(self, raw: RawRows) -> Iterator[JointBlock]:
        at = 0
        while at < len(raw.rows):
            data = raw.rows[at].tobytes()
            layout = find_layout(data, raw.encoding)
            if layout is None:
                one = RawMessage('', JOINT_STATE, int(raw.record_ns[at]), data, raw.encoding)
                yield from self._decoded_one_by_one(one)
                at += 1
                continue
            count = same_layout(raw.rows[at:], layout)
            rows, record_ns = raw.rows[at : at + count], raw.record_ns[at : at + count]
            yield decode_run(rows, layout, record_ns)
            at += count

    def _decoded_one_by_one(self, raw: RawMessage) -> Iterator[JointBlock]:
        data = _plain(raw.data)
        layout = find_layout(data, raw.encoding)
        if layout is None:
            yield from self._one(raw, data)
            return
        rows = np.frombuffer(data, np.uint8)[None]
        yield decode_run(rows, layout, np.array([raw.record_ns], dtype=np.int64))

    def _one(self, raw: RawMessage, data: bytes) -> Iterator[JointBlock]:
        """Decode what has an uncommon layout, or is damaged."""
        try:
            message = _deserialised(raw, data)
        except Exception:
            # Whatever breaks in the decoder, the bytes of this one message are damaged.
            self.undecoded += 1
            return
        sample = sample_from_message(message)
        times = (
            np.array([time_ns], dtype=np.int64) for time_ns in (raw.record_ns, sample.stamp_ns)
        )
        values = (sample.position[None], sample.velocity[None], sample.effort[None])
        yield JointBlock(*times, sample.names, message.header.frame_id, *values)


def _plain(data: bytes) -> bytes:
    # Messages compressed one by one, without the metadata that would say so.
    if data[:4] != salvage.ZSTD_MAGIC:
        return data
    return salvage.decompress('zstd', data)


def _deserialised(raw: RawMessage, data: bytes) -> Any:
    if raw.encoding == 'ros1':
        return _typestore(Stores.ROS1_NOETIC).deserialize_ros1(data, JOINT_STATE)
    return _typestore(Stores.LATEST).deserialize_cdr(data, JOINT_STATE)


@cache
def _typestore(store: Stores) -> Any:
    return get_typestore(store)
