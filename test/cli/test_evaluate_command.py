"""``seqmem evaluate`` on the shipped recording."""

import argparse
import hashlib
import itertools
import json
from pathlib import Path
import shutil

import jax
import pytest

import seqmem_ros
from seqmem_ros.cli import evaluate
from seqmem_ros.cli.main import main
from seqmem_ros.core.model import build_network
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.motion import LABELS
from seqmem_ros.core.observer import N_FEATURES
from seqmem_ros.core.observer import N_STEERING
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.core.weights import save_model
from seqmem_ros.offline.bags import read_joint_samples
from seqmem_ros.offline.bags import write_joint_bag
from seqmem_ros.offline.degrade import Degradation

BAG = str(Path(seqmem_ros.__file__).parent / 'data' / 'kr300_a')
ONE_FILTER = ['--model', 'none', '--filters', 'difference']


def parsed(*arguments):
    parser = argparse.ArgumentParser()
    evaluate.add_parser(parser.add_subparsers())
    return parser.parse_args(['evaluate', *arguments])


def test_the_defaults_are_those_of_the_library():
    args = parsed('bag')
    setting = Degradation(args.bits, args.noise, args.drop, args.jitter, args.seed)
    assert setting == Degradation()
    options = StreamOptions()
    assert (args.max_gap, args.zero_stamp) == (options.max_gap_s, options.zero_stamp)
    assert args.joints == options.joints and args.continuous_joints == options.continuous_joints


def test_the_report_says_what_was_done_and_found(capsys):
    assert main(['evaluate', BAG, '--model', 'none', '--filters', 'difference,kalman']) == 0
    captured = capsys.readouterr()
    assert captured.err == ''
    lines = captured.out.splitlines()
    assert lines[0] == f'bag          {BAG}, topic /joint_states'
    assert lines[1] == 'recording    2501 messages, 6 joints, 10.00 s at 250 Hz, no faults'
    assert lines[2].startswith('timing       98 % of the periods from 4 to 4 ms; recorded 0.3 ms')
    assert 'degree 3 over +-22.0 ms, zero phase' in lines[3]
    assert 'first-order low-pass of the difference' in lines[4] and '4.4 ms' in lines[4]
    assert lines[5] == (
        'input        as recorded, then 14 bits per revolution, 1 % of messages dropped, seed 0'
    )
    rows = {line.split()[0]: line.split()[1:] for line in lines[7:] if line.split()}
    assert len(rows['difference']) == len(rows['kalman']) == 5
    assert float(rows['kalman'][0]) < 0.5 * float(rows['difference'][0])


