"""
One sample at a time gives what the whole sequence gives, for everything that streams.

The memory is a value: it goes into a step and comes out of it, so a stream can be stopped, kept
and taken up again. Attention keeps the keys and values of earlier samples: in arrays that grow,
for which the step is compiled anew with every sample, or with a window in arrays of fixed size,
for which it is compiled once. Blocks on top of one another see further than their window: L blocks
of window W reach L (W - 1) + 1 samples.

Prints::

                          12 steps and forward differ by  step compiled
    RNN                                       below 1e-5       1 time(s)
    GRU                                       below 1e-5       1 time(s)
    GRU, reset after                          below 1e-5       1 time(s)
    LSTM                                      below 1e-5       1 time(s)
    attention, growing                        below 1e-5      12 time(s)
    attention, window 5                       below 1e-5       1 time(s)
    two blocks, window 5                      below 1e-5       1 time(s)
    samples that the last output of the two blocks depends on: 9
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from seqmem_ros import nn

key = jax.random.key(0)
N_SAMPLES, WIDTH = 12, 4
LAYERS = {
    'RNN': nn.RNN(WIDTH, WIDTH, key),
    'GRU': nn.GRU(WIDTH, WIDTH, key),
    'GRU, reset after': nn.GRU(WIDTH, WIDTH, key, reset_after=True),
    'LSTM': nn.LSTM(WIDTH, WIDTH, key),
    'attention, growing': nn.MultiHeadSelfAttention(WIDTH, 2, key, causal=True),
    'attention, window 5': nn.MultiHeadSelfAttention(WIDTH, 2, key, causal=True, window=5),
    'two blocks, window 5': nn.causal_transformer(WIDTH, WIDTH, 2, 8, 2, WIDTH, key, window=5),
}


def by_steps(layer: nn.Module, seq: jax.Array) -> tuple[jax.Array, int]:
    """Run a sequence sample by sample; give the outputs and how often the step was compiled."""
    traced = []

    @jax.jit
    def step(x: jax.Array, state: Any) -> tuple[jax.Array, Any]:
        traced.append(x.shape)
        return layer.step(x, state)

    state = layer.init_state()
    outputs = []
    for x in seq:
        y, state = step(x, state)
        outputs.append(y)
    return jnp.stack(outputs), len(traced)


def reach(layer: nn.Module, seq: jax.Array) -> int:
    """Count the samples that the last output depends on."""
    gradient = jax.jit(jax.grad(lambda s: layer.forward(s)[-1, 0]))(seq)
    return int(jnp.any(gradient != 0, axis=1).sum())


def main() -> None:
    seq = jnp.array(np.random.default_rng(0).normal(size=(N_SAMPLES, WIDTH)), jnp.float32)
    print(f'{"":<22}{N_SAMPLES} steps and forward differ by  step compiled')
    for name, layer in LAYERS.items():
        outputs, n_compiled = by_steps(layer, seq)
        difference = float(jnp.abs(outputs - jax.jit(layer.forward)(seq)).max())
        shown = 'below 1e-5' if difference < 1e-5 else f'{difference:.1e}'
        print(f'{name:<22}  {shown:>28}  {n_compiled:>6} time(s)')
    n = reach(LAYERS['two blocks, window 5'], seq)
    print(f'samples that the last output of the two blocks depends on: {n}')


if __name__ == '__main__':
    main()
