"""``seqmem inspect`` on shipped models, on weights files, on bags, and on what it cannot use."""

import argparse
import hashlib
import json
from pathlib import Path

import jax
import numpy as np
import pytest

import seqmem_ros
from seqmem_ros.cli import inspect
from seqmem_ros.cli.main import main
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.model import build_network
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.core.weights import save_model
from seqmem_ros.offline.bags import write_joint_bag
from seqmem_ros.offline.inspect_sequence import bag_sequence
from seqmem_ros.offline.inspect_sequence import simulated_sequence

PACKAGE = Path(seqmem_ros.__file__).parent
BAG = str(PACKAGE / 'data' / 'kr300_a')
SHORT = ['--samples', '16']
RNN_SPEC = ModelSpec(
    'velocity',
    {
        'builder': 'recurrent_net', 'n_in': 1, 'n_hidden': 2, 'n_out': 1, 'cell': 'rnn',
        'n_layers': 1,
    },
    readout='direct',
    features=('position',),
    nominal_rate_hz=(100.0, 100.0),
    card={'training': {'data': 'mine'}, 'scores': {'model': 0.5}},
)  # fmt: skip
NAMED_SPEC = ModelSpec(
    'velocity',
    {**RNN_SPEC.network, 'n_in': 4, 'n_out': 2},
    readout='direct',
    features=('position', 'effort'),
    joints=('wrist', 'elbow'),
)


@pytest.fixture
def turning(tmp_path):
    """Save an RNN whose linear part at zero is a damped rotation."""
    network = build_network(RNN_SPEC.network, jax.random.key(0))
    layer, dense = network.layers
    layer.W.value, layer.b.value = np.zeros((2, 1)), np.zeros(2)
    layer.U.value = np.array([[0.9, 0.3], [-0.3, 0.9]])
    dense.W.value = np.ones((1, 2))
    path = tmp_path / 'turning.safetensors'
    save_model(path, SequenceModel(RNN_SPEC, network))
    return path


def write_bag(path, time_s, position, **fields):
    names = ('elbow', 'wrist')
    samples = []
    for t, row in zip(time_s, position):
        stamp_ns = 10**18 + round(t * 1e9)
        measured = {name: np.full(2, value) for name, value in fields.items()}
        samples.append((stamp_ns, JointSample(stamp_ns, names, np.array(row), **measured)))
    write_joint_bag(path, '/joint_states', samples)
    return str(path)


def test_a_damped_rotation_in_words(turning, capsys):
    assert main(['inspect', str(turning), *SHORT, '--rate', '200']) == 0
    captured = capsys.readouterr()
    assert captured.err == ''
    lines = captured.out.splitlines()
    digest = hashlib.sha256(turning.read_bytes()).hexdigest()[:12]
    assert lines[0] == f'model        rnn, {turning}, digest {digest}'
    assert 'scores       model 0.5 (RMSE in rad/s)' in lines
    assert 'rates        100 to 100 Hz' in lines
    # H = 2, D = 1: 2 (2 + 1) + 2 = 8; the dense layer 2 + 1.
    assert any(line.split()[-2:] == ['8', '8'] and 'H (H + D) + H' in line for line in lines)
    assert any(line.split() == ['total', '11', '11'] for line in lines)
    assert any('spectral radius 0.9487, largest singular value 0.9487' in x for x in lines)
    mode = next(line for line in lines if line.startswith('0.9000 +- 0.3000i'))
    # Horizon 18.98 samples of 5 ms, a turn in 360 / 18.435 = 19.53 samples.
    assert mode.split()[-8:] == [
        '18.98',
        'samples',
        '94.91',
        'ms',
        '19.53',
        'samples',
        '97.64',
        'ms',
    ]
    influence = next(line for line in lines if line.startswith('influence, '))
    expected = [0.9 ** (age / 2) for age in (0, 1, 2, 5, 10)]
    assert [float(x) for x in influence.split()[-5:]] == pytest.approx(expected, rel=5e-3)


def test_a_stack_of_layers_in_words(tmp_path, capsys):
    layers = (
        {'type': 'LSTM', 'n_in': 1, 'n_hidden': 2, 'peepholes': False},
        {
            'type': 'Bidirectional',
            'layer_fwd': {'type': 'RNN', 'n_in': 2, 'n_hidden': 1},
            'layer_bwd': {'type': 'RNN', 'n_in': 2, 'n_hidden': 1},
        },
        {'type': 'Dense', 'n_in': 2, 'n_out': 1},
    )
    network = {'builder': 'layer_stack', 'n_in': 1, 'n_out': 1, 'layers': layers}
    spec = ModelSpec('velocity', network, readout='direct', features=('position',))
    path = tmp_path / 'stack.safetensors'
    save_model(path, SequenceModel(spec, build_network(network, jax.random.key(0))))
    assert main(['inspect', str(path), *SHORT]) == 0
    out = capsys.readouterr().out
    words = (
        'network LSTM(n_hidden=2, n_in=1, peepholes=False), Bidirectional(layer_bwd: '
        'RNN(n_hidden=1, n_in=2), layer_fwd: RNN(n_hidden=1, n_in=2)), Dense(n_in=2, n_out=1)'
    )
    assert words in ' '.join(out.split())
    # The state of an LSTM is twice as wide as its output.
    assert 'layers.0 (LSTM), each of 4 parts of its state as a one-pole filter' in out
    assert all(len(line) <= 96 for line in out.splitlines()[1:10])


