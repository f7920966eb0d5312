"""
A memory cell with its gates held still: what each of them is for.

The cell sees the cues u = 0, 1.2, 0.3, -0.5, 0.2, -0.1, -0.9, and its gates do not look at
anything: f, i and o are the same at every sample, but i = 1 at the second cue, which is to be
remembered. As in the LSTM, the cue enters through tanh and the cell leaves through tanh, each
output after its cue:

    c_t = f c_(t-1) + i_t tanh(u_t),    y_t = o tanh(c_t)

With f = 0.6 and i = 0.8 the cell follows what comes last and ends at -0.5. With f = 1 and i = 0.1
it still holds the second cue five samples later: 0.638 of an original tanh(tanh 1.2) = 0.682.

The same with the LSTM layer: gates that do not look at anything are biases. The input gate must
open once, so the second input of the layer tells it when.

Prints::

    f = 0.6, i = 0.8, o = 1.0: 0.000  0.682  0.625  0.070  0.197  0.040  -0.500
    f = 1.0, i = 0.1, o = 1.0: 0.000  0.682  0.698  0.673  0.684  0.679  0.638
    the LSTM layer ends at -0.500 and 0.638
"""

import jax
import jax.numpy as jnp
import numpy as np

from seqmem_ros import nn

CUES = (0.0, 1.2, 0.3, -0.5, 0.2, -0.1, -0.9)
REMEMBERED = 1
GATES = ((0.6, 0.8, 1.0), (1.0, 0.1, 1.0))
# A sigmoid of this is 0 or 1 to single precision.
FAR = 30.0


def outputs(f: float, i: float, o: float) -> list[float]:
    """Run the cell over the cues."""
    c, ys = 0.0, []
    for index, cue in enumerate(CUES):
        c = f * c + (1.0 if index == REMEMBERED else i) * np.tanh(cue)
        ys.append(o * np.tanh(c))
    return ys


def lstm_outputs(f: float, i: float, o: float) -> jax.Array:
    """Run the same cell as an LSTM of one unit, whose input is (cue, "remember this")."""
    lstm = nn.LSTM(2, 1, jax.random.key(0), peepholes=False)
    for param in lstm.params():
        param.value = 0
    lstm.W_z.value = [[1, 0]]
    lstm.W_i.value = [[0, FAR]]
    for param, gate in ((lstm.b_f, f), (lstm.b_i, i), (lstm.b_o, o)):
        param.value = logit(gate)
    flags = jnp.arange(len(CUES)) == REMEMBERED
    return lstm.forward(jnp.stack([jnp.array(CUES), flags], axis=1))[:, 0]


def logit(gate: float) -> float:
    """Find the bias that holds a gate there."""
    return FAR if gate == 1 else float(np.log(gate / (1 - gate)))


def main() -> None:
    for f, i, o in GATES:
        ys = '  '.join(f'{y:.3f}' for y in outputs(f, i, o))
        print(f'f = {f}, i = {i}, o = {o}: {ys}')
    ends = ' and '.join(f'{lstm_outputs(*gates)[-1]:.3f}' for gates in GATES)
    print(f'the LSTM layer ends at {ends}')


if __name__ == '__main__':
    main()
