"""What has happened in a stream: counters, and the last event in words."""

from collections import Counter


class Journal:
    """
    Counters of messages, values and restarts.

    :ivar counts: see :class:`seqmem_ros.core.stream.Stream`
    :ivar last_event: one sentence about the last message dropped or the last restart
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.last_event = ''

    def note_reset(self, cause: str, sentence: str) -> None:
        """
        Note a restart.

        :param cause: ends the name of the counter ``reset_<cause>``
        :param sentence: what happened
        """
        self.counts[f'reset_{cause}'] += 1
        self.last_event = sentence