def test_options_reach_the_evaluation(capsys):
    arguments = ['--no-degrade', '--joints', 'joint_a3,joint_a1', '--per-joint', '--max-gap', '1']
    assert main(['evaluate', BAG, *ONE_FILTER, *arguments, '--json', '-']) == 0
    content = json.loads(capsys.readouterr().out)
    assert content['joints'] == ['joint_a1', 'joint_a3']
    assert content['degradation']['summary'] == 'none'
    assert content['stream']['max_gap_s'] == 1.0
    degraded = ['--bits', '11', '--noise', '1e-4', '--drop', '0.2', '--jitter', '1e-4']
    rest = ['--seed', '5', '--reference-window', '0.03', '--json', '-']
    assert main(['evaluate', BAG, *ONE_FILTER, *degraded, *rest]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content['degradation']['summary'] == (
        '11 bits per revolution, noise 0.0001 rad, 20 % of messages dropped, '
        'stamps jitter by 0.1 ms, seed 5'
    )
    assert content['reference']['half_width_s'] == 0.03


def test_files_are_written(tmp_path, capsys):
    scores, plot = tmp_path / 'scores.json', tmp_path / 'plot.png'
    outputs = ['--json', str(scores), '--plot', str(plot), '--per-joint']
    assert main(['evaluate', BAG, *ONE_FILTER, *outputs]) == 0
    assert json.loads(scores.read_text())['estimators']['difference']['rmse'] > 0.0
    assert plot.read_bytes().startswith(b'\x89PNG')
    assert capsys.readouterr().out.count('\njoint_a') == 6


@pytest.mark.parametrize(
    ('arguments', 'text'),
    [
        (['missing'], 'missing: no such file or folder'),
        (
            [BAG, '--topic', '/x'],
            "no topic '/x' with sensor_msgs/msg/JointState messages",
        ),
        ([BAG, '--bits', '99'], 'bits: expected 0 to 32, got 99'),
        ([BAG, '--filters', 'median'], '--filters: expected names out of difference, lowpass, '),
        ([BAG, '--filters', 'none'], 'nothing to score: expected a --model, --weights or'),
        ([BAG, '--plot', '/proc/x.png'], '--plot: expected a file that can be written, got /proc'),
        ([BAG, '--start', '20'], 'no joint state from 20 s on: the recording lasts 10 s'),
        ([BAG, '--drop', '0.9999'], 'sample 5 of a joint: difference, lowpass'),
        ([BAG, '--drop', '0.9999'], ': no message came'),
        ([BAG, '--reference-window', '-3'], '--reference-window: expected a number of seconds '),
        ([BAG, '--reference-window', 'nan'], '--reference-window: expected a number of seconds '),
        ([BAG, '--joints', 'nose'], 'drop_no_known_joint'),
        ([BAG, '--max-gap', '0'], 'max_gap_s: expected a number from 1e-06 up, got 0.0'),
        ([BAG, '--weights', 'missing.safetensors'], 'missing.safetensors'),
    ],
)
def test_what_is_wrong_is_said_in_one_line(capsys, arguments, text):
    assert main(['evaluate', *arguments, '--model', 'none']) == 1
    captured = capsys.readouterr()
    assert text in captured.err and captured.err.count('\n') == 1
    assert captured.err.startswith('seqmem: error: ')
    assert captured.out == ''


def test_a_damaged_bag_warns_on_stderr_and_is_scored(tmp_path, capsys):
    damaged = tmp_path / 'damaged.mcap'
    shutil.copy(Path(BAG) / 'kr300_a.mcap', damaged)
    content = damaged.read_bytes()
    damaged.write_bytes(content[: len(content) // 2])
    assert main(['evaluate', str(damaged), *ONE_FILTER]) == 0
    captured = capsys.readouterr()
    assert captured.err.startswith(f'seqmem: warning: {damaged}: it ends in the middle of a')
    assert captured.err.count('\n') == 1
    assert 'difference' in captured.out


def save_network(path, labels=()):
    """Write a weights file with a small network that nobody has trained."""
    network = {
        'builder': 'recurrent_net',
        'cell': 'gru',
        'n_in': N_FEATURES,
        'n_hidden': 4,
        'n_out': N_STEERING + 2 * len(labels),
    }
    task = 'label' if labels else 'velocity'
    spec = ModelSpec(task=task, network=network, labels=labels)
    save_model(path, SequenceModel(spec, build_network(network, jax.random.key(0))))


def test_networks_from_weights_files_are_scored_beside_the_filters(tmp_path, capsys):
    velocity, label = tmp_path / 'mine.safetensors', tmp_path / 'states.safetensors'
    save_network(velocity)
    save_network(label, LABELS)
    write_joint_bag(tmp_path / 'bag', '/j', itertools.islice(read_joint_samples(BAG), 500, 900))
    weights = ['--weights', str(velocity), '--weights', str(label)]
    outputs = ['--json', str(tmp_path / 'x.json'), '--plot', str(tmp_path / 'x.png')]
    assert main(['evaluate', str(tmp_path / 'bag'), *weights, *outputs]) == 0
    text = capsys.readouterr().out
    assert 'mine: ' in text and ' times the RMSE of ' in text and 'states: macro-F1 ' in text
    entries = json.loads((tmp_path / 'x.json').read_text())['estimators']
    assert list(entries) == ['difference', 'lowpass', 'savgol', 'kalman', 'mine', 'states']
    digest = hashlib.sha256(velocity.read_bytes()).hexdigest()[:12]
    assert (entries['mine']['source'], entries['mine']['digest']) == (str(velocity), digest)
    assert entries['mine']['samples'] == entries['kalman']['samples'] > 0
    assert len(entries['states']['confusion']) == 3
    assert 0.0 <= entries['states']['macro_f1'] <= 1.0
    assert (tmp_path / 'x.png').read_bytes().startswith(b'\x89PNG')


def test_estimators_get_names_of_their_own(monkeypatch):
    loaded = []

    def load_estimator(model='auto', weights='', memory='persistent'):
        loaded.append((model, str(weights), memory))

    monkeypatch.setattr('seqmem_ros.core.estimators.load_estimator', load_estimator)
    recipes = evaluate.recipes_from(
        ['lstm', 'gru'], ['a/mine.safetensors', 'b/mine.safetensors'], 'kalman', 'window'
    )
    names = [name for name, *_ in recipes]
    assert names == ['kalman', 'lstm', 'gru', 'mine', 'b/mine.safetensors']
    assert loaded == [tuple(recipe) for _, *recipe in recipes]
    assert loaded[1] == ('lstm', '', 'window')
    assert loaded[3] == ('auto', 'a/mine.safetensors', 'window')
    assert [r[0] for r in evaluate.recipes_from(None, [], 'none', 'persistent')] == ['gru']
    assert [r[0] for r in evaluate.recipes_from(None, ['x.safetensors'], 'none', 'window')] == [
        'x'
    ]