def test_json_says_the_same(turning, capsys, tmp_path):
    target = tmp_path / 'out.json'
    assert main(['inspect', str(turning), *SHORT, '--json', str(target)]) == 0
    assert 'spectral radius' in capsys.readouterr().out
    content = json.loads(target.read_text())
    (layer,) = content['layers']
    assert layer['modes'][0]['horizon_samples'] == pytest.approx(18.98, abs=0.01)
    assert content['parameters'][0]['count'] == content['parameters'][0]['held'] == 8
    assert content['spec']['card']['scores'] == {'model': 0.5}
    assert content['rate_hz'] == 100.0
    assert main(['inspect', str(turning), *SHORT, '--json', '-']) == 0
    assert json.loads(capsys.readouterr().out) == content


@pytest.mark.parametrize(
    ('name', 'total', 'kind'),
    # 3 (32 (32 + 23) + 32) + 330; 4 of them + 96 + 330; with 14 outputs 462.
    [('gru', 5706, 'GRU'), ('lstm', 7594, 'LSTM'), ('motion', 5904, 'GRU')],
)
def test_shipped_models(name, total, kind, capsys):
    assert main(['inspect', name, *SHORT, '--json', '-']) == 0
    content = json.loads(capsys.readouterr().out)
    assert sum(each['count'] for each in content['parameters']) == total
    assert sum(each['held'] for each in content['parameters']) == total
    assert content['layers'][0]['kind'] == kind
    assert len(content['layers'][0]['modes']) == (64 if kind == 'LSTM' else 32)
    assert content['layers'][0]['influence'][-1] == 1.0


def test_shipped_attention(capsys, tmp_path):
    picture = tmp_path / 'a.png'
    assert main(['inspect', 'attention', *SHORT, '--plot', str(picture)]) == 0
    out = capsys.readouterr().out
    assert 'attention reaches back over ' in out and 'eigenvalue' not in out
    assert picture.read_bytes().startswith(b'\x89PNG')


def test_the_picture_of_a_recurrent_network(turning, tmp_path, monkeypatch, capsys):
    from matplotlib.figure import Figure

    saved = []
    monkeypatch.setattr(Figure, 'savefig', lambda figure, *_, **__: saved.append(figure))
    assert main(['inspect', str(turning), *SHORT, '--plot', str(tmp_path / 'x.png')]) == 0
    modes, influence, gradient, norms = saved[0].axes
    offsets = np.asarray(modes.collections[0].get_offsets())
    np.testing.assert_allclose(sorted(offsets[:, 1]), [-0.3, 0.3], atol=1e-6)
    np.testing.assert_allclose(
        influence.lines[0].get_ydata(), 0.9 ** (np.arange(17) / 2), rtol=1e-5
    )
    assert influence.get_xlabel() == gradient.get_xlabel() == 'age k / samples'
    assert norms.get_xlabel() == 'time / s'


def test_a_bag_gives_the_joint_that_moves_most_where_it_does(tmp_path):
    time_s = np.arange(300) * 0.01
    # The elbow moves from 1 s to 2 s, the wrist hardly.
    elbow = np.clip(time_s - 1.0, 0.0, 1.0)
    bag = write_bag(tmp_path / 'bag', time_s, np.stack([elbow, 0.01 * elbow], axis=1))
    sequence = bag_sequence(RNN_SPEC, bag, n_samples=101)
    assert sequence.source == f'{bag}, elbow, from 1.00 s on'
    assert sequence.rate_hz == pytest.approx(100.0)
    np.testing.assert_allclose(sequence.position[:, 0], elbow[100:201])
    # Position, then differences over lags 1 to 4 and their times.
    np.testing.assert_allclose(sequence.raw[50, 0], elbow[150], rtol=1e-6)
    np.testing.assert_allclose(sequence.raw[50, 3:7], [0.01, 0.02, 0.03, 0.04], rtol=1e-4)
    np.testing.assert_allclose(sequence.raw[50, 7:], [0.01, 0.02, 0.03, 0.04], rtol=1e-4)
    wrist = bag_sequence(RNN_SPEC, bag, joint='wrist', n_samples=50, start_s=2.0)
    np.testing.assert_allclose(wrist.position[:, 0], 0.01 * elbow[200:250])


