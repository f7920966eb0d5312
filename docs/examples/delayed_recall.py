"""
Repeat what was said d samples ago: a window of attention has an end, a recurrent state has none.

At every sample the network is to give the bit that it saw d samples before. One layer of attention
over the last 5 samples sees the current one and four earlier ones: it solves d = 4, and at d = 5
it can only guess, however long it is trained. The GRU and the LSTM keep as many bits as they have
room for.

Prints::

    right answers in % (guessing: 50)
                         d = 4  d = 5
    attention, window 5    100     50
    GRU                    100    100
    LSTM                   100    100
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax

from seqmem_ros import nn
from seqmem_ros.offline.losses import cross_entropy
from seqmem_ros.offline.training import make_optimizer

WINDOW = 5
N_SAMPLES, BATCH = 24, 32
OPTIMIZER = make_optimizer('adam', 1e-2)
NETWORKS: dict[str, Callable[[jax.Array], nn.Sequential]] = {
    f'attention, window {WINDOW}': lambda key: nn.causal_transformer(
        2, 16, 2, 32, 1, 2, key, window=WINDOW
    ),
    'GRU': lambda key: nn.recurrent_net(2, 24, 2, key, cell='gru'),
    'LSTM': lambda key: nn.recurrent_net(2, 24, 2, key, cell='lstm', forget_bias=1.0),
}


def draw(key: jax.Array, n_sequences: int, delay: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Draw random bits; give them as unit vectors, the delayed bits, and where there are some."""
    bits = jax.random.bernoulli(key, shape=(n_sequences, N_SAMPLES)).astype(jnp.int32)
    known = jnp.broadcast_to(jnp.arange(N_SAMPLES) >= delay, bits.shape)
    return jax.nn.one_hot(bits, 2), jnp.roll(bits, delay, axis=1), known


def learn(carry: tuple, batch: tuple) -> tuple[tuple, None]:
    """Take one step of Adam on a fresh batch."""
    network, opt_state = carry
    inputs, delayed, known = draw(batch[0], BATCH, batch[1])
    gradient = jax.grad(lambda net: cross_entropy(net.forward(inputs), delayed, known))(network)
    updates, opt_state = OPTIMIZER.update(gradient, opt_state, network)
    return (optax.apply_updates(network, updates), opt_state), None


@jax.jit
def train_and_score(network: nn.Sequential, keys: jax.Array, delays: jax.Array) -> jax.Array:
    """Train on a batch for each key but the last; give the share of right answers on that."""
    carry = network, OPTIMIZER.init(network)
    (network, _), _ = jax.lax.scan(learn, carry, (keys[:-1], delays[:-1]))
    inputs, delayed, known = draw(keys[-1], 500, delays[-1])
    right = network.forward(inputs).argmax(-1) == delayed
    return (right & known).sum() / known.sum()


def right_share(name: str, delay: int, n_steps: int = 250, seed: int = 0) -> float:
    """Train a network and give its share of right answers on fresh sequences."""
    network_key, data_key = jax.random.split(jax.random.key(seed))
    keys = jax.random.split(data_key, n_steps + 1)
    delays = jnp.full(len(keys), delay)
    return float(train_and_score(NETWORKS[name](network_key), keys, delays))


def main() -> None:
    print('right answers in % (guessing: 50)')
    print(f'{"":<19}  d = 4  d = 5')
    for name in NETWORKS:
        shares = ''.join(f'{100 * right_share(name, delay):7.0f}' for delay in (4, 5))
        print(f'{name:<19}{shares}')


if __name__ == '__main__':
    main()
