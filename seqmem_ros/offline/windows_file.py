"""A file of windows: samples cut into pieces, with one label each and without times."""

from dataclasses import dataclass
from pathlib import Path
import zipfile

import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.offline.label_sources import sorted_labels


@dataclass(frozen=True, eq=False)
class LabelledWindows:
    """
    Windows of samples with one label each, in the order in which they were recorded.

    :ivar x: N windows of T samples of n signals, float64, shape (N, T, n)
    :ivar y: indices into ``labels``, shape (N,)
    :ivar labels: names
    """

    x: np.ndarray
    y: np.ndarray
    labels: tuple[str, ...]


def read_windows(path: str | Path) -> LabelledWindows:
    """
    Read windows from an ``.npz`` file with arrays ``X`` (N, T, n) and ``y`` (N,).

    :param path: of the file; ``y`` holds whole numbers or strings. Nothing in it is executed
    :returns: the windows, labels named as ``y`` has them
    :raises SeqmemError: if the file is not that
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = [name for name in ('X', 'y') if name not in file.files]
            if missing:
                raise SeqmemError(
                    f'{path}: expected arrays X and y, found {", ".join(file.files) or "none"}'
                )
            x, y = file['X'], file['y']
    except (OSError, ValueError, AttributeError, zipfile.BadZipFile) as error:
        raise SeqmemError(f'{path}: expected an .npz file of windows: {error}') from error
    if x.ndim != 3 or y.shape != x.shape[:1] or not x.size:
        raise SeqmemError(
            f'{path}: expected X of shape (N, T, n) and y of shape (N,), got {x.shape} and '
            f'{y.shape}'
        )
    if x.dtype.kind not in 'fiu' or y.dtype.kind not in 'iubU':
        raise SeqmemError(
            f'{path}: expected numbers in X, and whole numbers or strings in y, got {x.dtype} '
            f'and {y.dtype}'
        )
    if not np.isfinite(x).all():
        raise SeqmemError(f'{path}: expected finite numbers in X, got NaN or infinity')
    texts = [str(value) for value in y.tolist()]
    labels = sorted_labels(texts)
    return LabelledWindows(
        x.astype(np.float64), np.array([labels.index(t) for t in texts]), labels
    )