def test_a_stretch_never_spans_a_gap(tmp_path):
    time_s = np.concatenate([np.arange(30) * 0.01, 5.0 + np.arange(60) * 0.01])
    position = np.stack([time_s, 0 * time_s], axis=1)
    bag = write_bag(tmp_path / 'bag', time_s, position)
    sequence = bag_sequence(RNN_SPEC, bag, n_samples=80)
    np.testing.assert_allclose(sequence.time_s, np.arange(60) * 0.01, atol=1e-9)


def test_named_joints_come_in_the_order_of_the_model(tmp_path):
    time_s = np.arange(20) * 0.01
    position = np.stack([time_s, 2 * time_s], axis=1)
    bag = write_bag(tmp_path / 'bag', time_s, position, effort=7.0)
    sequence = bag_sequence(NAMED_SPEC, bag)
    assert sequence.raw.shape == (20, 2, 11)
    np.testing.assert_allclose(sequence.raw[:, :, 0], position[:, ::-1], rtol=1e-6)
    np.testing.assert_array_equal(sequence.raw[:, :, 2], np.full((20, 2), 7.0))


def test_a_simulation_is_said_by_its_seed():
    first, again, other = (simulated_sequence(RNN_SPEC, 64, 50.0, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.raw, again.raw)
    assert np.any(first.position != other.position)
    np.testing.assert_allclose(np.diff(first.time_s), 0.02, atol=1e-6)
    assert simulated_sequence(NAMED_SPEC, 64, 50.0, 3).raw.shape == (64, 2, 11)


@pytest.mark.parametrize(
    ('arguments', 'message'),
    [
        (['nonsense'], "expected gru, lstm, attention, motion, or a weights file, got 'nonsense'"),
        (['gru', '--joint', 'x'], '--joint: expected a --bag beside it, got none'),
        (['gru', '--bag', BAG, '--rate', '5'], '--rate: expected none beside --bag'),
        (['gru', '--bag', BAG, '--joint', 'x'], "expected the joint 'x', found joint_a1, "),
        (['gru', '--bag', BAG, '--start', '20'], 'found 0 from 20.0 s on'),
        (['gru', '--bag', BAG, '--start', 'nan'], '--start: expected a number of seconds'),
        (['gru', '--bag', 'nowhere'], 'nowhere: no such file or folder'),
        (['gru', '--samples', '3'], 'samples: expected at least 10, got 3'),
        (['gru', '--rate', '0'], 'rate: expected 1 to 100000 Hz, got 0'),
        (['gru', '--seed', '-1'], '--seed: expected at least 0, got -1'),
        (['gru', '--truncate', '0'], '--truncate: expected at least 1, got 0'),
        (['gru', '--json', '/nowhere/x.json'], '--json: no such folder: /nowhere'),
        (['gru', '--plot', 'x.txt'], '--plot: expected a .png, .svg, .pdf file, got x.txt'),
    ],
)
def test_errors_are_one_line(arguments, message, capsys):
    assert main(['inspect', *arguments]) == 1
    captured = capsys.readouterr()
    assert captured.out == ''
    assert captured.err.startswith('seqmem: error: ') and captured.err.count('\n') == 1
    assert message in captured.err


def test_files_that_are_no_models_or_bags(tmp_path, capsys):
    broken = tmp_path / 'broken.safetensors'
    broken.write_bytes(b'\x08\x00\x00\x00\x00\x00\x00\x00nonsense')
    assert main(['inspect', str(broken)]) == 1
    assert 'expected a .safetensors file, but it cannot be read' in capsys.readouterr().err
    bag = tmp_path / 'broken.mcap'
    bag.write_bytes(b'nothing of a bag')
    assert main(['inspect', 'gru', '--bag', str(bag)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f'seqmem: error: {bag}: ') and error.count('\n') == 1


def test_a_bag_that_lacks_what_the_model_reads(tmp_path, capsys):
    time_s = np.arange(20) * 0.01
    bag = write_bag(tmp_path / 'bag', time_s, np.stack([time_s, time_s], axis=1))
    path = tmp_path / 'named.safetensors'
    network = build_network(NAMED_SPEC.network, jax.random.key(0))
    save_model(path, SequenceModel(NAMED_SPEC, network))
    assert main(['inspect', str(path), '--bag', bag]) == 1
    assert 'each with position, effort of wrist, elbow, found 0 in it' in capsys.readouterr().err
    assert main(['inspect', str(path), '--bag', bag, '--joint', 'wrist']) == 1
    assert 'joint: expected none, as the model reads wrist, elbow' in capsys.readouterr().err


def test_every_option_is_explained():
    parser = argparse.ArgumentParser()
    inspect.add_parser(parser.add_subparsers())
    (command,) = parser._subparsers._group_actions[0].choices.values()
    assert [action.dest for action in command._actions if not action.help] == []
