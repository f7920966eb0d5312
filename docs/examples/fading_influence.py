"""
How fast a plain recurrent network forgets: one pole, a pair of poles, two tanh units.

A pole of size a keeps a^n of what it held after n samples; 1/e is left after -1 / ln a samples. To
one decimal that is 9.5, 99.5 and 999.5 for 0.9, 0.99 and 0.999: nearly 1 / (1 - a) - 1/2. The 1000
that is often given for the last one is 1 / (1 - a), or 999.5 rounded once more.

Two tanh units whose recurrent matrix is a rotation by 0.8 rad times a gain g, driven by the same
input (0.5, -0.3) at every sample: how much of the first state is left, |dh_n / dh_0|_F / sqrt(2)?
Below g = 1 it must fade, whatever the input. Above it, tanh decides: units driven into saturation
pass less on than g asks for.

Prints::

    pole 0.9: 9.5 samples, constant input times 10.0
    pole 0.99: 99.5 samples, constant input times 100.0
    pole 0.999: 999.5 samples, constant input times 1000.0
    [[0.9, 0.3], [-0.3, 0.9]]: radius 0.95, 18.4 degrees a sample, period 19.5 samples
    influence after   1 sample   5 samples  10 samples  20 samples
    g = 0.5             0.4266      0.0083      0.0001      0.0000
    g = 0.9             0.7679      0.0989      0.0152      0.0004
    g = 1.5             1.2798      0.8562      1.2180      1.1539
    g = 2.0             1.7064      2.2703      2.4696      1.3574
"""

import jax
import numpy as np

from seqmem_ros import nn
from seqmem_ros.core.memory_influence import influence
from seqmem_ros.core.memory_linear import linear_memory
from seqmem_ros.core.memory_linear import one_pole

ANGLE_RAD = 0.8
GAINS = (0.5, 0.9, 1.5, 2.0)
STEPS = (1, 5, 10, 20)


def influence_after(gain: float, n_samples: int) -> float:
    """Measure what is left of h_0 = 0 after so many samples."""
    cos, sin = np.cos(ANGLE_RAD), np.sin(ANGLE_RAD)
    rnn = nn.RNN(2, 2, jax.random.key(0), bias=False)
    rnn.W.value = np.eye(2)
    rnn.U.value = gain * np.array([[cos, -sin], [sin, cos]])
    return influence(rnn, np.tile([0.5, -0.3], (n_samples, 1)))[0]


def main() -> None:
    for a in (0.9, 0.99, 0.999):
        pole = one_pole(a)
        print(
            f'pole {a}: {pole.horizon_samples:.1f} samples, '
            f'constant input times {pole.dc_gain:.1f}'
        )
    mode = linear_memory([[0.9, 0.3], [-0.3, 0.9]]).modes[0]
    print(
        f'[[0.9, 0.3], [-0.3, 0.9]]: radius {mode.radius:.2f}, '
        f'{360 / mode.period_samples:.1f} degrees a sample, '
        f'period {mode.period_samples:.1f} samples'
    )
    print('influence after   1 sample   5 samples  10 samples  20 samples')
    for gain in GAINS:
        row = ''.join(f'{influence_after(gain, n):12.4f}' for n in STEPS)
        print(f'g = {gain}       {row}')


if __name__ == '__main__':
    main()
