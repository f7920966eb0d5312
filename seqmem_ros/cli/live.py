"""What ``demo`` and ``record-check`` share: play to the node, and hold it against offline."""

from typing import Any

from seqmem_ros.core.joints import sample_from_message


def timed_samples(bag: Any, topic: str | None, degradation: Any) -> list:
    """
    Degrade a recording to what is played.

    :param bag: path
    :param topic: of the joint states, None for the only one
    :param degradation: see :class:`seqmem_ros.offline.degrade.Degradation`
    :returns: record time in ns, sample and frame of each message that is not lost
    :raises SeqmemError: if the bag cannot be read
    """
    from seqmem_ros.offline.bags import read_joint_messages
    from seqmem_ros.offline.degrade import Degrader

    degrade = Degrader(degradation)
    seen = ((message, degrade(message.sample)) for message in read_joint_messages(bag, topic))
    return [
        (message.record_ns, worse, message.frame_id)
        for message, worse in seen
        if worse is not None
    ]


def progress(total: int) -> Any:
    """
    Show how far playing is.

    :param total: number of messages
    :returns: a bar of tqdm
    """
    from tqdm import tqdm

    return tqdm(
        total=total, unit=' messages', bar_format='   {l_bar}{bar:30}{r_bar}', disable=None
    )


def said_live(messages: dict[str, list]) -> list:
    """
    Read what the node published.

    :param messages: by topic, of :class:`seqmem_ros.ros.live.LiveRun`
    :returns: one :class:`seqmem_ros.offline.live_check.Said` a message
    """
    from seqmem_ros.offline.live_check import Said

    said = []
    for message in messages.get('joint_states', ()):
        sample = sample_from_message(message)
        said.append(Said(sample.stamp_ns, sample.names, sample.velocity))
    for message in messages.get('label_scores', ()):
        rows = message.layout.dim[0].label.partition('joint=')[2]
        names = tuple(rows.split(',')) if rows else ()
        said.append(Said(len(said), names, message.data))
    return said
