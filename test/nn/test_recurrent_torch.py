"""RNN, GRU and LSTM against PyTorch: values and gradients of 100 random configurations each."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from seqmem_ros.nn import Bidirectional
from seqmem_ros.nn import forward_padded
from seqmem_ros.nn import GRU
from seqmem_ros.nn import LSTM
from seqmem_ros.nn import RNN
from seqmem_ros.nn import Sequential
from seqmem_ros.nn import unroll_padded

torch = pytest.importorskip('torch', reason='PyTorch, the reference here, is not installed')
torch.set_num_threads(1)  # on arrays this small, threads only wait for one another

# (n_in, n_hidden, samples, batch): few shapes, since each one is compiled anew.
SHAPES = [(3, 4, 6, None), (1, 2, 5, 3), (4, 3, 4, 2), (2, 5, 1, None)]
# PyTorch lays the gates under one another in this order.
TORCH_GATES = {'rnn': ('',), 'gru': ('r', 'z', ''), 'lstm': ('i', 'f', 'z', 'o')}
VARIANTS = [  # cell, options, PyTorch's, with biases, number of draws
    ('rnn', {'activation': 'tanh'}, {'nonlinearity': 'tanh'}, True, 34),
    ('rnn', {'activation': 'relu'}, {'nonlinearity': 'relu'}, True, 33),
    ('rnn', {'activation': 'tanh'}, {'nonlinearity': 'tanh'}, False, 33),
    ('gru', {'reset_after': True}, {}, True, 50),
    ('gru', {'reset_after': True}, {}, False, 50),
    ('lstm', {'peepholes': False}, {}, True, 50),
    ('lstm', {'peepholes': False}, {}, False, 50),
]
OURS = {'rnn': RNN, 'gru': GRU, 'lstm': LSTM}
THEIRS = {'rnn': torch.nn.RNN, 'gru': torch.nn.GRU, 'lstm': torch.nn.LSTM}

# Here compiling takes longer than running.
FAST = {'xla_backend_optimization_level': 0, 'xla_llvm_disable_expensive_passes': True}


@functools.partial(jax.jit, compiler_options=FAST)
def value_and_gradients(layer, seq, state, weights):
    def loss(layer, seq):
        outputs, last = layer.unroll(seq, state)
        return (outputs * weights).sum(), (outputs, last)

    (_, values), gradients = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(layer, seq)
    return values, gradients


def torch_layer(cell, options, n_in, n_hidden, bias, **more):
    layer = THEIRS[cell](n_in, n_hidden, bias=bias, batch_first=True, **options, **more).double()
    for param in layer.parameters():
        torch.nn.init.normal_(param, std=0.6)
    return layer


def named_arrays(cell, theirs, end='_l0', pick=lambda t: t.detach()):
    """Give PyTorch's weights, or their gradients, by our names."""
    get = lambda name: np.split(  # noqa: E731
        pick(getattr(theirs, name + end)).numpy(), len(TORCH_GATES[cell])
    )
    named = {}
    for letter, name in (('W', 'weight_ih'), ('R' if cell == 'lstm' else 'U', 'weight_hh')):
        for gate, rows in zip(TORCH_GATES[cell], get(name)):
            named[f'{letter}_{gate}' if gate else letter] = rows
    if theirs.bias:
        for gate, b_ih, b_hh in zip(TORCH_GATES[cell], get('bias_ih'), get('bias_hh')):
            if cell == 'gru' and gate == '':
                named['b'], named['b_U'] = b_ih, b_hh
            else:
                named[f'b_{gate}' if gate else 'b'] = (b_ih, b_hh)
    return named


def load(ours, cell, theirs, end='_l0'):
    named = named_arrays(cell, theirs, end)
    ours.load_params({k: sum(v) if isinstance(v, tuple) else v for k, v in named.items()})
    return ours


def random_state(cell, shape, rng):
    if cell == 'lstm':
        return tuple(rng.standard_normal(shape) for _ in range(2))
    return rng.standard_normal(shape)


def assert_gradient(ours, theirs):
    """Element by element; what is below 1e-10 is rounding."""
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-10)


