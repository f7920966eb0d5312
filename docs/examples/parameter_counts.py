"""
How many numbers a layer holds, and what its training has to hold beside them.

    RNN   H (H + D) + H        GRU   3 times that        LSTM   4 times that, + 3 H for peepholes

Training by backpropagation through time holds the activations of every sample of the sequence;
with truncation after K samples only those of a window.

Prints::

    RNN, H = 6, D = 4, no bias          H (H + D)                             60
    GRU, H = 6, D = 4                   3 (H (H + D) + H)                    198
    LSTM, H = 6, D = 4                  4 (H (H + D) + H) + 3 H              282
    LSTM, H = D = 1000, no peepholes    4 (H (H + D) + H)              8,004,000
    LSTM, H = 64, B = 32: T = 1000 samples hold 57.3 MB, windows of K = 50 hold 2.9 MB
"""

import jax

from seqmem_ros import nn
from seqmem_ros.core.memory_counts import activation_bytes
from seqmem_ros.core.memory_counts import count_parameters

key = jax.random.key(0)


def main() -> None:
    layers = {
        'RNN, H = 6, D = 4, no bias': nn.RNN(4, 6, key, bias=False),
        'GRU, H = 6, D = 4': nn.GRU(4, 6, key),
        'LSTM, H = 6, D = 4': nn.LSTM(4, 6, key),
        # Shapes alone; the numbers themselves would take 32 MB.
        'LSTM, H = D = 1000, no peepholes': jax.eval_shape(
            lambda: nn.LSTM(1000, 1000, key, peepholes=False)
        ),
    }
    for name, layer in layers.items():
        (entry,) = count_parameters(layer)
        print(f'{name:<34}  {entry.formula:<26}  {entry.count:>12,}')
    lstm = nn.LSTM(8, 64, key)
    whole, window = (activation_bytes(lstm, 32, 1000, k) / 1e6 for k in (1000, 50))
    print(
        f'LSTM, H = 64, B = 32: T = 1000 samples hold {whole:.1f} MB, '
        f'windows of K = 50 hold {window:.1f} MB'
    )


if __name__ == '__main__':
    main()
