"""Keys without Enter, where there is a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
import select
import sys
import termios
import tty


class Keyboard:
    """
    Reads keys that were pressed.

    :param listens: whether there is a terminal to read from
    """

    def __init__(self, listens: bool) -> None:
        self.listens = listens

    def pressed(self) -> str:
        """
        Take a key.

        :returns: the key; empty if none was pressed
        """
        if not self.listens or not select.select([sys.stdin], [], [], 0)[0]:
            return ''
        return sys.stdin.read(1)


@contextmanager
def keyboard() -> Iterator[Keyboard]:
    """
    Let keys through one by one, and leave the terminal as it was.

    :returns: context of the keyboard
    """
    try:
        before = termios.tcgetattr(sys.stdin)
        tty.setcbreak(sys.stdin)
    # No terminal (a pipe, a service), or a standard input that is closed or replaced.
    except (OSError, ValueError, termios.error):
        yield Keyboard(False)
        return
    try:
        yield Keyboard(True)
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
