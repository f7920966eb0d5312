"""What has happened in a stream: counters, and the last event of each kind in words."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Journal:
    """
    Counters of messages, values and restarts.

    :ivar counts: see :class:`seqmem_ros.core.stream.Stream`
    :ivar events: one sentence about the last event of each kind, by the name of its counter
    :ivar last_event: the sentence about the last message dropped or the last restart
    :ivar n_events: how many sentences there have been
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.events: dict[str, str] = {}
        self.last_event = ''
        self.n_events = 0

    def note(self, key: str, sentence: str, n: int = 1) -> None:
        """
        Count something that somebody should hear about.

        :param key: name of the counter
        :param sentence: what happened
        :param n: how often
        """
        self.counts[key] += n
        self.n_events += 1
        self.events[key] = self.last_event = sentence

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Forget afterwards whatever is counted and noted meanwhile."""
        kept = dict(self.counts), dict(self.events), self.last_event, self.n_events
        try:
            yield
        finally:
            counts, self.events, self.last_event, self.n_events = kept
            # Whoever counts holds the very object.
            self.counts.clear()
            self.counts.update(counts)
