"""Training on simulated joints: it learns, a seed says all, and the loss is what it says."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.model import build_network
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.motion import LABELS
from seqmem_ros.core.observer import N_STEERING
from seqmem_ros.core.observer import SteeredObserver
from seqmem_ros.core.weights import load_model
from seqmem_ros.core.weights import save_model
from seqmem_ros.offline import train as training
from seqmem_ros.offline.simulate import simulate
from seqmem_ros.offline.train import batches
from seqmem_ros.offline.train import fresh_network
from seqmem_ros.offline.train import loss_for
from seqmem_ros.offline.train import spec_of
from seqmem_ros.offline.train import stacked
from seqmem_ros.offline.train import train
from seqmem_ros.offline.train import TrainingOptions

TINY = TrainingOptions(
    hidden_size=8, n_steps=30, batch_size=8, n_samples=48, learning_rate=1e-2, seed=3
)


@pytest.fixture(autouse=True)
def small_pool(monkeypatch):
    """Simulate few recordings at once: a test needs no more."""
    monkeypatch.setattr(training, 'POOL_BATCHES', 4)


COMPILED = []


@pytest.fixture
def compiled_once(monkeypatch):
    """Share one compiled step between trainings that differ in their seed and data alone."""

    def make_train_step(*args):
        if not COMPILED:
            COMPILED.append(original(*args))
        return COMPILED[0]

    original = training.make_train_step
    monkeypatch.setattr(training, 'make_train_step', make_train_step)


def weights_of(model):
    """Return all weights by name."""
    return {name: np.asarray(p.value) for name, p in model.network.named_params().items()}


@pytest.fixture(scope='module')
def held_out():
    rng = np.random.default_rng(77)
    recordings = [simulate(rng, 48) for _ in range(64)]
    return recordings, stacked(recordings)


def velocity_loss(outputs, batch):
    """Mean over recordings of the logarithm of the root mean squared error, floored."""
    _, velocity, count, _ = batch
    squared = ((outputs[:, 5:, 0] - velocity[:, 5:]) ** 2).mean(axis=1)
    return np.mean(np.log(np.sqrt(squared + (3e-3 * count) ** 2)))


def outputs_of(network, batch, n_labels=0):
    """Run the filter over the lags of a batch, as it is trained: nothing is cut off."""
    observer = SteeredObserver(network, n_labels, bounded=False)
    return np.asarray(observer.forward(batch[0][..., 3:]), float)


def test_thirty_steps_lower_the_loss_of_recordings_never_seen(held_out, compiled_once):
    _, batch = held_out
    steps, losses = [], []
    model = train(TINY, lambda number, loss: (steps.append(number), losses.append(loss)))
    fresh = build_network(spec_of(TINY).network, jax.random.key(TINY.seed))
    before = velocity_loss(outputs_of(fresh, batch), batch)
    after = velocity_loss(outputs_of(model.network, batch), batch)
    assert after < before - 0.1
    assert steps == list(range(1, 31))
    assert np.isfinite(losses).all()


@pytest.mark.parametrize('model', ['gru', 'lstm', 'attention'])
def test_a_fresh_network_hardly_steers_its_filter(model):
    spec = spec_of(replace(TINY, model=model))
    drawn = build_network(spec.network, jax.random.key(5)).named_params()
    fresh = fresh_network(spec, 5).named_params()
    *_, output, bias = drawn
    assert fresh[bias].shape == (N_STEERING,)
    for name, param in drawn.items():
        share = 0.1 if name == output else 1.0
        np.testing.assert_allclose(fresh[name].value, share * np.asarray(param.value), rtol=1e-6)


def test_a_fresh_network_that_steers_nothing_is_as_drawn():
    spec = spec_of(TINY)
    network = {**spec.network, 'n_in': 4, 'n_out': 1}
    spec = replace(spec, readout='direct', features=('lag_velocity',), network=network)
    drawn = build_network(spec.network, jax.random.key(5)).named_params()
    for name, param in fresh_network(spec, 5).named_params().items():
        np.testing.assert_array_equal(param.value, drawn[name].value)


def test_a_seed_says_all(compiled_once):
    first, second, other = (weights_of(train(replace(TINY, seed=seed))) for seed in (3, 3, 4))
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name])
    assert any(not np.array_equal(value, other[name]) for name, value in first.items())


def test_the_weights_are_a_leaking_mean_over_the_last_steps(monkeypatch, compiled_once):
    made, passed = training.make_train_step, []

    def make_train_step(*args):
        step = made(*args)

        def remembered(*args):
            passed.append(step(*args))
            return passed[-1]

        return remembered

    monkeypatch.setattr(training, 'make_train_step', make_train_step)
    monkeypatch.setattr(training, 'AVERAGED_STEPS', 2)
    model = train(TINY)
    seen = [weights_of(SequenceModel(model.spec, network)) for network, _, _ in passed]
    for name, value in weights_of(model).items():
        # The tenth of the steps so far, at least 1 and at most AVERAGED_STEPS.
        expected = seen[0][name]
        for number, now in enumerate(seen, start=1):
            expected = expected + (now[name] - expected) / min(max(number / 10, 1), 2)
        np.testing.assert_allclose(value, expected, rtol=1e-5, atol=1e-7)
        assert not np.array_equal(value, seen[-1][name])


def test_what_is_trained_goes_into_a_file(tmp_path):
    model = train(replace(TINY, n_steps=2, n_samples=24, model='rnn', task='label'))
    path = tmp_path / 'm.safetensors'
    save_model(path, model)
    again = load_model(path)
    card = again.spec.card['training']
    assert (card['seed'], card['n_steps'], card['data']) == (3, 2, 'simulated')
    for name, value in weights_of(model).items():
        np.testing.assert_array_equal(value, weights_of(again)[name])
    estimator = load_estimator('auto', path)
    assert (estimator.name, estimator.labels) == ('rnn (label)', LABELS)


@pytest.mark.parametrize('task', ['velocity', 'label'])
@pytest.mark.parametrize('model', ['gru', 'lstm', 'rnn', 'attention'])
def test_the_spec_is_what_was_asked_for(model, task, tmp_path):
    options = replace(TINY, model=model, task=task, n_layers=2, hidden_size=24)
    spec = spec_of(options)
    path = tmp_path / 'm.safetensors'
    save_model(path, SequenceModel(spec, build_network(spec.network, jax.random.key(0))))
    again = load_model(path)
    assert (again.kind, again.spec.task) == (model, task)
    assert again.spec.labels == (LABELS if task == 'label' else ())
    assert again.spec.nominal_rate_hz == (50.0, 1000.0)
    shapes = [param.shape for param in again.network.params()]
    # Ten outputs steer the observer, two more make each logit; 23 features come in.
    assert shapes[-1] == (10 + (6 if task == 'label' else 0),)
    assert shapes[0] == (24, 23)
    wide = sum(shape == (24, 24) for shape in shapes)
    per_layer = {'gru': 3, 'lstm': 4, 'rnn': 1, 'attention': 4}[model]
    between = 0 if model == 'attention' else per_layer
    assert wide == 2 * per_layer + between


def test_the_loss_of_velocities_is_the_mean_log_of_the_error(held_out):
    _, batch = held_out
    network = build_network(spec_of(TINY).network, jax.random.key(0))
    expected = velocity_loss(outputs_of(network, batch), batch)
    assert float(loss_for(0)(network, *batch)) == pytest.approx(expected, rel=1e-4)


def test_the_loss_of_labels_is_cross_entropy_and_a_tenth_of_the_other(held_out):
    _, batch = held_out
    options = replace(TINY, task='label')
    network = build_network(spec_of(options).network, jax.random.key(0))
    outputs = outputs_of(network, batch, len(LABELS))
    logits = outputs[:, 5:, 1:]
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    index = batch[3][:, 5:]
    entropy = -np.mean(np.take_along_axis(log_p, index[..., None], axis=-1))
    expected = entropy + 0.1 * velocity_loss(outputs, batch)
    got = float(loss_for(len(LABELS))(network, *batch))
    assert got == pytest.approx(expected, rel=1e-4)


def test_a_memory_that_grows_beyond_ten_costs_as_much_as_it_is_beyond(held_out):
    _, batch = held_out
    options = replace(TINY, model='lstm')
    network = build_network(spec_of(options).network, jax.random.key(0))
    before = float(loss_for(0)(network, *batch))
    cell = network.layers[0]
    # A cell that counts one up with each sample, whatever it sees: 48 after 48 samples.
    for gate in 'fiz':
        getattr(cell, f'b_{gate}').value = getattr(cell, f'b_{gate}').value.at[0].set(50.0)
    # The output gate hides it from everybody else.
    cell.b_o.value = cell.b_o.value.at[0].set(-1e4)
    outputs = outputs_of(network, batch)
    expected = velocity_loss(outputs, batch) + (48 - 10) / 8
    after = float(loss_for(0)(network, *batch))
    # The two parts nearly cancel.
    assert after == pytest.approx(expected, abs=1e-5)
    assert before < 0


def test_the_gradient_is_finite_where_the_error_is_zero():
    """A joint that stands still from its first sample is estimated without any error."""
    rng = np.random.default_rng(0)
    recording = simulate(rng, 48, 'still')
    recording = replace(recording, position=np.full(48, 0.5))
    batch = stacked([recording])
    network = build_network(spec_of(TINY).network, jax.random.key(0))
    loss, gradient = jax.value_and_grad(loss_for(0))(network, *batch)
    count = 2 * np.pi / 2**recording.encoder.bits * recording.encoder.rate_hz
    assert float(loss) == pytest.approx(np.log(3e-3 * count), rel=1e-4)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def test_a_batch_holds_recordings_and_their_truth(held_out):
    recordings, (raw, velocity, count, labels) = held_out
    assert raw.shape == (64, 48, 11)
    for i, recording in enumerate(recordings):
        encoder = recording.encoder
        np.testing.assert_allclose(velocity[i], recording.velocity, rtol=1e-6)
        assert count[i] == pytest.approx(2 * np.pi / 2**encoder.bits * encoder.rate_hz, rel=1e-6)
        for t in range(48):
            v = recording.velocity[t]
            expected = 'stationary' if abs(v) < 0.02 else 'forward' if v > 0 else 'backward'
            assert LABELS[labels[i, t]] == expected


def test_a_pool_of_recordings_serves_three_times_in_another_order():
    stream = batches(replace(TINY, n_samples=12))
    passes = [[next(stream) for _ in range(4)] for _ in range(4)]
    keys = [[tuple(row) for batch in one for row in batch[0][:, -1].tolist()] for one in passes]
    assert len(set(keys[0])) == 32
    for other in keys[1:3]:
        assert sorted(other) == sorted(keys[0])
        assert other != keys[0]
    assert not set(keys[3]) & set(keys[0])
    for raw, velocity, count, labels in passes[0]:
        assert raw.shape == (8, 12, 11)
        assert velocity.shape == labels.shape == (8, 12)
        assert count.shape == (8,)


def test_a_loss_that_is_not_finite_for_long_ends_the_training(monkeypatch, compiled_once):
    def broken(options):
        for raw, velocity, *rest in batches(options):
            yield raw, np.full_like(velocity, np.nan), *rest

    monkeypatch.setattr(training, 'batches', broken)
    numbers = []
    with pytest.raises(SeqmemError) as error:
        train(TINY, lambda number, loss: numbers.append(number))
    assert str(error.value) == 'training diverged at step 21: try a learning_rate below 0.01'
    assert numbers == list(range(1, 21))


def test_a_loss_that_is_not_finite_now_and_then_teaches_nothing(monkeypatch, compiled_once):
    def mostly(options):
        for i, (raw, velocity, *rest) in enumerate(batches(options)):
            yield raw, velocity * (np.nan if i % 3 == 1 else 1), *rest

    monkeypatch.setattr(training, 'batches', mostly)
    losses = []
    model = train(TINY, lambda number, loss: losses.append(loss))
    np.testing.assert_array_equal(np.isnan(losses), np.arange(30) % 3 == 1)
    for value in weights_of(model).values():
        assert np.isfinite(value).all()


@pytest.mark.parametrize(
    ('changes', 'sentence'),
    [
        (
            {'model': 'gpt'},
            "model: expected one of gru, lstm, rnn, attention, transformer, got 'gpt'",
        ),
        ({'task': 'effort'}, "task: expected velocity or label, got 'effort'"),
        ({'n_steps': 0}, 'n_steps: expected at least 1, got 0'),
        ({'n_steps': -5}, 'n_steps: expected at least 1, got -5'),
        ({'batch_size': 0}, 'batch_size: expected at least 1, got 0'),
        ({'hidden_size': 0}, 'hidden_size: expected at least 1, got 0'),
        ({'n_layers': 0}, 'n_layers: expected at least 1, got 0'),
        ({'n_samples': 5}, 'n_samples: expected at least 6, got 5'),
        ({'seed': -1}, 'seed: expected at least 0, got -1'),
        ({'learning_rate': 0.0}, 'learning_rate: expected a number above 0, got 0.0'),
        ({'learning_rate': float('nan')}, 'learning_rate: expected a number above 0, got nan'),
    ],
)
def test_options_out_of_range(changes, sentence):
    with pytest.raises(SeqmemError) as error:
        TrainingOptions(**changes)
    assert str(error.value) == sentence


def test_a_width_that_heads_cannot_share():
    with pytest.raises(SeqmemError, match='d_model=30 is not divisible by n_heads=4'):
        train(TrainingOptions(model='attention', hidden_size=30))
