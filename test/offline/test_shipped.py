"""The script of the shipped weights: parts that go on from each other, and what the card tells."""

from dataclasses import asdict
from dataclasses import replace
import subprocess
import sys

import jax
import numpy as np
import pytest

from seqmem_ros.core.estimators import FILTERS
from seqmem_ros.core.model import build_network
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.weights import load_model
from seqmem_ros.offline import shipped
from seqmem_ros.offline.train import spec_of
from seqmem_ros.offline.train import TrainingOptions

NAME = 'velocity_gru'
FIRST = TrainingOptions(hidden_size=4, n_steps=9)
PARTS = FIRST, replace(FIRST, learning_rate=1e-3, seed=1)


def adds_one(options, progress, begin):
    """Stand in for training: fresh weights, or those before with 1 added to each."""
    spec = spec_of(options)
    network = build_network(spec.network, jax.random.key(options.seed))
    if begin:
        network = jax.tree.map(lambda value: value + 1, begin.network)
    progress(1, 0.5)
    return SequenceModel(replace(spec, card={'training': asdict(options)}), network)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(shipped, 'train', adds_one)
    monkeypatch.setattr(shipped, 'SHIPPED', {NAME: PARTS})
    monkeypatch.setattr(shipped, 'FILTERS', {'kalman': FILTERS['kalman']})
    monkeypatch.setattr(shipped, 'SCORE_RECORDINGS', 3)
    monkeypatch.setattr(shipped, 'SCORE_SAMPLES', 48)


def made(monkeypatch, out, *arguments):
    """Run the script and read what it wrote."""
    monkeypatch.setattr(sys, 'argv', ['weights', '--out', str(out), *arguments])
    assert shipped.main() == 0
    return load_model(out / f'{NAME}.safetensors')


def weights_of(model):
    """Return all weights by name."""
    return {name: np.asarray(p.value) for name, p in model.network.named_params().items()}


def test_parts_follow_each_other_and_the_card_tells_all(monkeypatch, tmp_path):
    model = made(monkeypatch, tmp_path / 'whole', '--steps', '2')
    fresh = adds_one(FIRST, lambda *_: None, None)
    for name, value in weights_of(model).items():
        np.testing.assert_array_equal(value, weights_of(fresh)[name] + 1)
    card = model.spec.card
    assert [part['seed'] for part in (*card['before'], card['training'])] == [0, 1]
    assert [part['n_steps'] for part in (*card['before'], card['training'])] == [2, 2]
    assert 0 < card['scores']['kalman_tuned_on_each_recording'] <= card['scores']['kalman']
    # The last part alone, from a folder.
    further = made(monkeypatch, tmp_path / 'on', '--begin', str(tmp_path / 'whole'))
    for name, value in weights_of(further).items():
        np.testing.assert_allclose(value, weights_of(fresh)[name] + 2, rtol=1e-6)
    assert [part['n_steps'] for part in further.spec.card['before']] == [2, 2]


def test_scores_alone_are_made_anew(monkeypatch, tmp_path):
    before = made(monkeypatch, tmp_path)
    monkeypatch.setattr(shipped, 'SCORE_SEED', 5)
    after = made(monkeypatch, tmp_path, '--rescore')
    assert after.spec.card['training'] == before.spec.card['training']
    assert after.spec.card['scores'] != before.spec.card['scores']
    for name, value in weights_of(after).items():
        np.testing.assert_array_equal(value, weights_of(before)[name])


def test_what_is_shipped_begins_with_seed_0_and_counts_up():
    for parts in shipped.SHIPPED.values():
        assert [options.seed for options in parts] == list(range(len(parts)))
        assert len({(options.model, options.hidden_size) for options in parts}) == 1


def test_two_are_trained_side_by_side(tmp_path):
    """For real, in processes of their own, which know nothing of the small things above."""
    names = 'velocity_gru', 'motion_gru'
    only = [word for name in names for word in ('--only', name)]
    command = [sys.executable, '-m', 'seqmem_ros.offline.shipped', *only, '--steps', '1']
    done = subprocess.run(
        [*command, '--out', tmp_path], capture_output=True, text=True, timeout=240, check=True
    )
    for name in names:
        model = load_model(tmp_path / f'{name}.safetensors')
        assert model.spec.task == {'velocity_gru': 'velocity', 'motion_gru': 'label'}[name]
        assert [part['n_steps'] for part in model.spec.card['before']] == [1]
        assert f'{name}.safetensors: ' in done.stdout
