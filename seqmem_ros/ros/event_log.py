"""Lines about drops and restarts that do not flood a log at 1 kHz."""

from collections import Counter
from collections.abc import Callable
from collections.abc import Mapping
import time

SHORTEST_INTERVAL_S = 5.0


def is_unusual(key: str) -> bool:
    """
    Tell counters of what somebody should hear about.

    :param key: name of a counter of the stream
    :returns: whether it counts drops, refused values, or restarts that nobody asked for
    """
    return key.startswith(('drop_', 'value_', 'reset_')) and key != 'reset_requested'


class EventLog:
    """
    Turns changes of a stream's counters into lines, each kind at most once in 5 s.

    A kind is the name of a counter. What was left out is added up and told with the next line
    of its kind.

    :param write: takes one line
    :param now_s: clock in s
    """

    def __init__(
        self, write: Callable[[str], None], now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._write = write
        self._now_s = now_s
        self.begin({})

    def begin(self, counts: Mapping[str, int]) -> None:
        """
        Start anew, with another stream or the same.

        :param counts: its counters up to now, which are not to be told as new
        """
        self._seen = Counter(counts)
        self._next_s: dict[str, float] = {}

    def update(self, counts: Counter[str], sentences: Mapping[str, str]) -> None:
        """
        Write a line for each counter of drops, values or restarts that is due.

        :param counts: counters of the stream
        :param sentences: what happened last, by the name of the counter
        """
        for key, count in counts.items():
            new = count - self._seen[key]
            if new == 0 or not is_unusual(key):
                continue
            now_s = self._now_s()
            if now_s < self._next_s.get(key, now_s):
                continue
            self._seen[key] = count
            self._next_s[key] = now_s + SHORTEST_INTERVAL_S
            times = f' ({new} times)' if new > 1 else ''
            self._write(f'{key}: {sentences[key]}{times}')
