"""What a command writes at its end: whether it can be is found out before the work."""

from collections.abc import Iterable
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryFile

from seqmem_ros.core.errors import SeqmemError

PICTURES = ('.png', '.svg', '.pdf')
# What the folder of a bag consists of.
BAG_FILES = ('.mcap', '.db3', '.yaml', '.zstd')


def check_files(files: Mapping[str, str | None], inputs: Iterable[str | None] = ()) -> None:
    """
    Refuse files that cannot be written, or should not be; what is in the others is kept.

    :param files: paths by option; ``-`` and none are no file
    :param inputs: what is read, and may not be written over: files, and folders of bags
    :raises SeqmemError: for the first that cannot be written, is read, or is another one, too
    """
    taken: dict[Path, str] = {}
    for option, path in files.items():
        if not path or path == '-':
            continue
        _check_file(option, Path(path))
        target = Path(path).resolve()
        if target.exists() and not target.is_file():
            # Two may go to /dev/null.
            continue
        keep_inputs({option: path}, inputs)
        other = taken.setdefault(target, option)
        if other != option:
            raise SeqmemError(f'{option}: expected another file than that of {other}, got {path}')


def keep_inputs(outputs: Mapping[str, str | None], inputs: Iterable[str | None]) -> None:
    """
    Refuse to write over what is read.

    :param outputs: paths by option
    :param inputs: files, and folders of bags; what is not there is no such thing
    :raises SeqmemError: for the first output that is an input, or a file of one
    """
    read = {Path(path).resolve() for path in inputs if path and Path(path).exists()}
    for option, path in outputs.items():
        target = Path(path).resolve() if path else None
        if target in read or (target and target.suffix in BAG_FILES and target.parent in read):
            raise SeqmemError(f'{option}: expected another place than what is read, got {path}')


def check_picture(option: str, path: str | None) -> None:
    """
    Refuse a picture of a kind that cannot be drawn.

    :param option: what it was given with
    :param path: where to; none is no picture
    :raises SeqmemError: if it is of another kind
    """
    if path and Path(path).suffix.lower() not in PICTURES:
        raise SeqmemError(f'{option}: expected a {", ".join(PICTURES)} file, got {path}')


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
        # A link may lead to a file that is not there yet: not the link is tried out.
        path = path.resolve()
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
