"""Estimators by name: the shipped models, a weights file, or a classical filter."""

from pathlib import Path
from typing import TYPE_CHECKING

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimator import Estimator
from seqmem_ros.core.filters import Cubic
from seqmem_ros.core.filters import Difference
from seqmem_ros.core.filters import Filter
from seqmem_ros.core.filters import Kalman
from seqmem_ros.core.filters import Line
from seqmem_ros.core.filters import LowPass
from seqmem_ros.core.filters import OneEuro
from seqmem_ros.core.filters import Quadratic
from seqmem_ros.core.filters import SavitzkyGolay
from seqmem_ros.core.filters import SuperTwisting
from seqmem_ros.core.filters import Tracking

if TYPE_CHECKING:
    from seqmem_ros.core.model import SequenceModel

FILTERS: dict[str, type[Filter]] = {
    cls.name: cls
    for cls in (
        Difference, LowPass, Line, Quadratic, Cubic, SavitzkyGolay, Kalman, OneEuro,
        SuperTwisting, Tracking,
    )
}  # fmt: skip
WEIGHTS_DIR = Path(__file__).parents[1] / 'weights'
SHIPPED = {
    'gru': WEIGHTS_DIR / 'velocity_gru.safetensors',
    'lstm': WEIGHTS_DIR / 'velocity_lstm.safetensors',
    'attention': WEIGHTS_DIR / 'velocity_attention.safetensors',
    'motion': WEIGHTS_DIR / 'motion_gru.safetensors',
}
MODEL_NAMES = ('auto', *SHIPPED, *FILTERS)
MEMORIES = ('persistent', 'window')


def load_estimator(
    model: str = 'auto', weights: str | Path = '', memory: str = 'persistent'
) -> Estimator:
    """
    Make an estimator from what a user says.

    :param model: a shipped model (``gru``, ``lstm``, ``attention`` estimate velocity,
        ``motion`` labels), a filter, or ``auto``: what ``weights`` holds, or ``gru``
    :param weights: a weights file; empty: the shipped one of ``model``
    :param memory: ``persistent`` carries the memory through ``step``; ``window`` runs the
        network over the last samples from zero memory each time
    :returns: the estimator
    :raises SeqmemError: if a name is unknown, or a file is missing, broken or of another kind
    """
    if model not in MODEL_NAMES:
        raise SeqmemError(f"model: expected one of {', '.join(MODEL_NAMES)}, got '{model}'")
    if memory not in MEMORIES:
        raise SeqmemError(f"memory: expected one of {', '.join(MEMORIES)}, got '{memory}'")
    if model in FILTERS:
        if weights:
            raise SeqmemError(
                f"weights: the filter '{model}' has none, got {weights}; leave weights empty or "
                f'choose another model'
            )
        return FILTERS[model]()
    # jax is not needed for the filters, and it is slow to import.
    from seqmem_ros.core.network_estimator import NetworkEstimator
    from seqmem_ros.core.weights import load_model

    path = Path(weights) if weights else SHIPPED['gru' if model == 'auto' else model]
    loaded = load_model(path)
    if weights:
        _check_fit(model, loaded, path)
    return NetworkEstimator(loaded, source=path, memory=memory)


def _check_fit(model: str, loaded: 'SequenceModel', path: Path) -> None:
    """Refuse a file that holds something else than what was named."""
    if model == 'motion' and loaded.spec.task != 'label':
        raise SeqmemError(
            f"model 'motion' does not fit {path}, which estimates velocity: set model to 'auto', "
            'or give weights of a label model'
        )
    if model in ('auto', 'motion') or loaded.kind == model:
        return
    choices = f"'{loaded.kind}' or 'auto'" if loaded.kind in SHIPPED else "'auto'"
    raise SeqmemError(
        f"model '{model}' does not fit {path}, which holds '{loaded.kind}': set model to "
        f'{choices}, or give other weights'
    )
