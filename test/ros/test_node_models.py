"""Networks in the node: every kind publishes, and live is offline to the last bit."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from ros_harness import arm_samples
from ros_harness import NAMES
from ros_harness import stamps_ns
from std_msgs.msg import Float64MultiArray
from std_msgs.msg import String
from weights_files import write_weights

import seqmem_ros
from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.stream import Stream
from seqmem_ros.ros.live import run_live

RECORDING = Path(seqmem_ros.__file__).parent / 'data' / 'kr300_a'


def offline(samples, model, weights='', memory='persistent'):
    stream = Stream(load_estimator(model, weights, memory))
    estimates = [stream.push(sample) for sample in samples]
    return [estimate for estimate in estimates if estimate is not None]


def unsteady_samples(n):
    """Noise, a gap that restarts, a joint that is left out, and a value that is missing."""
    samples = arm_samples(n // 2) + arm_samples(n // 2, start=n // 2 + 50)
    rng = np.random.default_rng(3)
    for sample in samples:
        sample.position[:] += 1e-3 * rng.standard_normal(len(sample.position))
    samples[n // 4].position[0] = np.nan
    samples[n // 4 + 7] = arm_samples(1, NAMES[1:], start=n // 4 + 7)[0]
    return samples


def timed(samples):
    return [(sample.stamp_ns, sample, 'base') for sample in samples]


@pytest.mark.parametrize(
    'model, memory',
    [
        ('gru', 'persistent'),
        ('lstm', 'persistent'),
        ('attention', 'persistent'),
        ('gru', 'window'),
        ('kalman', 'persistent'),
    ],
)
def test_live_is_offline_message_by_message(ros_domain, tmp_path, model, memory):
    weights = '' if model == 'kalman' else str(write_weights(tmp_path, model))
    samples = unsteady_samples(80)
    expected = offline(samples, model, weights, memory)
    parameters = {'model': model, 'weights': weights, 'memory': memory}
    run = run_live(timed(samples), parameters, rate=2.0, domain_id=ros_domain)
    received = run.messages['joint_states']
    assert run.exit_code == 0
    assert run.report.sent == len(samples)
    assert stamps_ns(received) == [estimate.stamp_ns for estimate in expected]
    # The gap before the second half costs a window of 5, at the start and at the gap.
    assert len(received) == 80 - 2 * 4
    for message, estimate in zip(received, expected):
        assert tuple(message.name) == estimate.names
        assert message.header.frame_id == 'base'
        assert message.position.tobytes() == estimate.position.tobytes()
        assert message.velocity.tobytes() == estimate.velocity.tobytes()


@pytest.mark.parametrize('model', ['gru', 'lstm', 'attention'])
def test_shipped_models_on_the_shipped_recording_as_offline(ros_domain, model):
    pytest.importorskip('rosbags', reason='rosbags is not installed')
    from seqmem_ros.offline.bags import read_joint_messages
    from seqmem_ros.offline.degrade import Degradation
    from seqmem_ros.offline.degrade import Degrader

    def seen():
        """Read anew for each way, so that neither can lean on what the other has read."""
        degrade = Degrader(Degradation(bits=14, drop=0.05, seed=1))
        for message in islice(read_joint_messages(RECORDING), 400):
            worse = degrade(message.sample)
            if worse is not None:
                yield message.record_ns, worse, message.frame_id

    samples = [sample for _, sample, _ in seen()]
    expected = offline(samples, model)
    run = run_live(seen(), {'model': model}, rate=2.0, domain_id=ros_domain)
    received = run.messages['joint_states']
    assert run.exit_code == 0
    assert 330 < len(received) == len(samples) - 4 < 400
    assert stamps_ns(received) == [sample.stamp_ns for sample in samples[4:]]
    for message, estimate in zip(received, expected, strict=True):
        assert tuple(message.name) == estimate.names
        assert message.position.tobytes() == estimate.position.tobytes()
        assert message.velocity.tobytes() == estimate.velocity.tobytes()


@pytest.mark.parametrize('model', ['gru', 'lstm', 'attention'])
def test_shipped_models_follow_a_moving_arm(ros_domain, model):
    samples = arm_samples(150)
    run = run_live(timed(samples), {'model': model}, rate=2.0, domain_id=ros_domain)
    received = run.messages['joint_states']
    assert stamps_ns(received) == [sample.stamp_ns for sample in samples[4:]]
    velocity = np.array([message.velocity for message in received])
    k = np.arange(4, 150)
    per_sample = 0.02 * np.arange(1, 4)
    true = 100 * per_sample * np.cos(np.outer(k, per_sample))
    # After it has settled, far better than saying nothing about these 2 to 6 rad/s.
    assert np.abs(velocity - true)[30:].max() < 0.3


def test_labels_of_each_joint(ros_domain, tmp_path):
    weights = str(write_weights(tmp_path, 'label'))
    samples = arm_samples(30)
    expected = offline(samples, 'auto', weights)
    topics = {'label': String, 'label_scores': Float64MultiArray}
    run = run_live(
        timed(samples), {'weights': weights}, topics=topics, rate=2.0, domain_id=ros_domain
    )
    texts = [
        ', '.join(f'{name}: {label}' for name, label in zip(e.names, e.labels)) for e in expected
    ]
    assert [m.data for m in run.messages['label']] == texts
    assert len(texts) == 26
    for message, estimate in zip(run.messages['label_scores'], expected):
        assert message.data.tobytes() == estimate.scores.tobytes()
        dims = [(d.label, d.size, d.stride) for d in message.layout.dim]
        assert dims == [('joint=shoulder,elbow,wrist', 3, 6), ('label=still,moving', 2, 2)]


def test_one_label_for_the_whole_arm(ros_domain, tmp_path):
    weights = str(write_weights(tmp_path, 'arm_label'))
    samples = arm_samples(12)
    expected = offline(samples, 'auto', weights)
    topics = {'label': String, 'label_scores': Float64MultiArray}
    run = run_live(timed(samples), {'weights': weights}, topics=topics, domain_id=ros_domain)
    assert [m.data for m in run.messages['label']] == [e.labels[0] for e in expected]
    scores = run.messages['label_scores'][0]
    assert [(d.label, d.size) for d in scores.layout.dim] == [
        ('arm', 1),
        ('label=still,moving', 2),
    ]
    assert sum(scores.data) == pytest.approx(1.0, abs=1e-6)


def test_the_shipped_label_model_says_what_the_arm_does(ros_domain):
    samples = arm_samples(150)
    run = run_live(
        timed(samples), {'model': 'motion'}, topics={'label': String}, rate=2.0,
        domain_id=ros_domain,
    )  # fmt: skip
    texts = [m.data for m in run.messages['label']]
    assert len(texts) == 146
    assert {pair.split(': ')[0] for pair in texts[-1].split(', ')} == set(NAMES)


@pytest.mark.parametrize('named', [False, True])
def test_a_robot_with_many_joints_is_told_how_to_compile_in_time(harness, tmp_path, named):
    names = tuple(f'joint_{k}' for k in range(12))
    received = harness.collect()
    weights = str(write_weights(tmp_path, 'gru'))
    process = harness.start({'weights': weights, 'joints': list(names) if named else ['']})
    player = harness.player()
    harness.play(player, arm_samples(1, names))
    told = 'for more joints than before; with all names in the parameter joints'
    if not named:
        assert harness.spin_until(lambda: told in process.output())
    harness.play(player, arm_samples(20, names, start=1000))
    assert harness.spin_until(lambda: len(received) == 16), len(received)
    assert {tuple(m.name) for m in received} == {names}
    assert process.output().count(told) == (0 if named else 1)
