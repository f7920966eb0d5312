"""SQLite databases of rosbag2 that are cut off, or that nobody closed."""

from collections.abc import Iterator
from contextlib import closing
from contextlib import suppress
from pathlib import Path
import sqlite3
from urllib.parse import quote

from seqmem_ros.offline.salvage import Note
from seqmem_ros.offline.salvage import RawMessage


def scan_sqlite3(path: Path, note: Note) -> Iterator[RawMessage]:
    """
    Scan an SQLite database of rosbag2 in the order in which it was written.

    :param path: the file
    :param note: called at the end if something is lost
    :returns: iterator of messages
    """
    # A recorder that was killed leaves its last messages in the write-ahead log, which
    # SQLite only looks at when it may not take the file as immutable.
    immutable = '' if has_write_ahead_log(path) else '&immutable=1'
    uri = f'file:{quote(str(path.absolute()))}?mode=ro{immutable}'
    with closing(sqlite3.connect(uri, uri=True)) as database:
        try:
            # Without this, SQLite refuses a file that is shorter than its header says.
            database.execute('PRAGMA writable_schema = ON')
            topics = _sqlite_topics(database)
            rows = database.execute('SELECT topic_id, timestamp, data FROM messages')
            for topic_id, record_ns, data in rows:
                if topic_id in topics:
                    yield RawMessage(*topics[topic_id], record_ns, data, 'cdr')
        except sqlite3.Error as error:
            note(_sqlite_loss(path, error))


def _sqlite_topics(database: sqlite3.Connection) -> dict[int, tuple[str, str]]:
    """Read the names and types that can be read."""
    topics = {}
    with suppress(sqlite3.DatabaseError):
        for topic_id, name, message_type in database.execute('SELECT id, name, type FROM topics'):
            topics[topic_id] = (name, message_type)
    return topics


def has_write_ahead_log(path: Path) -> bool:
    """
    Say whether an SQLite file has messages beside it that were never merged into it.

    :param path: the database file
    :returns: True if ``<path>-wal`` holds anything
    """
    log = path.with_name(path.name + '-wal')
    return log.exists() and log.stat().st_size > 0


def _sqlite_loss(path: Path, error: sqlite3.Error) -> str:
    """Compare the file with the size in its header (SQLite file format, section 1.3)."""
    with path.open('rb') as file:
        header = file.read(100)
        size = file.seek(0, 2)
    if len(header) < 100:
        return f'it holds only {size} bytes'
    page_size = int.from_bytes(header[16:18], 'big')
    expected = (65536 if page_size == 1 else page_size) * int.from_bytes(header[28:32], 'big')
    if size < expected:
        return f'it holds {size} of {expected} bytes ({100 * size / expected:.0f} %)'
    return f'SQLite stopped with "{error}"'
