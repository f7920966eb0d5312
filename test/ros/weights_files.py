"""Small untrained models in files, for tests that ask who reads them and not how well."""

from pathlib import Path

import jax

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
    'arm_label': ModelSpec(
        'label', recurrent('gru', 3, 2), readout='direct', features=('difference',),
        joints=JOINTS, labels=LABELS,
    ),
}  # fmt: skip


def write_weights(folder: Path, name: str) -> Path:
    path = folder / f'{name}.safetensors'
    spec = SPECS[name]
    save_model(path, SequenceModel(spec, build_network(spec.network, jax.random.key(7))))
    return path
