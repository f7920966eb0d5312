"""Small untrained models in files, for tests that ask who reads them and not how well."""

from pathlib import Path

import jax
import numpy as np

from seqmem_ros.core.model import build_network
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.observer import N_FEATURES
from seqmem_ros.core.observer import N_STEERING
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.core.weights import save_model

LABELS = ('still', 'moving')
JOINTS = ('shoulder', 'elbow', 'wrist')


def recurrent(cell: str, n_in: int, n_out: int) -> dict:
    return {
        'builder': 'recurrent_net', 'n_in': n_in, 'n_hidden': 8, 'n_out': n_out, 'cell': cell,
        'n_layers': 1,
    }  # fmt: skip


def attention(n_in: int, n_out: int) -> dict:
    return {
        'builder': 'causal_transformer', 'n_in': n_in, 'd_model': 8, 'n_heads': 2, 'd_ff': 16,
        'depth': 2, 'n_out': n_out, 'window': 5,
    }  # fmt: skip


SPECS = {
    'gru': ModelSpec('velocity', recurrent('gru', N_FEATURES, N_STEERING)),
    'lstm': ModelSpec('velocity', recurrent('lstm', N_FEATURES, N_STEERING)),
    'attention': ModelSpec('velocity', attention(N_FEATURES, N_STEERING)),
    'label': ModelSpec('label', recurrent('gru', N_FEATURES, N_STEERING + 4), labels=LABELS),
    'direct': ModelSpec(
        'velocity', recurrent('gru', 1, 1), readout='direct', features=('difference',)
    ),
    'arm_label': ModelSpec(
        'label', recurrent('gru', 3, 2), readout='direct', features=('difference',),
        joints=JOINTS, labels=LABELS,
    ),
}  # fmt: skip


def write_weights(folder: Path, name: str, seed: int = 7, huge: bool = False) -> Path:
    path = folder / f'{name}_{seed}.safetensors'
    spec = SPECS[name]
    network = build_network(spec.network, jax.random.key(seed))
    if huge:
        # Finite, as the reader demands; of a moving joint the sum is not.
        named = network.named_params()
        for name, value in (('layers.0.W', 100.0), ('layers.1.W', 3e38)):
            named[name].value = np.full(named[name].shape, value, np.float32)
    save_model(path, SequenceModel(spec, network))
    return path