@pytest.mark.parametrize('cell, options, torch_options, bias, draws', VARIANTS)
def test_values_and_gradients_equal_pytorch(cell, options, torch_options, bias, draws, x64, rng):
    torch.manual_seed(3)
    for draw in range(draws):
        n_in, n_hidden, n_samples, batch = SHAPES[draw % len(SHAPES)]
        theirs = torch_layer(cell, torch_options, n_in, n_hidden, bias)
        ours = OURS[cell](n_in, n_hidden, jax.random.key(0), bias=bias, **options)
        load(ours, cell, theirs)
        axes = () if batch is None else (batch,)
        seq = rng.standard_normal((*axes, n_samples, n_in))
        state = random_state(cell, (*axes, n_hidden), rng)
        weights = rng.standard_normal((*axes, n_samples, n_hidden))

        torch_seq = torch.tensor(seq, requires_grad=True)
        torch_state = jax.tree.map(lambda a: torch.tensor(a)[None], state)  # (layers, ...)
        torch_outputs, torch_last = theirs(torch_seq, torch_state)
        (torch_outputs * torch.tensor(weights)).sum().backward()

        (outputs, last), (gradients, seq_gradient) = value_and_gradients(
            ours, jnp.asarray(seq), jax.tree.map(jnp.asarray, state), jnp.asarray(weights)
        )
        np.testing.assert_allclose(outputs, torch_outputs.detach(), rtol=0, atol=1e-10)
        for part, torch_part in zip(jax.tree.leaves(last), jax.tree.leaves(torch_last)):
            np.testing.assert_allclose(part, torch_part[0].detach(), rtol=0, atol=1e-10)
        assert_gradient(seq_gradient, torch_seq.grad)
        expected = named_arrays(cell, theirs, pick=lambda t: t.grad)
        found = gradients.named_params()
        assert set(found) == set(expected)
        for name, gradient in expected.items():
            # Both of PyTorch's biases act where our one does and have the same gradient.
            gradient = gradient[0] if isinstance(gradient, tuple) else gradient
            assert_gradient(found[name].value, gradient)


def test_gru_before_the_product_is_not_pytorchs(x64, rng, key):
    torch.manual_seed(3)
    theirs = torch_layer('gru', {}, 3, 4, bias=False)
    ours = load(GRU(3, 4, key, bias=False), 'gru', theirs)
    seq = rng.standard_normal((6, 3))
    difference = np.abs(ours.forward(seq) - theirs(torch.tensor(seq))[0].detach().numpy())
    assert difference.max() > 1e-3


@functools.partial(jax.jit, compiler_options=FAST)
def padded_value_and_gradients(network, padded, lengths, weights):
    def loss(network, padded):
        y = forward_padded(network, padded, lengths)
        return (y * weights).sum(), y

    (_, y), gradients = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(network, padded)
    return y, gradients


def assert_gradients_of_two_layers(network, cell, theirs):
    for index, layer in enumerate(network.layers):
        for part, end in ((layer.layer_fwd, ''), (layer.layer_bwd, '_reverse')):
            expected = named_arrays(cell, theirs, f'_l{index}{end}', lambda t: t.grad)
            for name, param in part.named_params().items():
                gradient = expected[name]
                gradient = gradient[0] if isinstance(gradient, tuple) else gradient
                assert_gradient(param.value, gradient)


@pytest.mark.parametrize('cell', ['rnn', 'gru', 'lstm'])
def test_two_bidirectional_layers_on_padded_sequences_equal_pytorch(cell, x64, rng, key):
    torch.manual_seed(4)
    options = {'gru': {'reset_after': True}, 'lstm': {'peepholes': False}}.get(cell, {})
    layers = [
        Bidirectional(*(OURS[cell](n_in, 4, key, **options) for _ in range(2))) for n_in in (3, 8)
    ]
    lengths = [2, 7, 1, 5]
    for _ in range(34):  # 102 random configurations
        theirs = torch_layer(cell, {}, 3, 4, bias=True, bidirectional=True, num_layers=2)
        for index, layer in enumerate(layers):
            load(layer.layer_fwd, cell, theirs, f'_l{index}')
            load(layer.layer_bwd, cell, theirs, f'_l{index}_reverse')
        padded, weights = rng.standard_normal((4, 7, 3)), rng.standard_normal((4, 7, 8))
        torch_padded = torch.tensor(padded, requires_grad=True)
        packed = torch.nn.utils.rnn.pack_padded_sequence(
            torch_padded, lengths, batch_first=True, enforce_sorted=False
        )
        expected, _ = torch.nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
        (expected * torch.tensor(weights)).sum().backward()
        y, (gradients, padded_gradient) = padded_value_and_gradients(
            Sequential(*layers), jnp.asarray(padded), jnp.array(lengths), jnp.asarray(weights)
        )
        np.testing.assert_allclose(y, expected.detach(), rtol=0, atol=1e-10)
        assert_gradient(padded_gradient, torch_padded.grad)
        assert_gradients_of_two_layers(gradients, cell, theirs)


@pytest.mark.parametrize('cell', ['rnn', 'gru', 'lstm'])
def test_final_states_of_padded_sequences_equal_pytorch(cell, x64, rng, key):
    torch.manual_seed(5)
    options = {'gru': {'reset_after': True}, 'lstm': {'peepholes': False}}.get(cell, {})
    theirs = torch_layer(cell, {}, 3, 4, bias=True)
    ours = load(OURS[cell](3, 4, key, **options), cell, theirs)
    lengths = [2, 7, 1, 5]
    padded = rng.standard_normal((4, 7, 3))
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        torch.tensor(padded), lengths, batch_first=True, enforce_sorted=False
    )
    _, expected = theirs(packed)
    _, found = unroll_padded(ours, padded, np.array(lengths))
    for part, torch_part in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
        np.testing.assert_allclose(part, torch_part[0].detach(), rtol=0, atol=1e-10)
