"""``seqmem train`` from end to end, on the shipped recording and on generated bags."""

import json
from pathlib import Path
import signal
import subprocess
import sys

import jax
import numpy as np
import pytest

import seqmem_ros
from seqmem_ros.cli.main import main
from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.model import build_network
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.core.stream import Stream
from seqmem_ros.core.weights import load_model
from seqmem_ros.core.weights import save_model
from seqmem_ros.offline.bags import write_joint_bag

BAG = str(Path(seqmem_ros.__file__).parent / 'data' / 'kr300_a')
SMALL = ['--hidden', '8', '--batch', '4', '--chunk', '64']
FAST = ['--learning-rate', '0.02']
SECOND = 1_000_000_000


def working_arm(seconds=40.0, rate_hz=50.0):
    """Move two joints: slow sines, and a fast wave every other four seconds."""
    samples, intervals = [], []
    for index in range(int(seconds * rate_hz)):
        t = index / rate_hz
        waves = int(t // 4) % 2 == 1
        position = np.array([np.sin(0.5 * t), np.cos(0.4 * t)])
        position = position + 0.1 * np.sin(8 * np.pi * t) * waves * np.array([1.0, -0.5])
        stamp_ns = round((100.0 + t) * SECOND)
        empty = np.empty(0)
        samples.append((stamp_ns, JointSample(stamp_ns, ('a', 'b'), position, empty, empty)))
    for k in range(int(seconds // 4)):
        intervals.append((4.0 * k, 4.0 * k + 4.0, ('calm', 'wave')[k % 2]))
    return samples, intervals


@pytest.fixture(scope='module')
def arm(tmp_path_factory):
    """Write the arm's bag and a CSV of what it does."""
    folder = tmp_path_factory.mktemp('arm')
    samples, intervals = working_arm()
    write_joint_bag(folder / 'bag', '/joint_states', samples)
    lines = [f'{start},{end},{label}' for start, end, label in intervals]
    (folder / 'labels.csv').write_text('\n'.join(['start,end,label', *lines]) + '\n')
    return folder


def test_velocity_from_the_shipped_weights_beats_the_difference_on_what_it_has_not_seen(
    tmp_path, capsys
):
    out, picture, numbers = (tmp_path / name for name in ('m.safetensors', 'c.png', 'h.json'))
    arguments = ['train', BAG, '--start-from', 'gru', '--steps', '10', '--out', str(out)]
    assert main([*arguments, '--plot', str(picture), '--json', str(numbers)]) == 0
    said = capsys.readouterr().out
    assert 'truth check  recorded velocity is a first-order low-pass of the difference' in said
    assert 'lags by 4.4 ms' in said
    assert 'split        by block: 1984 messages to learn from, 500 held out, 17 between' in said
    content = json.loads(numbers.read_text())
    assert content['scores']['model'] < 0.6 * content['scores']['difference']
    assert len(content['history']['loss']) == 10
    assert content['training']['degradation'].startswith('14 bits per revolution, 1 %')
    assert content['training']['target'] == 'reference'
    assert picture.read_bytes().startswith(b'\x89PNG')
    assert load_model(out).spec.card['scores'] == content['scores']
    assert not list(tmp_path.glob('*checkpoint*'))
    # It is a weights file like any other.
    assert main(['inspect', str(out)]) == 0
    assert 'kr300_a: 2501 messages at 250 Hz' in ' '.join(capsys.readouterr().out.split())
    assert main(['evaluate', BAG, '--weights', str(out), '--filters', 'difference']) == 0
    assert '\nm ' in capsys.readouterr().out


def test_labels_of_a_csv_are_learned_and_told_by_a_stream(arm, tmp_path, capsys):
    out = tmp_path / 'work.safetensors'
    arguments = ['train', str(arm / 'bag'), '--task', 'label', '--labels', str(arm / 'labels.csv')]
    assert main([*arguments, '--steps', '150', '--out', str(out), *SMALL, *FAST]) == 0
    said = capsys.readouterr().out
    assert 'labels       calm, wave' in said and 'true \\ told' in said
    scores = load_model(out).spec.card['scores']
    assert scores['accuracy'] > 0.9 > scores['always_the_commonest']
    assert np.sum(scores['confusion']) == scores['samples']
    assert scores['delay_median_s'] < 0.4 and scores['changes_missed'] == 0
    stream, told = Stream(load_estimator('auto', out)), {}
    for _, sample in working_arm(8.0)[0]:
        estimate = stream.push(sample)
        if estimate is not None:
            told.setdefault((sample.stamp_ns - 100 * SECOND) // (4 * SECOND), []).append(
                estimate.labels
            )
    assert np.mean([labels == ('calm',) for labels in told[0]]) > 0.8
    assert np.mean([labels == ('wave',) for labels in told[1]]) > 0.8


def test_velocities_together_are_learned(arm, tmp_path):
    out = tmp_path / 'together.safetensors'
    arguments = ['train', str(arm / 'bag'), '--joints-together', '--steps', '60', *SMALL]
    assert main([*arguments, '--model', 'transformer', '--out', str(out)]) == 0
    spec = load_model(out).spec
    assert (spec.joints, spec.readout, spec.nominal_rate_hz) == (('a', 'b'), 'direct', (50, 50))
    assert spec.network['d_ff'] == 32


def test_an_interrupt_and_a_resumption_end_in_the_same_file(arm, tmp_path, capsys):
    command = [sys.executable, '-m', 'seqmem_ros.cli.main', 'train', str(arm / 'bag'), *SMALL]
    command += ['--steps', '60', '--out']
    program = (
        'import os, signal, sys; from seqmem_ros.offline import checkpoint, resumable\n'
        'resumable.CHECKPOINT_EVERY = 20\n'
        'def save(path, state, place, *rest):\n'
        '    checkpoint.save_checkpoint(path, state, place, *rest)\n'
        '    place.step == 20 and os.kill(os.getpid(), signal.SIGINT)\n'
        'resumable.save_checkpoint = save\n'
        'from seqmem_ros.cli.main import main; sys.exit(main(sys.argv[1:]))'
    )
    out = tmp_path / 'm.safetensors'
    stopped = subprocess.run(
        [sys.executable, '-c', program, *command[3:], str(out)], capture_output=True, text=True
    )
    assert stopped.returncode == 130 and stopped.stderr.endswith('seqmem: interrupted\n')
    assert f'what was learned is in {out}.checkpoint: give --resume to go on' in stopped.stdout
    assert not out.exists()
    # One of other options is refused, and not told to do what it does.
    assert main([*command[3:], str(out), '--resume', '--seed', '1']) == 1
    refused = capsys.readouterr()
    assert 'seed was 0 and is 1; give the same again' in refused.err
    assert 'give --resume' not in refused.out
    assert main([*command[3:], str(out), '--resume']) == 0
    again = tmp_path / 'again' / 'm.safetensors'
    again.parent.mkdir()
    assert main([*command[3:], str(again)]) == 0
    assert out.read_bytes() == again.read_bytes()
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_DFL


def test_windows_are_learned_and_deployed_over_exactly_their_length(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x = 1e-4 * rng.standard_normal((600, 8, 2))
    y = np.arange(600) // 3 % 2
    x[y == 1, 5:] += [3e-4, 0]
    np.savez(tmp_path / 'w.npz', X=x, y=y)
    out = tmp_path / 'w.safetensors'
    arguments = ['train', '--windows', str(tmp_path / 'w.npz'), '--model', 'attention']
    assert main([*arguments, '--steps', '60', '--hidden', '8', '--out', str(out)]) == 0
    model = load_model(out)
    assert (model.spec.network['window'], model.spec.joints) == (8, ('joint_1', 'joint_2'))
    assert model.spec.card['scores']['accuracy'] > 0.9
    assert 'windows to learn from' in capsys.readouterr().out
    # Behind a long past, a stream tells what the window alone tells.
    import jax

    from seqmem_ros.offline.train_windows import raw_windows

    stream = Stream(load_estimator('auto', out))
    past = 5e-4 * rng.standard_normal((30, 2))
    for index, sample in enumerate(np.concatenate([past, x[3]])):
        estimate = stream.push(
            JointSample((index + 1) * 10_000_000, model.spec.joints, sample, *np.empty((2, 0)))
        )
    logits = model.forward(raw_windows(np.concatenate([past[-4:], x[3]])[None], 100.0)[0])[-1]
    np.testing.assert_allclose(estimate.scores[0], jax.nn.softmax(logits), atol=1e-5)


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        ([], 'nothing to train on: expected bags, --windows or --simulate STEPS'),
        (['{bag}', '--hidden', '0'], 'hidden_size: expected at least 1, got 0'),
        (['{bag}', '--steps', '0'], 'n_steps: expected at least 1, got 0'),
        (['{bag}', '--chunk', '3'], 'chunk: expected at least 10 samples, got 3'),
        (['{bag}', '--hold-out', '1'], 'hold-out: expected a share above 0 and below 1, got 1.0'),
        (['{bag}', '--learning-rate', '-1'], 'learning_rate: expected a number above 0, got -1.0'),
        (['{bag}', '--joints', 'elbow'], 'expected the joints elbow, found a, b'),
        (['{bag}', '--split', 'recording'], 'split: expected at least two recordings'),
        (['{bag}', '--target', 'recorded'], 'but that of a, b is absent; leave --target at'),
        (
            ['{bag}', '--labels', '/mode'],
            "labels: expected --task label beside it, got 'velocity'",
        ),
        (['{bag}', '--task', 'label', '--labels', '/mode'], "no topic '/mode' with labels"),
        (
            ['{bag}', '--task', 'label', '--labels', '{one}'],
            'labels: expected at least two that occur, got calm',
        ),
        (
            ['{bag}', '--task', 'label', '--labels', '{late}'],
            'the labels cover none of it: it lasts from 0.000 to 39.980 s, they from 100.000 to '
            '110.000 s',
        ),
        (
            ['{bag}', '{bag}', '--task', 'label', '--labels', '{one}'],
            'labels: expected a CSV file for each of 2 bags, in their order, got 1',
        ),
        (['{bag}', '--resume'], 'nothing to resume: expected the checkpoint'),
        (['{bag}', '--start-from', 'gru', '--hidden', '9'], 'expected beside it no hidden'),
        (['{bag}', '--start-from', 'gru', '--task', 'label'], 'expected a model for label, gru'),
        (
            ['{bag}', '--start-from', 'none.safetensors'],
            'expected a .safetensors file, found none',
        ),
        (['{bag}', '--features', 'effort'], 'features: expected --joints-together beside it'),
        (
            ['--simulate', '5', '--start-from', '{direct}'],
            'simulate: it teaches networks that steer a filter; ',
        ),
        (['--simulate', '-3'], 'simulate: expected a number of steps, got -3'),
        (['{bag}', '--simulate', '5', '--joints-together'], 'simulate: it makes single joints'),
        (['--windows', 'none.npz'], 'none.npz: expected an .npz file of windows'),
        (['--windows', 'none.npz', '{bag}'], '--windows: expected no bags beside it'),
        (['{short}'], 'too short to hold a block out: expected well over'),
        (['{still}'], 'nothing to learn from in'),
        (['nowhere'], 'nowhere: no such file or folder'),
    ],
)
def test_what_cannot_be_is_said_in_one_line(arm, tmp_path, capsys, arguments, sentence):
    samples = working_arm(2.0)[0]
    places = {name: tmp_path / name for name in ('short', 'still')}
    if '{short}' in arguments:
        write_joint_bag(places['short'], '/joint_states', samples[:30])
    if '{still}' in arguments:
        first = samples[0][1].position
        rest = [(t, JointSample(t, s.names, first, s.velocity, s.effort)) for t, s in samples]
        write_joint_bag(places['still'], '/joint_states', rest)
    for name, line in (('one', '0,10,calm'), ('late', '100,110,calm')):
        places[name] = tmp_path / f'{name}.csv'
        places[name].write_text(f'start,end,label\n{line}\n')
    if '{direct}' in arguments:
        places['direct'] = tmp_path / 'direct.safetensors'
        network = {'builder': 'recurrent_net', 'n_in': 2, 'n_hidden': 3, 'n_out': 1}
        spec = ModelSpec('velocity', network, 'direct', ('position', 'velocity'))
        drawn = build_network(spec.network, jax.random.key(0))
        save_model(places['direct'], SequenceModel(spec, drawn))
    filled = [each.format(bag=arm / 'bag', **places) for each in arguments]
    assert main(['train', *filled, '--out', str(tmp_path / 'm.safetensors')]) == 1
    error = capsys.readouterr().err
    assert error.startswith('seqmem: error: ') and error.count('\n') == 1
    assert sentence in error


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        (['--out', 'nowhere/m.safetensors'], '--out: no such folder: '),
        (['--out', 'm.pt'], '--out: expected a .safetensors file, got m.pt'),
        (['--out', '/proc/m.safetensors'], '--out: expected a file that can be written, got /pr'),
        (['--out', 'm.safetensors', '--plot', 'x.txt'], '--plot: expected a .png'),
    ],
)
def test_what_cannot_be_written_is_said_before_the_work(capsys, arguments, sentence):
    assert main(['train', BAG, *arguments]) == 1
    assert sentence in capsys.readouterr().err
