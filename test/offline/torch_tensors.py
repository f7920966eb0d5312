"""Tensors as PyTorch names them, and NumPy cells that compute as its documentation says."""

import jax
import numpy as np

from seqmem_ros.offline.convert import torch_layout
from seqmem_ros.offline.convert.pieces import network_of
from seqmem_ros.offline.convert.plan import carry_out
from seqmem_ros.offline.convert.plan import default_plan
from seqmem_ros.offline.convert.plan import Format
from seqmem_ros.offline.convert.plan import parse_plan
from seqmem_ros.offline.convert.torch_file import modules_of

TORCH = Format(torch_layout.CONVERTERS, torch_layout.OPTIONS)
GATES = {'RNN': 1, 'GRU': 3, 'LSTM': 4}
KEY = jax.random.key(0)


def sigmoid(a):
    return 1 / (1 + np.exp(-a))


def convert(state_dict, n_in, n_out, plan=None):
    modules = modules_of(state_dict)
    steps, left_out = parse_plan(plan) if plan else (default_plan(modules), [])
    converted = carry_out(steps, left_out, modules, TORCH)
    return network_of(converted.pieces, n_in, n_out)[1], converted


def recurrent_state_dict(
    kind, n_in=3, n_hidden=4, n_layers=1, bias=True, reverse=False, prefix='', seed=0
):
    rng = np.random.default_rng(seed)
    out = {}
    for layer in range(n_layers):
        width = n_hidden * (1 + reverse) if layer else n_in
        for suffix in ('', '_reverse')[: 1 + reverse]:
            shapes = {'weight_ih': width, 'weight_hh': n_hidden}
            for name, columns in shapes.items():
                shape = (GATES[kind] * n_hidden, columns)
                out[f'{prefix}{name}_l{layer}{suffix}'] = rng.normal(size=shape) * 0.6
            for name in ('bias_ih', 'bias_hh')[: 2 * bias]:
                shape = GATES[kind] * n_hidden
                out[f'{prefix}{name}_l{layer}{suffix}'] = rng.normal(size=shape)
    return {name: value.astype(np.float32) for name, value in out.items()}


def torch_cell(kind, p, suffix, x, h, c):
    b_ih, b_hh = p.get(f'bias_ih_{suffix}', 0), p.get(f'bias_hh_{suffix}', 0)
    a = p[f'weight_ih_{suffix}'] @ x + b_ih
    u = p[f'weight_hh_{suffix}'] @ h + b_hh
    n = len(h)
    if kind == 'RNN':
        return np.tanh(a + u), c
    if kind == 'GRU':
        r, z = sigmoid(a + u)[:n], sigmoid(a + u)[n : 2 * n]
        candidate = np.tanh(a[2 * n :] + r * u[2 * n :])
        return (1 - z) * candidate + z * h, c
    i, f, o = (sigmoid(a + u)[k * n : (k + 1) * n] for k in (0, 1, 3))
    c = f * c + i * np.tanh(a + u)[2 * n : 3 * n]
    return o * np.tanh(c), c


def torch_forward(kind, p, xs, n_hidden, n_layers=1, reverse=False):
    p = {name: value.astype(np.float64) for name, value in p.items()}
    for layer in range(n_layers):
        directions = []
        for suffix in (f'l{layer}', f'l{layer}_reverse')[: 1 + reverse]:
            h = c = np.zeros(n_hidden)
            outputs = []
            for x in xs[::-1] if 'reverse' in suffix else xs:
                h, c = torch_cell(kind, p, suffix, x, h, c)
                outputs.append(h)
            directions.append(outputs[::-1] if 'reverse' in suffix else outputs)
        xs = np.concatenate(directions, axis=1)
    return xs


def linear_state_dict(name, n_out, n_in, seed=2, bias=True):
    rng = np.random.default_rng(seed)
    out = {f'{name}.weight': rng.normal(size=(n_out, n_in)).astype(np.float32)}
    if bias:
        out[f'{name}.bias'] = rng.normal(size=n_out).astype(np.float32)
    return out


def attention_state_dict(d=8, prefix='', seed=4):
    rng = np.random.default_rng(seed)
    shapes = {
        'in_proj_weight': (3 * d, d),
        'in_proj_bias': (3 * d,),
        'out_proj.weight': (d, d),
        'out_proj.bias': (d,),
    }
    return {
        prefix + name: rng.normal(size=shape).astype(np.float32) * 0.5
        for name, shape in shapes.items()
    }


def torch_attention(p, xs, n_heads, allowed):
    q, k, v = np.split(xs @ p['in_proj_weight'].T + p['in_proj_bias'], 3, axis=1)
    d = xs.shape[1] // n_heads
    heads = []
    for h in range(n_heads):
        part = slice(h * d, (h + 1) * d)
        scores = np.where(allowed, q[:, part] @ k[:, part].T / np.sqrt(d), -np.inf)
        e = np.exp(scores - scores.max(1, keepdims=True))
        heads.append(e / e.sum(1, keepdims=True) @ v[:, part])
    return np.concatenate(heads, 1) @ p['out_proj.weight'].T + p['out_proj.bias']


def block_state_dict(prefix='encoder.layers.0.'):
    p = attention_state_dict(prefix=f'{prefix}self_attn.')
    p |= linear_state_dict(f'{prefix}linear1', 16, 8, 5) | linear_state_dict(
        f'{prefix}linear2', 8, 16, 6
    )
    rng = np.random.default_rng(7)
    for name in ('norm1', 'norm2'):
        p[f'{prefix}{name}.weight'] = rng.normal(size=8).astype(np.float32)
        p[f'{prefix}{name}.bias'] = rng.normal(size=8).astype(np.float32)
    return p


def normalised(x, p, name):
    centred = x - x.mean(1, keepdims=True)
    scaled = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    return scaled * p[f'{name}.weight'] + p[f'{name}.bias']


def whole_state_dict():
    return (
        linear_state_dict('embed', 8, 3)
        | recurrent_state_dict('GRU', 8, 4, 2, prefix='gru.')
        | recurrent_state_dict('LSTM', 4, 4, 1, reverse=True, prefix='lstm.')
        | block_state_dict()
        | recurrent_state_dict('RNN', 8, 5, 1, bias=False, prefix='rnn.')
        | {'norm.weight': np.full(5, 2, np.float32), 'norm.bias': np.ones(5, np.float32)}
        | linear_state_dict('head', 2, 5)
    )


WHOLE_PLAN = 'embed,gru,lstm,encoder.layers.0:n_heads=2:window=5,rnn,norm,head'


def as_arrays(module):
    return {name: value.numpy() for name, value in module.state_dict().items()}
