"""What a command writes at its end: whether it can be is found out before the work."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile

from seqmem_ros.core.errors import SeqmemError

PICTURES = ('.png', '.svg', '.pdf')


def check_files(files: Mapping[str, str | None]) -> None:
    """
    Refuse files that cannot be written; what is in those that can is kept.

    :param files: paths by option; ``-`` and none are no file
    :raises SeqmemError: for the first that cannot be written
    """
    for option, path in files.items():
        if path and path != '-':
            _check_file(option, Path(path))


def check_picture(option: str, path: str | None) -> None:
    """
    Refuse a picture of a kind that cannot be drawn, or that cannot be written.

    :param option: what it was given with
    :param path: where to; none is no picture
    :raises SeqmemError: if it cannot be
    """
    if path and Path(path).suffix.lower() not in PICTURES:
        raise SeqmemError(f'{option}: expected a {", ".join(PICTURES)} file, got {path}')
    check_files({option: path})


def made_folder(option: str, path: str | Path) -> Path:
    """
    Make a folder, unless it is there, and see that files can be made in it.

    :param option: what it was given with
    :param path: where to
    :returns: the folder
    :raises SeqmemError: if it cannot be made or nothing can be written there
    """
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path):
            return Path(path)
    except OSError as error:
        raise SeqmemError(
            f'{option}: expected a folder that can be made and written to, got {path}: '
            f'{error.strerror}'
        ) from None


def _check_file(option: str, path: Path) -> None:
    folder = path.absolute().parent
    try:
        if not folder.is_dir():
            raise SeqmemError(f'{option}: no such folder: {folder}')
        if path.is_dir():
            raise SeqmemError(f'{option}: expected a file to write, got the folder {path}')
        is_new = not path.exists()
        # Of what is not a file, like a pipe, nothing can be found out: it waits for a reader.
        if is_new or path.is_file():
            path.open('ab').close()
        if is_new:
            path.unlink()
    except OSError as error:
        raise SeqmemError(
            f'{option}: expected a file that can be written, got {path}: {error.strerror}'
        ) from None
