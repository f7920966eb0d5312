"""Signals that ask a command to stop."""

from collections.abc import Iterator
from contextlib import contextmanager
import signal
import threading
from types import FrameType


class Terminated(BaseException):
    """What SIGTERM becomes, so that a command can end what it has started."""


@contextmanager
def stops_told() -> Iterator[list[int]]:
    """
    Note signals that ask to stop, and raise what they become: KeyboardInterrupt or Terminated.

    :returns: numbers of the signals that have come
    """
    told: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        told.append(number)
        raise Terminated if number == signal.SIGTERM else KeyboardInterrupt

    # Only in the main thread may Python set a handler, and whoever ignores an interrupt (a shell
    # that runs a command in the background) is left alone.
    before = {}
    if threading.current_thread() is threading.main_thread():
        before[signal.SIGTERM] = signal.signal(signal.SIGTERM, note)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            before[signal.SIGINT] = signal.signal(signal.SIGINT, note)
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
