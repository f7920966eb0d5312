"""Signals that ask a command to stop."""

from collections.abc import Iterator
from contextlib import contextmanager
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

_PATIENCE_S = 0.01


class Terminated(BaseException):
    """What SIGTERM becomes, so that a command can end what it has started."""


@contextmanager
def stops_told() -> Iterator[list[int]]:
    """
    Note signals that ask to stop, and raise what they become: KeyboardInterrupt or Terminated.

    What is raised in a callback of the collector of garbage, such as JAX has, or in ``__del__``
    would be printed and forgotten; there the signal is sent once more.

    :returns: numbers of the signals that have come
    """
    told: list[int] = []
    lost = threading.Event()
    ended = threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        told.append(number)
        if len(told) > 1 and not lost.is_set():
            # What the first one began is not to be broken off by the next of somebody impatient.
            return
        lost.clear()
        raise Terminated if number == signal.SIGTERM else KeyboardInterrupt

    def send() -> None:
        lost.wait()
        # One that comes just before something that blocks is noticed behind it.
        while not ended.wait(_PATIENCE_S) and lost.is_set():
            os.kill(os.getpid(), told[0])

    def once_more(swallowed: Any) -> None:
        if told and isinstance(swallowed.exc_value, KeyboardInterrupt | Terminated):
            threading.Thread(target=send, daemon=True).start()
            lost.set()
        else:
            print_lost(swallowed)

    print_lost, sys.unraisablehook = sys.unraisablehook, once_more
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
        ended.set()
        sys.unraisablehook = print_lost
        for number, handler in before.items():
            # Until the process has ended, one more would be its exit code.
            signal.signal(number, signal.SIG_IGN if told else handler)
