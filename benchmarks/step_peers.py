"""
The same network, sample by sample, in other libraries and in plain NumPy.

Every ``make`` function takes weights and gives a function from one sample of all joints,
float32, shape (J, n_in), to the outputs, shape (J,), which keeps its memory. Weights come from
:func:`weights_of`: gates lie one under another in PyTorch's order, r z n or i f g o.
"""

from collections.abc import Callable

import numpy as np

from seqmem_ros.core.model import SequenceModel

Weights = dict[str, np.ndarray]
Step = Callable[[np.ndarray], np.ndarray]
GATES = {'gru': ('r', 'z', ''), 'lstm': ('i', 'f', 'z', 'o')}
N_HEADS = 4
WINDOW = 5
RECURRENT = {'gru': 'U', 'lstm': 'R'}


def weights_of(model: SequenceModel, cell: str) -> Weights:
    """
    Read the weights of a network of one cell and a linear output.

    :param model: as :func:`step.model_of` makes it
    :param cell: ``gru``, ``lstm`` or ``attention``
    :returns: arrays by name
    """
    values = {
        name.removeprefix('layers.'): np.asarray(param.value)
        for name, param in model.network.named_params().items()
    }
    if cell == 'attention':
        names = {'in': '0.W', 'b_in': '0.b', 'out': '2.W', 'b_out': '2.b'}
        names |= {letter: f'1.W_{letter}' for letter in 'qkvo'}
        return {name: values[path] for name, path in names.items()}

    def stacked(letter: str) -> np.ndarray:
        paths = [f'0.{letter}_{gate}' if gate else f'0.{letter}' for gate in GATES[cell]]
        return np.concatenate([values[path] for path in paths])

    return {
        'in': stacked('W'),
        'hidden': stacked(RECURRENT[cell]),
        'b_in': stacked('b'),
        'out': values['1.W'],
        'b_out': values['1.b'],
    }


def make_numpy(cell: str, weights: Weights, n_joints: int) -> Step:
    """Step in plain NumPy, written for speed: buffers are used again."""
    if cell == 'attention':
        return _numpy_attention(weights, n_joints)
    return {'gru': _numpy_gru, 'lstm': _numpy_lstm}[cell](weights, n_joints)


def _numpy_gru(w: Weights, n_joints: int) -> Step:
    n = w['hidden'].shape[1]
    w_in, w_hidden, w_out = (np.ascontiguousarray(w[k].T) for k in ('in', 'hidden', 'out'))
    h = np.zeros((n_joints, n), np.float32)

    def step(x: np.ndarray) -> np.ndarray:
        a, b = x @ w_in, h @ w_hidden
        a += w['b_in']
        gates = _sigmoid(a[:, : 2 * n] + b[:, : 2 * n])
        candidate = np.tanh(a[:, 2 * n :] + gates[:, :n] * b[:, 2 * n :])
        np.subtract(h, candidate, out=h)
        np.multiply(h, gates[:, n:], out=h)
        np.add(h, candidate, out=h)
        return (h @ w_out + w['b_out'])[:, 0]

    return step


def _numpy_lstm(w: Weights, n_joints: int) -> Step:
    n = w['hidden'].shape[1]
    w_in, w_hidden, w_out = (np.ascontiguousarray(w[k].T) for k in ('in', 'hidden', 'out'))
    y, c = (np.zeros((n_joints, n), np.float32) for _ in range(2))

    def step(x: np.ndarray) -> np.ndarray:
        a = x @ w_in
        a += y @ w_hidden
        a += w['b_in']
        i_f, o = _sigmoid(a[:, : 2 * n]), _sigmoid(a[:, 3 * n :])
        np.multiply(c, i_f[:, n:], out=c)
        np.add(c, i_f[:, :n] * np.tanh(a[:, 2 * n : 3 * n]), out=c)
        np.multiply(np.tanh(c), o, out=y)
        return (y @ w_out + w['b_out'])[:, 0]

    return step


def _numpy_attention(w: Weights, n_joints: int) -> Step:
    d = len(w['in'])
    qkv = np.concatenate([w[letter] for letter in 'qkv']).T
    keys, values = (np.zeros((n_joints, WINDOW, d), np.float32) for _ in range(2))
    hidden = np.full(WINDOW, -np.inf, np.float32)
    heads = (n_joints, WINDOW, N_HEADS, d // N_HEADS)

    def step(x: np.ndarray) -> np.ndarray:
        q, k, v = np.split((x @ w['in'].T + w['b_in']) @ qkv, 3, axis=1)
        for ring, newest in ((keys, k), (values, v)):
            ring[:, :-1] = ring[:, 1:]
            ring[:, -1] = newest
        hidden[:-1] = hidden[1:]
        hidden[-1] = 0.0
        q = q.reshape(n_joints, 1, *heads[2:])
        scores = (q * keys.reshape(heads)).sum(-1) / np.sqrt(heads[-1]) + hidden[:, None]
        shares = np.exp(scores - scores.max(1, keepdims=True))
        shares /= shares.sum(1, keepdims=True)
        y = (shares[..., None] * values.reshape(heads)).sum(1).reshape(n_joints, d)
        return ((y @ w['o'].T) @ w['out'].T + w['b_out'])[:, 0]

    return step


def _sigmoid(a: np.ndarray) -> np.ndarray:
    np.negative(a, out=a)
    np.exp(a, out=a)
    a += 1
    return np.reciprocal(a, out=a)
