"""
A bag read by another process, a few seconds ahead of whoever plays it.

Decompressing a chunk takes milliseconds in which a thread beside it would not be on time, and the
whole of a bag may not fit into memory. A pipe between two processes bounds both.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextlib import suppress
import fcntl
import multiprocessing
from multiprocessing.connection import Connection
from pathlib import Path

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.offline.bags import read_joint_blocks
from seqmem_ros.offline.bags import Selection
from seqmem_ros.offline.held_stops import hear_termination
from seqmem_ros.offline.held_stops import stops_held
from seqmem_ros.offline.joint_layout import JointBlock
from seqmem_ros.offline.storage import Warn

# What Linux allows to anybody; some ten seconds of a common arm.
_PIPE_BYTES = 1 << 20
# So many messages are taken out of the pipe at once, which has to take far less than 1 ms.
_TOGETHER = 128


@contextmanager
def reading_ahead(
    path: str | Path, selection: Selection, warn: Warn, loop: bool = False
) -> Iterator[Iterator[JointBlock | None]]:
    """
    Read the joint states of a bag in another process.

    :param path: the bag, see :func:`seqmem_ros.offline.bags.read_joint_blocks`
    :param selection: which messages, in which order
    :param warn: called with each warning
    :param loop: again and again
    :returns: context of an iterator of blocks, with None where the bag has come to its end; it
        raises SeqmemError if the bag cannot be read
    """
    context = multiprocessing.get_context('spawn')
    receiver, sender = context.Pipe(duplex=False)
    with suppress(OSError):
        fcntl.fcntl(sender.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    reader = context.Process(target=_send, args=(sender, path, selection, loop), daemon=True)
    try:
        with stops_held():
            reader.start()
        sender.close()
        yield _received(receiver, path, warn, loop)
    finally:
        if reader.pid is not None:
            reader.kill()
            reader.join()
        receiver.close()


def _send(sender: Connection, path: str | Path, selection: Selection, loop: bool) -> None:
    """Read, in the other process, until nobody listens."""
    hear_termination()
    warnings: list[str] = []
    with suppress(BrokenPipeError):
        try:
            while True:
                for block in read_joint_blocks(path, selection, warnings.append):
                    for at in range(0, len(block), _TOGETHER):
                        sender.send(block.rows(slice(at, at + _TOGETHER)))
                sender.send(warnings)
                if not loop:
                    return
                warnings = []
        except SeqmemError as error:
            sender.send(error)


def _received(
    receiver: Connection, path: str | Path, warn: Warn, loop: bool
) -> Iterator[JointBlock | None]:
    said: set[str] = set()
    ended = False
    while True:
        try:
            what = receiver.recv()
        except (EOFError, OSError):  # the second in the middle of a message
            if ended and not loop:
                return
            raise SeqmemError(f'{path}: the process that reads it has ended early') from None
        if isinstance(what, SeqmemError):
            raise what
        ended = isinstance(what, list)
        if not ended:
            yield what
            continue
        for warning in what:
            if warning not in said:
                warn(warning)
        said.update(what)
        yield None
