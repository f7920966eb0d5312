"""Signals that ask to stop, held back while processes start."""

from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.resource_tracker import ensure_running
import signal
import threading

STOPS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stops_held() -> Iterator[None]:
    """
    Hold back what asks this process to stop until the end of the context.

    Processes that start within hold it back for ever, and are to call :func:`hear_termination`:
    Ctrl-C goes to all processes of a terminal, and whoever started them ends them. To ignore it
    here instead would lose one that comes in between.
    """
    # It lets the signals through once it has started a process of its own.
    ensure_running()
    with _noted():
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextmanager
def _noted() -> Iterator[None]:
    """Act on signals afterwards; the mask of one thread leaves them to those of JAX and NumPy."""
    if threading.current_thread() is not threading.main_thread():
        # No other thread acts on a signal.
        yield
        return
    told: list[int] = []
    before = {number: signal.getsignal(number) for number in STOPS}
    for number, handler in before.items():
        if handler not in (signal.SIG_IGN, None):
            signal.signal(number, lambda number, frame: told.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)
        for number in told:
            signal.raise_signal(number)


def hear_termination() -> None:
    """Let SIGTERM through in a process that has started while it was held back."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
