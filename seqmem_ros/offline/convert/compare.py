"""A comparison of the converted network with what the other program gave."""

from pathlib import Path

import numpy as np

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.offline.convert.pieces import network_of
from seqmem_ros.offline.convert.pieces import width_given
from seqmem_ros.offline.convert.pieces import width_read
from seqmem_ros.offline.convert.plan import Converted

# Single precision in another order of summation stays well below.
TOLERANCE = 1e-4


def compare(converted: Converted, path: Path) -> tuple[float, int]:
    """
    Compare with what the other program computed.

    :param converted: the layers
    :param path: ``.npz`` with ``inputs``, shape (T, n_in) or (batch, T, n_in), and ``outputs``,
        the same with n_out, or without T if only the last output was kept
    :returns: largest difference, and the number of outputs compared
    :raises SeqmemError: if a difference is above :data:`TOLERANCE`, or the file does not fit
    """
    inputs, expected = _read(path)
    n_in, n_out = width_read(converted.pieces) or 0, width_given(converted.pieces) or 0
    if inputs.ndim not in (2, 3) or inputs.shape[-1] != n_in:
        raise SeqmemError(
            f'--check: expected inputs of shape (T, {n_in}) or (batch, T, {n_in}), got '
            f'{inputs.shape}'
        )
    _, network = network_of(converted.pieces, n_in, n_out)
    got = np.asarray(network.forward(inputs.astype(np.float32)))
    if converted.softmax:
        scores = np.exp(got - got.max(-1, keepdims=True))
        got = scores / scores.sum(-1, keepdims=True)
    if not network.collapses_time and expected.ndim == got.ndim - 1:
        got = got[..., -1, :]
    if got.shape != expected.shape:
        raise SeqmemError(f'--check: expected outputs of shape {got.shape}, got {expected.shape}')
    largest = float(np.abs(got - expected).max())
    if not largest <= TOLERANCE:
        raise SeqmemError(
            f'--check: expected the outputs in {path} within {TOLERANCE:g}, but the converted '
            f'network differs by up to {largest:.3g}: check --network, and that both are without '
            f'dropout and scaling'
        )
    return largest, expected.size


def _read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        with np.load(path) as arrays:
            return arrays['inputs'], arrays['outputs']
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise SeqmemError(
            f"--check: expected an .npz file with 'inputs' and 'outputs', got {path}: {error}"
        ) from error
