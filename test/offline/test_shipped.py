"""The script of the shipped weights: what it trains, and what the card tells."""

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
OPTIONS = TrainingOptions(hidden_size=4, n_steps=9)


def draws(options, progress):
    """Stand in for training: weights as they are drawn."""
    spec = spec_of(options)
    network = build_network(spec.network, jax.random.key(options.seed))
    progress(1, 0.5)
    return SequenceModel(replace(spec, card={'training': asdict(options)}), network)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(shipped, 'train', draws)
    monkeypatch.setattr(shipped, 'SHIPPED', {NAME: OPTIONS})
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


def test_the_options_are_followed_and_the_card_tells_them(monkeypatch, tmp_path):
    model = made(monkeypatch, tmp_path / 'new folder', '--steps', '2')
    expected = weights_of(draws(OPTIONS, lambda *_: None))
    for name, value in weights_of(model).items():
        np.testing.assert_array_equal(value, expected[name])
    card = model.spec.card
    assert card['training'] == {**asdict(OPTIONS), 'n_steps': 2}
    assert 0 < card['scores']['kalman_tuned_on_each_recording'] <= card['scores']['kalman']


def test_scores_alone_are_made_anew(monkeypatch, tmp_path):
    before = made(monkeypatch, tmp_path)
    monkeypatch.setattr(shipped, 'SCORE_SEED', 5)
    after = made(monkeypatch, tmp_path, '--rescore')
    assert after.spec.card['training'] == before.spec.card['training']
    assert after.spec.card['scores'] != before.spec.card['scores']
    for name, value in weights_of(after).items():
        np.testing.assert_array_equal(value, weights_of(before)[name])


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
        assert model.spec.card['training']['n_steps'] == 1
        assert f'{name}.safetensors: ' in done.stdout
