"""Which topic of a recording holds the joint states."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from seqmem_ros.core.errors import SeqmemError

JOINT_STATE = 'sensor_msgs/msg/JointState'

_LISTED = 8


class Topic(NamedTuple):
    """
    What a bag holds under one name.

    :ivar count: number of messages
    """

    message_type: str
    count: int


def merge_topics(parts: Iterable[dict[str, Topic]]) -> dict[str, Topic]:
    """
    Add up the topics of a bag that was split into several files.

    :param parts: topics by name, one dictionary a file
    :returns: topics by name, with the counts of all files
    """
    merged: dict[str, Topic] = {}
    for part in parts:
        for name, (message_type, count) in part.items():
            known = merged.get(name, Topic(message_type, 0))
            merged[name] = Topic(message_type, known.count + count)
    return merged


def choose_topic(topics: dict[str, Topic], wanted: str | None, path: Path) -> str:
    """
    Find the topic to read.

    :param topics: what the bag holds
    :param wanted: name that the user gave; a leading slash more or less does not matter
    :param path: the bag, for messages
    :returns: a key of ``topics``
    :raises SeqmemError: if there is no such topic, or several and none was named
    """
    joint = [name for name, (kind, count) in topics.items() if kind == JOINT_STATE and count]
    if wanted is not None:
        joint = [name for name in joint if name.lstrip('/') == wanted.lstrip('/')]
        if not joint:
            raise SeqmemError(
                f'{path}: no topic {wanted!r} with {JOINT_STATE} messages; {_content(topics)}'
            )
    if not joint:
        raise SeqmemError(f'{path}: no {JOINT_STATE} messages; {_content(topics)}')
    if len(joint) > 1:
        names = ', '.join(f'{name} ({topics[name].count} messages)' for name in sorted(joint))
        raise SeqmemError(f'{path}: several joint state topics, choose one with --topic: {names}')
    return joint[0]


def _content(topics: dict[str, Topic]) -> str:
    if not topics:
        return 'it is empty'
    names = sorted(topics)
    listed = ', '.join(
        f'{name} ({topics[name].message_type}, {topics[name].count} messages)'
        for name in names[:_LISTED]
    )
    more = f' and {len(names) - _LISTED} more' if len(names) > _LISTED else ''
    return f'it holds {listed}{more}'
