"""A training that is interrupted and goes on ends as one that was not, to the bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.model import build_network
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.offline import fit as fitting
from seqmem_ros.offline.checkpoint import load_checkpoint
from seqmem_ros.offline.checkpoint import Place
from seqmem_ros.offline.checkpoint import save_checkpoint
from seqmem_ros.offline.fit import Course
from seqmem_ros.offline.fit import fit
from seqmem_ros.offline.packing import pack
from seqmem_ros.offline.packing import Training
from seqmem_ros.offline.resumable import learn
from seqmem_ros.offline.resumable import Plan
from seqmem_ros.offline.stateful import Learned
from seqmem_ros.offline.train import TrainingOptions

NETWORK = {'builder': 'recurrent_net', 'cell': 'gru', 'n_in': 2, 'n_hidden': 4, 'n_out': 2}
SPEC = ModelSpec(
    'label', NETWORK, 'direct', ('position', 'difference'), ('a',), labels=('low', 'high')
)
OPTIONS = TrainingOptions(task='label', n_steps=23, learning_rate=1e-2)


def sequences(seed, n=3):
    """Say of noise whether it was positive a sample ago: it takes memory."""
    rng = np.random.default_rng(seed)
    found = []
    for length in rng.integers(20, 40, n):
        raw = np.zeros((length, 1, 11), np.float32)
        raw[:, 0, 0] = rng.standard_normal(length)
        target = (np.roll(raw[:, 0, 0], 1) > 0).astype(np.int32)
        found.append(Training(raw, target, np.arange(length) >= 4))
    return found


COURSE = Course(
    lambda number: pack(sequences(number), 2, 8).chunks(8), pack(sequences(99), 2, 8), 2, 8
)


@pytest.fixture
def compiled_once(monkeypatch):
    """Share what is compiled between trainings of one length; what they learn is not shared."""
    for name in ('make_chunk_step', 'make_chunk_check'):
        original = getattr(fitting, name)

        def make(*args, name=name, original=original):
            return COMPILED.setdefault(name, original(*args))

        monkeypatch.setattr(fitting, name, make)


COMPILED = {}


def leaves(model, history):
    return [*map(np.asarray, jax.tree.leaves(model.network)), history.losses, history.checks]


class Stopped(Exception):
    pass


def interrupted_at(*steps):
    def progress(step, loss):
        if step in steps:
            raise Stopped

    return progress


def test_an_interrupted_training_ends_as_one_that_was_not(tmp_path, compiled_once):
    path = tmp_path / 'c'
    whole = leaves(*fit(SPEC, COURSE, OPTIONS))
    with pytest.raises(Stopped):
        fit(SPEC, COURSE, OPTIONS, path=path, progress=interrupted_at(5))
    with pytest.raises(Stopped):
        fit(SPEC, COURSE, OPTIONS, path=path, resume=True, progress=interrupted_at(17))
    steps = []
    again = fit(
        SPEC,
        COURSE,
        OPTIONS,
        path=path,
        resume=True,
        progress=lambda step, loss: steps.append(step),
    )
    assert steps == list(range(18, 24))
    for one, other in zip(whole, leaves(*again)):
        np.testing.assert_array_equal(one, other)
    # And the finished one is kept, too.
    done = leaves(*fit(SPEC, COURSE, OPTIONS, path=path, resume=True))
    np.testing.assert_array_equal(done[0], whole[0])
    with safe_open(path, 'numpy') as file:
        assert len(file.get_tensor('losses')) == 23


def test_a_seed_says_all_and_another_says_another(compiled_once):
    first, second = (leaves(*fit(SPEC, COURSE, OPTIONS)) for _ in range(2))
    np.testing.assert_array_equal(first[0], second[0])
    other = TrainingOptions(task='label', n_steps=23, learning_rate=1e-2, seed=1)
    assert not np.array_equal(first[0], leaves(*fit(SPEC, COURSE, other))[0])


def test_it_learns_what_takes_memory():
    options = TrainingOptions(task='label', n_steps=150, learning_rate=5e-2)
    _, history = fit(SPEC, COURSE, options)
    assert history.checks[0][1] > 0.6
    assert history.checks[-1][1] < 0.3


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    path = tmp_path / 'c'
    state = {'w': jnp.arange(3.0), 'n': jnp.array(7), 'b': jnp.array(True)}
    save_checkpoint(path, state, Place(4, 1, 2), np.arange(4.0), {'seed': 1}, [(0, 0.5)])
    found, place, losses, checks = load_checkpoint(path, state, {'seed': 1})
    np.testing.assert_array_equal(found['w'], [0, 1, 2])
    assert (int(found['n']), bool(found['b']), place) == (7, True, Place(4, 1, 2))
    assert (losses.tolist(), checks) == ([0, 1, 2, 3], [(0, 0.5)])
    with pytest.raises(SeqmemError) as error:
        load_checkpoint(path, state, {'seed': 2})
    with pytest.raises(SeqmemError, match='but hidden was not given and is 16; give the same'):
        load_checkpoint(path, state, {'seed': 1, 'hidden': 16})
    assert str(error.value) == (
        f'{path}: expected the training that was interrupted, but seed was 1 and is 2; give the '
        'same again, or start anew without --resume'
    )
    with pytest.raises(SeqmemError, match='its array 2 is not that of this training'):
        load_checkpoint(path, {**state, 'w': jnp.arange(4.0)}, {'seed': 1})
    path.write_bytes(b'nothing of it')
    with pytest.raises(SeqmemError, match='expected a checkpoint, but it cannot be read'):
        load_checkpoint(path, state, {'seed': 1})
    with pytest.raises(SeqmemError, match=r'nothing to resume: expected the checkpoint .*none$'):
        load_checkpoint(tmp_path / 'none', state, {})


def test_a_loss_that_is_not_finite_for_long_ends_the_training():
    plan = Plan(lambda learned: (learned, jnp.nan), lambda number: iter([()] * 100), 100)
    network = build_network(NETWORK, jax.random.key(0))
    with pytest.raises(SeqmemError) as error:
        learn(plan, Learned(network, (), ()))
    assert str(error.value) == 'training diverged at step 21: try a lower --learning-rate'
