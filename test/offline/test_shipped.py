"""The script of the shipped weights: what it trains, and what the card tells."""

from dataclasses import asdict
from dataclasses import replace
import subprocess
import sys

import jax
import numpy as np
import pytest

from seqmem_ros.core.errors import SeqmemError
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


def made(out, *arguments):
    """Make a file in this process and read it."""
    shipped.make(shipped.Task(NAME, 0, shipped.parsed(['--out', str(out), *arguments])))
    return load_model(out / f'{NAME}.safetensors')


def weights_of(model):
    """Return all weights by name."""
    return {name: np.asarray(p.value) for name, p in model.network.named_params().items()}


def test_the_options_are_followed_and_the_card_tells_them(tmp_path):
    model = made(tmp_path / 'new folder', '--steps', '2')
    expected = weights_of(draws(OPTIONS, lambda *_: None))
    for name, value in weights_of(model).items():
        np.testing.assert_array_equal(value, expected[name])
    card = model.spec.card
    assert card['training'] == {**asdict(OPTIONS), 'n_steps': 2}
    assert 0 < card['scores']['kalman_tuned_on_each_recording'] <= card['scores']['kalman']


def test_scores_alone_are_made_anew(monkeypatch, tmp_path):
    before = made(tmp_path)
    monkeypatch.setattr(shipped, 'SCORE_SEED', 5)
    after = made(tmp_path, '--rescore')
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


def test_what_cannot_be_made_is_said(tmp_path, monkeypatch, capfd):
    names = 'velocity_gru', 'velocity_lstm'
    monkeypatch.setattr(shipped, 'SHIPPED', dict.fromkeys(names, OPTIONS))
    assert shipped.main(['--rescore', '--out', str(tmp_path)]) == 1
    said = capfd.readouterr().err
    for name in names:
        assert f'run weights: error: {name}: weights: expected a .safetensors file' in said
        assert f'found none at {tmp_path}/{name}.safetensors' in said


@pytest.mark.parametrize('option', ['--jobs', '--steps'])
def test_numbers_out_of_range(option, capsys):
    with pytest.raises(SystemExit):
        shipped.parsed([option, '0'])
    assert f'{option}: expected a number from 1 up, got 0' in capsys.readouterr().err


def test_a_folder_that_cannot_be_is_said_before_the_work(tmp_path):
    (tmp_path / 'file').touch()
    with pytest.raises(SeqmemError, match=r'--out: expected a folder, got .*file: File exists'):
        made(tmp_path / 'file')
