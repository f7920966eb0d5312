"""The networks of the step benchmark in PyTorch, eager and TorchScript, one thread."""

import numpy as np
from step_peers import N_HEADS
from step_peers import Step
from step_peers import Weights
from step_peers import WINDOW
import torch


def make_torch(cell: str, weights: Weights, n_joints: int) -> Step:
    """Step in eager mode, as one writes it for a robot."""
    return _step_of(_module(cell, weights), _state(cell, weights, n_joints))


def make_torch_script(cell: str, weights: Weights, n_joints: int) -> Step:
    """Step by the module traced and frozen."""
    module, state = _module(cell, weights), _state(cell, weights, n_joints)
    x = torch.zeros(n_joints, weights['in'].shape[1])
    with torch.inference_mode():
        script = torch.jit.freeze(torch.jit.trace(module, (x, state), check_trace=False))
    return _step_of(script, state)


def _step_of(module: torch.nn.Module, state: torch.Tensor) -> Step:
    memory = [state]

    @torch.inference_mode()
    def step(x: np.ndarray) -> np.ndarray:
        y, memory[0] = module(torch.from_numpy(x), memory[0])
        return y.numpy()[:, 0]

    return step


def _module(cell: str, w: Weights) -> torch.nn.Module:
    torch.set_num_threads(1)
    kind = {'gru': _Gru, 'lstm': _Lstm, 'attention': _Attention}[cell]
    return kind({name: torch.from_numpy(np.array(value)) for name, value in w.items()}).eval()


def _state(cell: str, w: Weights, n_joints: int) -> torch.Tensor | tuple:
    if cell == 'attention':
        ring = torch.zeros(n_joints, WINDOW, len(w['in']))
        return ring, ring, torch.full((1, WINDOW), -torch.inf)
    zero = torch.zeros(n_joints, w['hidden'].shape[1])
    return zero if cell == 'gru' else (zero, zero)


class _Recurrent(torch.nn.Module):
    def __init__(self, w: dict, kind: type) -> None:
        super().__init__()
        n = w['hidden'].shape[1]
        self.cell = kind(w['in'].shape[1], n)
        self.out = torch.nn.Linear(n, 1)
        with torch.no_grad():
            self.cell.weight_ih.copy_(w['in'])
            self.cell.weight_hh.copy_(w['hidden'])
            self.cell.bias_ih.copy_(w['b_in'])
            self.cell.bias_hh.zero_()
            self.out.weight.copy_(w['out'])
            self.out.bias.copy_(w['b_out'])


class _Gru(_Recurrent):
    def __init__(self, w: dict) -> None:
        super().__init__(w, torch.nn.GRUCell)

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> tuple:
        h = self.cell(x, h)
        return self.out(h), h


class _Lstm(_Recurrent):
    def __init__(self, w: dict) -> None:
        super().__init__(w, torch.nn.LSTMCell)

    def forward(self, x: torch.Tensor, state: tuple[torch.Tensor, torch.Tensor]) -> tuple:
        y, c = self.cell(x, state)
        return self.out(y), (y, c)


class _Attention(torch.nn.Module):
    def __init__(self, w: dict) -> None:
        super().__init__()
        for name, value in w.items():
            self.register_buffer(f'w_{name}', value)
        self.register_buffer('qkv', torch.cat([w[letter] for letter in 'qkv']))
        self.register_buffer('none', torch.zeros(1, 1))

    def forward(self, x: torch.Tensor, state: tuple) -> tuple:
        linear = torch.nn.functional.linear
        keys, values, hidden = state
        q, k, v = linear(linear(x, self.w_in, self.w_b_in), self.qkv).chunk(3, dim=1)
        keys = torch.cat([keys[:, 1:], k[:, None]], dim=1)
        values = torch.cat([values[:, 1:], v[:, None]], dim=1)
        hidden = torch.cat([hidden[:, 1:], self.none], dim=1)
        y = torch.nn.functional.scaled_dot_product_attention(
            self._heads(q[:, None]), self._heads(keys), self._heads(values), attn_mask=hidden
        )
        y = linear(y.transpose(1, 2).reshape(x.shape[0], -1), self.w_o)
        return linear(y, self.w_out, self.w_b_out), (keys, values, hidden)

    def _heads(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(x.shape[0], x.shape[1], N_HEADS, -1).transpose(1, 2)
