"""Compiled programs kept on disk, so that the next start need not compile them again."""

from collections.abc import Mapping
from collections.abc import MutableMapping
import hashlib
import os
from pathlib import Path
import platform

# Everything the node compiles is small and quick, and all of it together takes a start's time.
SETTINGS = {
    'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0',
    'JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES': '-1',
}
FOLDER = 'JAX_COMPILATION_CACHE_DIR'


def keep_programs(environment: MutableMapping[str, str]) -> None:
    """
    Let JAX keep its programs in the user's cache, before it is imported.

    ``JAX_ENABLE_COMPILATION_CACHE=false`` turns it off, ``JAX_COMPILATION_CACHE_DIR`` moves it.

    :param environment: variables of the process; nothing that is set there is overridden
    """
    if FOLDER not in environment:
        try:
            folder = cache_folder(environment)
            folder.mkdir(parents=True, exist_ok=True)
        except (OSError, RuntimeError):
            # Nowhere to keep anything: compile each time.
            return
        if not os.access(folder, os.W_OK):
            return
        environment[FOLDER] = str(folder)
    for name, value in SETTINGS.items():
        environment.setdefault(name, value)


def cache_folder(environment: Mapping[str, str]) -> Path:
    """
    Name a folder for this processor: a home shared by several must not mix their programs.

    :param environment: variables of the process
    :returns: the folder, which need not exist
    :raises RuntimeError: if the user has no home
    """
    base = environment.get('XDG_CACHE_HOME') or Path.home() / '.cache'
    return Path(base) / 'seqmem_ros' / _processor()


def _processor() -> str:
    try:
        lines = Path('/proc/cpuinfo').read_text().splitlines()
    except OSError:
        lines = []
    able = next((line for line in lines if line.startswith(('flags', 'Features'))), '')
    text = ' '.join([platform.machine(), platform.processor(), able])
    return hashlib.sha256(text.encode()).hexdigest()[:12]
