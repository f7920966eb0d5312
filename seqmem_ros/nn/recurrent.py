"""Recurrent layers: RNN, GRU and LSTM, with the names and numbers of the papers."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from seqmem_ros.nn.dense import ACTIVATIONS
from seqmem_ros.nn.dense import check_activation
from seqmem_ros.nn.initializers import Initializer
from seqmem_ros.nn.module import Param
from seqmem_ros.nn.recurrent_layer import beside
from seqmem_ros.nn.recurrent_layer import RecurrentLayer

LSTMState = tuple[jax.Array, jax.Array]


class RNN(RecurrentLayer):
    """
    The simple recurrent layer.

    ``h = f(W x + U h_prev + b)``. Elman, *Finding structure in time*, Cognitive Science 14 (1990),
    pages 179 to 211, Fig. 2; with tanh or relu for his logistic function, as in PyTorch.

    W has shape (n_hidden, n_in), U (n_hidden, n_hidden), b (n_hidden,). The state is h.

    :param n_in: width of the samples
    :param n_hidden: width of the state
    :param key: random key
    :param activation: ``tanh`` or ``relu``
    :param bias: False leaves b out
    :param layer_norm: normalise the pre-activation, gain ``g``; see :class:`RecurrentLayer`
    :param initializer: name or function, for W, and for U where it has no own
    :param recurrent_initializer: name or function, for U
    :raises ValueError: for an unknown activation or initialiser
    """

    _gates = ('',)

    def __init__(
        self,
        n_in: int,
        n_hidden: int,
        key: jax.Array,
        *,
        activation: str = 'tanh',
        bias: bool = True,
        layer_norm: bool = False,
        initializer: str | Initializer = 'xavier_normal',
        recurrent_initializer: str | Initializer | None = None,
    ):
        super().__init__(n_in, n_hidden)
        self.activation = check_activation(activation, ('tanh', 'relu'))
        self.layer_norm = layer_norm
        w_key, u_key = jax.random.split(key)
        self._add_matrix('W', '', w_key, initializer)
        self._add_matrix('U', '', u_key, recurrent_initializer or initializer)
        self._add_bias('', bias)
        self._add_gains()

    def _cell(self) -> Callable[[jax.Array, jax.Array], jax.Array]:
        U = self._matrices('U', ('',))
        f = ACTIVATIONS[self.activation]
        return lambda inputs, h: f(self._norm('', inputs + h @ U))


class GRU(RecurrentLayer):
    """
    The gated recurrent unit.

    ::

        r  = sigmoid(W_r x + U_r h_prev + b_r)          reset gate
        z  = sigmoid(W_z x + U_z h_prev + b_z)          update gate
        h~ = tanh(W x + U (r h_prev) + b)               candidate
        h  = z h_prev + (1 - z) h~

    Cho et al., *Learning phrase representations using RNN encoder-decoder for statistical machine
    translation*, EMNLP 2014, section 2.3, Eqs. 5 to 8: the reset gate acts before the recurrent
    product. (The equations there leave the biases out.)

    With ``reset_after`` it acts after it, ``h~ = tanh(W x + r (U h_prev + b_U) + b)``: the variant
    of cuDNN, of PyTorch and of Keras, whose weights fit only this one.

    W, W_r, W_z have shape (n_hidden, n_in), U, U_r, U_z (n_hidden, n_hidden), b, b_r, b_z, b_U
    (n_hidden,). The state is h.

    :param n_in: width of the samples
    :param n_hidden: width of the state
    :param key: random key
    :param reset_after: apply the reset gate after the recurrent product
    :param bias: False leaves all biases out
    :param layer_norm: normalise the three pre-activations, gains ``g_r g_z g``; see
        :class:`RecurrentLayer`
    :param initializer: name or function, for the input matrices, and for the recurrent ones where
        they have no own
    :param recurrent_initializer: name or function, for the recurrent matrices
    :raises ValueError: for an unknown initialiser
    """

    _gates = ('r', 'z', '')

    def __init__(
        self,
        n_in: int,
        n_hidden: int,
        key: jax.Array,
        *,
        reset_after: bool = False,
        bias: bool = True,
        layer_norm: bool = False,
        initializer: str | Initializer = 'xavier_normal',
        recurrent_initializer: str | Initializer | None = None,
    ):
        super().__init__(n_in, n_hidden)
        self.reset_after = reset_after
        self.layer_norm = layer_norm
        keys = iter(jax.random.split(key, 6))
        for gate in self._gates:
            self._add_matrix('W', gate, next(keys), initializer)
            self._add_matrix('U', gate, next(keys), recurrent_initializer or initializer)
            self._add_bias(gate, bias)
        self.b_U = Param(jnp.zeros(n_hidden)) if bias and reset_after else None
        self._add_gains()

    def _advance(self, x: jax.Array, h: jax.Array) -> jax.Array:
        if not self.reset_after or self.layer_norm:
            return super()._advance(x, h)
        # Columns r, z and the two parts of the candidate, which the reset gate keeps apart.
        W, U, n = self._matrices('W', self._gates), self._matrices('U', self._gates), self.n_hidden
        rows_x = jnp.concatenate([W, jnp.zeros((self.n_in, n), W.dtype)], axis=1)
        rows_h = jnp.concatenate(
            [U[:, : 2 * n], jnp.zeros((n, n), U.dtype), U[:, 2 * n :]], axis=1
        )
        products = beside(x, h) @ jnp.concatenate([rows_x, rows_h])
        if self.b_U is not None:
            products += jnp.concatenate([*map(self._bias, self._gates), self.b_U.value])
        a_r, a_z, a_x, a_h = jnp.split(products, 4, axis=-1)
        candidate = jnp.tanh(a_x + jax.nn.sigmoid(a_r) * a_h)
        z = jax.nn.sigmoid(a_z)
        return z * h + (1 - z) * candidate

    def _cell(self) -> Callable[[jax.Array, jax.Array], jax.Array]:
        U_rz = self._matrices('U', ('r', 'z'))
        U = self._matrices('U', ('',))
        b_U = 0.0 if self.b_U is None else self.b_U.value

        def advance(inputs: jax.Array, h: jax.Array) -> jax.Array:
            in_r, in_z, in_h = jnp.split(inputs, 3, axis=-1)
            re_r, re_z = jnp.split(h @ U_rz, 2, axis=-1)
            r = jax.nn.sigmoid(self._norm('r', in_r + re_r))
            z = jax.nn.sigmoid(self._norm('z', in_z + re_z))
            re_h = r * (h @ U + b_U) if self.reset_after else (r * h) @ U
            candidate = jnp.tanh(self._norm('', in_h + re_h))
            return z * h + (1 - z) * candidate

        return advance


class LSTM(RecurrentLayer):
    """
    Long short-term memory.

    ::

        z = tanh(W_z x + R_z y_prev + b_z)                      block input
        i = sigmoid(W_i x + R_i y_prev + p_i c_prev + b_i)      input gate
        f = sigmoid(W_f x + R_f y_prev + p_f c_prev + b_f)      forget gate
        c = z i + c_prev f                                      cell
        o = sigmoid(W_o x + R_o y_prev + p_o c + b_o)           output gate
        y = tanh(c) o                                           block output

    Greff et al., *LSTM: a search space odyssey*, IEEE TNNLS 28 (2017), section II.A (arXiv
    1503.04069): the vanilla LSTM with peepholes p, which multiply element by element.
    Without peepholes it equals PyTorch's and Keras's.

    W_* have shape (n_hidden, n_in), R_* (n_hidden, n_hidden), b_* and p_* (n_hidden,). The state
    is the pair (y, c).

    :param n_in: width of the samples
    :param n_hidden: width of y and of c
    :param key: random key
    :param peepholes: False leaves p_i, p_f, p_o out; they start at zero
    :param forget_bias: what b_f starts at; 1 or 2 keeps the memory open when training begins
        (Jozefowicz, Zaremba and Sutskever, *An empirical exploration of recurrent network
        architectures*, ICML 2015, p. 2342)
    :param bias: False leaves all biases out
    :param layer_norm: normalise the four pre-activations, gains ``g_z g_i g_f g_o``; see
        :class:`RecurrentLayer`
    :param initializer: name or function, for the input matrices, and for the recurrent ones where
        they have no own
    :param recurrent_initializer: name or function, for the recurrent matrices
    :raises ValueError: for an unknown initialiser, or a forget bias where there are no biases
    """

    _gates = ('z', 'i', 'f', 'o')

    def __init__(
        self,
        n_in: int,
        n_hidden: int,
        key: jax.Array,
        *,
        peepholes: bool = True,
        forget_bias: float = 0.0,
        bias: bool = True,
        layer_norm: bool = False,
        initializer: str | Initializer = 'xavier_normal',
        recurrent_initializer: str | Initializer | None = None,
    ):
        super().__init__(n_in, n_hidden)
        if forget_bias and not bias:
            raise ValueError(f'forget_bias={forget_bias} needs bias=True')
        self.peepholes = peepholes
        self.layer_norm = layer_norm
        keys = iter(jax.random.split(key, 8))
        for gate in self._gates:
            self._add_matrix('W', gate, next(keys), initializer)
        for gate in self._gates:
            self._add_matrix('R', gate, next(keys), recurrent_initializer or initializer)
        for gate in self._gates:
            self._add_bias(gate, bias)
        if bias:
            self.b_f.value = forget_bias
        for name in ('p_i', 'p_f', 'p_o'):
            setattr(self, name, Param(jnp.zeros(n_hidden)) if peepholes else None)
        self._add_gains()

    def init_state(self, batch: int | None = None, n_in: int | None = None) -> LSTMState:
        """
        Make the zero state.

        :param batch: number of independent streams, None for a single one
        :param n_in: not used
        :returns: the pair (y, c), each zeros, (n_hidden,) or (batch, n_hidden), dimensionless
        """
        zero = super().init_state(batch)
        return zero, zero

    def _output(self, state: LSTMState) -> jax.Array:
        return state[0]

    def _check_state(self, batch_shape: tuple[int, ...], state: LSTMState) -> None:
        if not isinstance(state, (tuple, list)) or len(state) != 2:
            raise ValueError('LSTM expected its state as the pair (y, c); make it with init_state')
        super()._check_state(batch_shape, state)

    def _advance(self, x: jax.Array, state: LSTMState) -> LSTMState:
        W, R = self._matrices('W', self._gates), self._matrices('R', self._gates)
        products = beside(x, state[0]) @ jnp.concatenate([W, R])
        if self.b_z is not None and not self.layer_norm:
            products += jnp.concatenate([*map(self._bias, self._gates)])
        return self._gated(products, state)

    def _cell(self) -> Callable[[jax.Array, LSTMState], LSTMState]:
        R = self._matrices('R', self._gates)
        return lambda inputs, state: self._gated(inputs + state[0] @ R, state)

    def _gated(self, products: jax.Array, state: LSTMState) -> LSTMState:
        p_i, p_f, p_o = (
            p.value if self.peepholes else 0.0 for p in (self.p_i, self.p_f, self.p_o)
        )
        c = state[1]
        a_z, a_i, a_f, a_o = jnp.split(products, 4, axis=-1)
        z = jnp.tanh(self._norm('z', a_z))
        i = jax.nn.sigmoid(self._norm('i', a_i + p_i * c))
        f = jax.nn.sigmoid(self._norm('f', a_f + p_f * c))
        c = z * i + c * f
        o = jax.nn.sigmoid(self._norm('o', a_o + p_o * c))
        return jnp.tanh(c) * o, c
