"""The script of the shipped weights: two parts, the second from the first or from files."""

import sys

import numpy as np
import pytest

from seqmem_ros.core.weights import load_model
from seqmem_ros.offline import shipped
from seqmem_ros.offline import train as training
from seqmem_ros.offline.train import TrainingOptions

FIRST = TrainingOptions(hidden_size=4, n_steps=9, batch_size=4, n_samples=24)
THEN = TrainingOptions(hidden_size=4, n_steps=9, batch_size=4, n_samples=24, seed=1)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(training, 'POOL_BATCHES', 2)
    monkeypatch.setattr(shipped, 'SHIPPED', {'velocity_gru': (FIRST, THEN)})
    monkeypatch.setattr(shipped, 'SCORE_RECORDINGS', 3)
    monkeypatch.setattr(shipped, 'SCORE_SAMPLES', 48)


def made(monkeypatch, out, *arguments):
    monkeypatch.setattr(sys, 'argv', ['weights', '--out', str(out), '--steps', '2', *arguments])
    assert shipped.main() == 0
    return load_model(out / 'velocity_gru.safetensors')


def weights_of(model):
    return {name: np.asarray(p.value) for name, p in model.network.named_params().items()}


def test_the_card_tells_both_parts_and_the_scores(monkeypatch, tmp_path):
    card = made(monkeypatch, tmp_path).spec.card
    assert [part['seed'] for part in (*card['before'], card['training'])] == [0, 1]
    assert [part['n_steps'] for part in (*card['before'], card['training'])] == [2, 2]
    assert 0 < card['scores']['kalman_tuned_on_each_recording'] <= card['scores']['kalman']


def test_the_second_part_goes_on_from_the_files_of_a_folder(monkeypatch, tmp_path):
    started = made(monkeypatch, tmp_path / 'one')
    # A learning rate of next to nothing shows what it began with.
    slow = FIRST, TrainingOptions(**vars(THEN) | {'learning_rate': 1e-12})
    monkeypatch.setattr(shipped, 'SHIPPED', {'velocity_gru': slow})
    again = made(monkeypatch, tmp_path / 'two', '--begin', str(tmp_path / 'one'))
    for name, value in weights_of(again).items():
        np.testing.assert_allclose(value, weights_of(started)[name], atol=1e-9)
    assert again.spec.card['before'][-1] == started.spec.card['training']
    assert again.spec.card['before'][:-1] == started.spec.card['before']


def test_scores_alone_are_made_anew(monkeypatch, tmp_path):
    before = made(monkeypatch, tmp_path)
    monkeypatch.setattr(shipped, 'SCORE_SEED', 5)
    after = made(monkeypatch, tmp_path, '--rescore')
    assert after.spec.card['training'] == before.spec.card['training']
    assert after.spec.card['scores'] != before.spec.card['scores']
    for name, value in weights_of(after).items():
        np.testing.assert_array_equal(value, weights_of(before)[name])
