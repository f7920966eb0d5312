"""
How long a recurrent layer can remember one symbol: the recall task.

A sequence of T random symbols goes by, and after the last one the first is asked for. Each network
is one recurrent layer of 32 units under a dense layer, trained with Adam on fresh sequences, and
scored on sequences that it has not seen. The task is that of experiment 2 in Hochreiter and
Schmidhuber, *Long short-term memory*, Neural Computation 9 (1997), section 5.2, with symbols in
between that are random: the gradient that a plain recurrent network learns from fades as T grows.

    python benchmarks/recall.py                          the whole table, minutes
    python benchmarks/recall.py --lengths 5 10 --steps 300 --seeds 1

The table goes to stdout row by row, what is done and how long the rest will take to stderr.
"""

import argparse
from collections.abc import Sequence
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

from seqmem_ros.nn import recurrent_net
from seqmem_ros.nn import Sequential
from seqmem_ros.offline.losses import cross_entropy
from seqmem_ros.offline.training import make_optimizer

N_SYMBOLS = 8
N_HIDDEN = 32
LENGTHS = (5, 10, 20, 50)
CELLS = {
    'plain RNN': {'cell': 'rnn'},
    'LSTM': {'cell': 'lstm', 'forget_bias': 2.0},
    'GRU': {'cell': 'gru'},
}
N_STEPS = 1500
N_SEEDS = 3
N_SCORED = 2000
BATCH = 64
LEARNING_RATE = 3e-3


def make_network(name: str, key: jax.Array) -> Sequential:
    """
    Build one of the networks.

    :param name: out of :data:`CELLS`
    :param key: random key
    :returns: network from (T, 8) to the logits of the first symbol, (8,)
    """
    options = CELLS[name]
    return recurrent_net(N_SYMBOLS, N_HIDDEN, N_SYMBOLS, key, last_only=True, **options)


def draw(key: jax.Array, n_sequences: int, length: int) -> tuple[jax.Array, jax.Array]:
    """
    Draw sequences.

    :param key: random key
    :param n_sequences: number of sequences
    :param length: T, in symbols
    :returns: symbols as unit vectors, (n_sequences, T, 8), and the index of the first of each
    """
    symbols = jax.random.randint(key, (n_sequences, length), 0, N_SYMBOLS)
    return jax.nn.one_hot(symbols, N_SYMBOLS), symbols[:, 0]


def loss_of(network: Sequential, key: jax.Array, length: int) -> jax.Array:
    """
    Compute the loss on a fresh batch.

    :param network: to train
    :param key: random key of the batch
    :param length: T
    :returns: in nats
    """
    inputs, first = draw(key, BATCH, length)
    return cross_entropy(network.forward(inputs), first)


def recall_share(name: str, length: int, seed: jax.Array, n_steps: int) -> jax.Array:
    """
    Train one network and score it.

    :param name: out of :data:`CELLS`
    :param length: T
    :param seed: of weights and sequences
    :param n_steps: of Adam
    :returns: share of right answers on fresh sequences
    """
    network_key, training_key, scoring_key = jax.random.split(jax.random.key(seed), 3)
    network = make_network(name, network_key)
    optimizer = make_optimizer('adam', LEARNING_RATE, max_grad_norm=1.0)

    def learn(carry: tuple, key: jax.Array) -> tuple[tuple, None]:
        network, opt_state = carry
        gradient = jax.grad(loss_of)(network, key, length)
        updates, opt_state = optimizer.update(gradient, opt_state, network)
        return (optax.apply_updates(network, updates), opt_state), None

    carry = network, optimizer.init(network)
    (network, _), _ = jax.lax.scan(learn, carry, jax.random.split(training_key, n_steps))
    inputs, first = draw(scoring_key, N_SCORED, length)
    return (network.forward(inputs).argmax(-1) == first).mean()


def recall_shares(name: str, length: int, n_seeds: int, n_steps: int) -> np.ndarray:
    """
    Train and score one network from several seeds at once.

    :param name: out of :data:`CELLS`
    :param length: T
    :param n_seeds: seeds 0, 1, ...
    :param n_steps: of Adam
    :returns: share of right answers for each seed
    """
    # Seeds side by side fill the processor better than one after another.
    run = jax.jit(jax.vmap(lambda seed: recall_share(name, length, seed, n_steps)))
    return np.asarray(run(jnp.arange(n_seeds)))


class Progress:
    """
    Tell on stderr what is done and how long the rest will take.

    :param lengths: T of each column
    :param cells: names of the rows
    """

    def __init__(self, lengths: Sequence[int], cells: Sequence[str]):
        self.n_left = self.n_all = len(lengths) * len(cells)
        self.left = sum(_work(name, length) for name in cells for length in lengths)
        self.done = 0
        self.start_s = time.monotonic()

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.start_s

    def tell(self, name: str, length: int, shown: str) -> None:
        """
        Count one cell of the table.

        :param name: of its row
        :param length: T of its column
        :param shown: its numbers
        """
        self.n_left -= 1
        self.done += _work(name, length)
        self.left -= _work(name, length)
        print(
            f'{name}, T = {length}:{shown}  ({self.n_all - self.n_left} of {self.n_all} after '
            f'{self.elapsed_s:.0f} s, about {self.elapsed_s * self.left / self.done:.0f} s left)',
            file=sys.stderr,
            flush=True,
        )


def _work(name: str, length: int) -> int:
    # Samples times gates; what a short sequence costs beside that is about ten samples more.
    return (length + 10) * {'rnn': 1, 'gru': 3, 'lstm': 4}[CELLS[name]['cell']]


def main(argv: Sequence[str] | None = None) -> None:
    """
    Print the table.

    :param argv: arguments without the program's name; None: those of the process
    """
    parser = argparse.ArgumentParser(description='Train RNN, LSTM and GRU on the recall task.')
    parser.add_argument('--lengths', type=int, nargs='+', default=LENGTHS, help='T, in symbols')
    parser.add_argument('--cells', nargs='+', default=list(CELLS), choices=list(CELLS))
    parser.add_argument('--steps', type=int, default=N_STEPS, help='of Adam (%(default)s)')
    parser.add_argument('--seeds', type=int, default=N_SEEDS, help='how many (%(default)s)')
    args = parser.parse_args(argv)
    print(
        f'right answers in % on {N_SCORED} fresh sequences, one number a seed '
        f'(chance: {100 / N_SYMBOLS:.1f}); {args.steps} steps'
    )
    width = 7 * args.seeds
    header = ''.join(f'  {f"T = {length}":>{width}}' for length in args.lengths)
    print(f'{"":<10}{header}', flush=True)
    progress = Progress(args.lengths, args.cells)
    for name in args.cells:
        row = ''
        for length in args.lengths:
            shares = recall_shares(name, length, args.seeds, args.steps)
            shown = ''.join(f'{100 * share:7.1f}' for share in shares)
            progress.tell(name, length, shown)
            row += f'  {shown:>{width}}'
        print(f'{name:<10}{row}', flush=True)
    print(f'{progress.elapsed_s:.0f} s')


if __name__ == '__main__':
    main()
