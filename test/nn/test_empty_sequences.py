"""A sequence without samples: no outputs, or an error where one output is asked for."""

import numpy as np
import pytest

from seqmem_ros.nn import AddPositions
from seqmem_ros.nn import Bidirectional
from seqmem_ros.nn import causal_transformer
from seqmem_ros.nn import GRU
from seqmem_ros.nn import LastStep
from seqmem_ros.nn import MeanOverTime
from seqmem_ros.nn import MultiHeadSelfAttention
from seqmem_ros.nn import recurrent_net
from seqmem_ros.nn import transformer_encoder


@pytest.mark.parametrize(
    'make, width',
    [
        (lambda key: GRU(4, 3, key), 3),
        (lambda key: Bidirectional(GRU(4, 3, key), GRU(4, 2, key)), 5),
        (lambda key: AddPositions(9, 4), 4),
        (lambda key: MultiHeadSelfAttention(4, 2, key), 4),
        (lambda key: MultiHeadSelfAttention(4, 2, key, causal=True), 4),
        (lambda key: MultiHeadSelfAttention(4, 2, key, causal=True, window=3), 4),
        (lambda key: causal_transformer(4, 4, 2, 6, 2, 1, key, window=3), 1),
    ],
)
@pytest.mark.parametrize('axes', [(), (2,)])
def test_no_samples_give_no_outputs(make, width, axes, key):
    assert make(key).forward(np.zeros((*axes, 0, 4))).shape == (*axes, 0, width)


@pytest.mark.parametrize(
    'make, name',
    [
        (lambda key: LastStep(), 'LastStep'),
        (lambda key: MeanOverTime(), 'MeanOverTime'),
        (lambda key: recurrent_net(4, 3, 2, key, last_only=True), 'LastStep'),
        (lambda key: transformer_encoder(4, 4, 2, 6, 1, 3, key, 9), 'MeanOverTime'),
    ],
)
def test_one_output_of_no_samples_is_refused(make, name, key):
    with pytest.raises(ValueError, match=rf'{name} expected .* with at least one sample, got \(0'):
        make(key).forward(np.zeros((0, 4)))
