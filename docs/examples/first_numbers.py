"""
The first numbers: each layer on an input small enough for a pocket calculator.

    GRU    z = r = sigmoid(1), h~ = tanh(2 + r / 2), h = z / 2 + (1 - z) h~    0.6298
    LSTM   all gates sigmoid(0.5), c = i tanh(0.5) + 0.2 f, y = o tanh(c)      0.2429
    attention   weights softmax(1 / sqrt(2), 0) on the values 10 and 20       13.3024

Prints::

    GRU        0.6298
    LSTM       0.2429
    attention  13.3024
    parameter arrays: attention 4, lstm 17, gru 11, rnn 5
    transformer on (5, 4): (3,)
    d_model=8 is not divisible by n_heads=3
"""

import jax
import jax.numpy as jnp

from seqmem_ros import nn

key = jax.random.key(0)


def gru_output() -> float:
    """Give h after one sample: W_r = W_z = U = 1, W = 2, the rest 0; x = 1, h_prev = 0.5."""
    gru = nn.GRU(1, 1, key)
    gru.W_r.value, gru.U_r.value = 1, 0
    gru.W_z.value, gru.U_z.value = 1, 0
    gru.W.value, gru.U.value = 2, 1
    output, _ = gru.step(jnp.array([1.0]), jnp.array([0.5]))
    return output.item()


def lstm_output() -> float:
    """Give y after one sample: all W = 1, the rest 0; x = 0.5, state (y, c) = (0.1, 0.2)."""
    lstm = nn.LSTM(1, 1, key)
    for name, param in lstm.named_params().items():
        param.value = 1 if name.startswith('W') else 0
    output, _ = lstm.step(jnp.array([0.5]), (jnp.array([0.1]), jnp.array([0.2])))
    return output.item()


def attention_output() -> float:
    """Mix the values 10 and 20 for a query that matches the first key."""
    q, k, v = jnp.array([1, 0]), jnp.eye(2), jnp.array([10, 20])
    return nn.scaled_dot_product_attention(q, k, v).item()


def main() -> None:
    print(f'GRU        {gru_output():.4f}')
    print(f'LSTM       {lstm_output():.4f}')
    print(f'attention  {attention_output():.4f}')
    arrays = {
        cell: len(nn.recurrent_net(3, 4, 2, key, cell).params()) for cell in ('lstm', 'gru', 'rnn')
    }
    counts = {'attention': len(nn.MultiHeadSelfAttention(8, 2, key).params()), **arrays}
    print('parameter arrays: ' + ', '.join(f'{name} {count}' for name, count in counts.items()))
    encoder = nn.transformer_encoder(4, 8, 2, 16, 1, 3, key, 16)
    print(f'transformer on (5, 4): {encoder.forward(jnp.ones((5, 4))).shape}')
    try:
        nn.MultiHeadSelfAttention(8, 3, key)
    except ValueError as error:
        print(error)


if __name__ == '__main__':
    main()
