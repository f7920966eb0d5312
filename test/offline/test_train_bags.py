"""What a bag teaches: its targets, what is seen of it, what is held out, how it is scored."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.model import build_network
from seqmem_ros.core.model import SequenceModel
from seqmem_ros.core.motion import LABELS
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.spec import ModelSpec
from seqmem_ros.offline.bags import write_joint_bag
from seqmem_ros.offline.degrade import AS_RECORDED
from seqmem_ros.offline.degrade import Degradation
from seqmem_ros.offline.held_out import score_velocity
from seqmem_ros.offline.splits import HELD_OUT
from seqmem_ros.offline.splits import LEARNED
from seqmem_ros.offline.train import TrainingOptions
from seqmem_ros.offline.train_bags import BagSetting
from seqmem_ros.offline.train_bags import study

OPTIONS = TrainingOptions(hidden_size=4, batch_size=4)
RATE_HZ = 100
N_SAMPLES = 1000


def write_arm(path, n_samples=N_SAMPLES, names=('a', 'b', 'still'), gap_at=None):
    """Record two joints on sines and one that rests, with the exact velocity."""
    samples = []
    for index in range(n_samples):
        t = index / RATE_HZ + (3.0 if gap_at is not None and index >= gap_at else 0.0)
        position = np.array([np.sin(2 * t), 0.5 * np.cos(t), 1.0])
        velocity = np.array([2 * np.cos(2 * t), -0.5 * np.sin(t), 0.0])
        stamp_ns = 5_000_000_000 + round(t * 1e9)
        sample = JointSample(stamp_ns, names, position, velocity, np.empty(0))
        samples.append((stamp_ns + 1_000_000, sample))
    write_joint_bag(path, '/joint_states', samples)
    return path


@pytest.fixture(scope='module')
def bag(tmp_path_factory):
    return write_arm(tmp_path_factory.mktemp('bags') / 'arm')


def test_the_target_is_the_reference_unless_the_recorded_velocity_is_asked_for(bag):
    t = np.arange(N_SAMPLES) / RATE_HZ
    exact = np.stack([2 * np.cos(2 * t), -0.5 * np.sin(t)], axis=1)
    target = study([bag], OPTIONS, BagSetting()).lessons[0].target[:, :2]
    known = np.isfinite(target)
    assert not known[:3].any() and known[5:-5].all()
    np.testing.assert_allclose(target[known], exact[known], atol=1e-4)
    recorded = study([bag], OPTIONS, BagSetting(target='recorded')).lessons[0].target[:, :2]
    np.testing.assert_allclose(recorded, exact, atol=1e-6)


def test_sequences_show_the_degraded_positions_beside_the_clean_target(bag):
    degradation = Degradation(bits=10, drop=0.1, seed=7)
    studied = study([bag], OPTIONS, BagSetting(degradation=degradation))
    sequences = studied.sequences.sequences(LEARNED, degradation, None)
    # One for each joint that moves.
    assert len(sequences) == 2
    lesson = studied.lessons[0]
    n_learned = np.sum(lesson.use == LEARNED)
    for joint, sequence in enumerate(sequences):
        counts = sequence.raw[:, 0] / (2 * np.pi / 1024)
        np.testing.assert_allclose(counts, np.round(counts), atol=1e-3)
        assert 0.85 * n_learned < len(sequence.raw) < 0.95 * n_learned
        clean = np.array([2 * np.cos(2 * t) if joint == 0 else -0.5 * np.sin(t)
                          for t in np.cumsum([0, *sequence.raw[1:, 7]])])  # fmt: skip
        first = sequence.target[10] - clean[10]
        assert np.abs((sequence.target - clean)[sequence.counts] - first).max() < 0.1
        assert not sequence.counts[:4].any()
    held_out = studied.sequences.sequences(HELD_OUT, degradation, None)
    assert sum(len(each.raw) for each in held_out) < 0.21 * 2 * N_SAMPLES


def test_a_pass_is_the_same_again_and_other_than_the_next(bag):
    batches = study([bag], OPTIONS, BagSetting(chunk=64)).sequences
    assert (batches.n_sequences, batches.copies, batches.n_rows) == (2, 2, 4)
    one, again, other = (list(batches.epoch(number)) for number in (3, 3, 4))
    for first, second in zip(one, again):
        for a, b in zip(first, second):
            np.testing.assert_array_equal(a, b)
    assert not np.array_equal(one[0][0], other[0][0])
    assert one[0][0].shape == (4, 64, 11)
    whole = study([bag], OPTIONS, BagSetting(degradation=AS_RECORDED)).sequences
    assert (whole.copies, whole.n_rows) == (1, 2)


def test_a_gap_ends_a_sequence(tmp_path):
    studied = study([write_arm(tmp_path / 'gap', gap_at=300)], OPTIONS, BagSetting())
    sequences = studied.sequences.sequences(LEARNED, AS_RECORDED, None)
    assert [len(each.raw) for each in sequences if each.raw[0, 0] == sequences[0].raw[0, 0]] == [
        300
    ]
    assert len(sequences) == 4
    assert max(each.raw[:, 7].max() for each in sequences) < 0.02


def test_two_bags_by_recording_hold_the_last_one_out(bag, tmp_path):
    other = write_arm(tmp_path / 'other', 600)
    studied = study([bag, other], OPTIONS, BagSetting(split='recording'))
    assert [set(lesson.use) for lesson in studied.lessons] == [{LEARNED}, {HELD_OUT}]
    assert studied.findings['split'] == (
        'by recording: 1000 messages to learn from, 600 held out, 0 between them not used'
    )


def test_together_they_are_read_in_one_order_and_scaled_to_one(bag):
    setting = BagSetting(
        together=True,
        features=('position', 'difference'),
        degradation=AS_RECORDED,
        options=StreamOptions(joints=('b', 'a')),
    )
    studied = study([bag], OPTIONS, setting)
    spec = studied.spec
    assert (spec.joints, spec.network['n_in'], spec.network['n_out']) == (('b', 'a'), 4, 2)
    rows = studied.lessons[0].use == LEARNED
    t = np.arange(N_SAMPLES) / RATE_HZ
    positions = np.stack([0.5 * np.cos(t), np.sin(2 * t)], axis=1)[rows]
    np.testing.assert_allclose(spec.input_mean[::2], positions.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(spec.input_scale[::2], positions.std(axis=0), rtol=1e-5)
    sequence = studied.sequences.sequences(LEARNED, AS_RECORDED, None)[0]
    np.testing.assert_allclose(sequence.raw[:, :, 0], positions, atol=1e-6)
    assert spec.output_scale == pytest.approx(sequence.target[sequence.counts].std(), rel=1e-6)


def test_the_motion_of_each_joint_is_a_label(bag):
    studied = study([bag], replace(OPTIONS, task='label'), BagSetting())
    assert studied.spec.labels == LABELS and studied.spec.joints == ()
    target = studied.lessons[0].target
    assert set(target[10:-10, 2]) == {0}
    # Joint b is at 0.5 cos t: it goes back until pi, then forward.
    assert LABELS[target[100, 1]] == 'backward' and LABELS[target[400, 1]] == 'forward'


def test_what_is_held_out_is_scored_through_a_stream(bag):
    setting = BagSetting(degradation=AS_RECORDED)
    studied = study([bag], OPTIONS, setting)
    model = SequenceModel(studied.spec, build_network(studied.spec.network, jax.random.key(0)))
    scores = score_velocity(model, studied.lessons, AS_RECORDED, model)
    assert list(scores) == ['model', 'before', 'difference', 'lowpass', 'savgol', 'kalman']
    assert scores['model'] == scores['before']
    lesson = studied.lessons[0]
    rows = np.flatnonzero(lesson.use == HELD_OUT)
    t = rows / RATE_HZ
    position = np.stack([np.sin(2 * t), 0.5 * np.cos(t)], axis=1)
    difference = np.diff(position, axis=0)[3:] * RATE_HZ
    errors = (difference - lesson.target[rows[4:], :2])[np.isfinite(lesson.target[rows[4:], 0])]
    assert scores['difference'] == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-3)


@pytest.mark.parametrize(
    ('changes', 'sentence'),
    [
        ({'hold_out': 0.0}, 'hold-out: expected a share above 0 and below 1, got 0.0'),
        ({'chunk': 9}, 'chunk: expected at least 10 samples, got 9'),
    ],
)
def test_settings_out_of_range(changes, sentence):
    with pytest.raises(SeqmemError) as error:
        BagSetting(**changes)
    assert str(error.value) == sentence


def test_a_model_to_go_on_from_must_fit(bag):
    together = study([bag], OPTIONS, BagSetting(together=True)).spec
    other = replace(together, joints=('x', 'y', 'z'))
    with pytest.raises(SeqmemError, match='expected the joints of the model, x, y, z, found a, b'):
        study([bag], OPTIONS, BagSetting(), other)


def test_a_model_to_go_on_from_gets_the_fields_that_it_reads_in_the_node(bag):
    network = {'builder': 'recurrent_net', 'cell': 'gru', 'n_in': 2, 'n_hidden': 3, 'n_out': 1}
    spec = ModelSpec('velocity', network, 'direct', ('velocity', 'position'))
    studied = study([bag], OPTIONS, BagSetting(degradation=AS_RECORDED), spec)
    t = np.arange(N_SAMPLES) / RATE_HZ
    velocities = (2 * np.cos(2 * t), -0.5 * np.sin(t))
    sequences = studied.sequences.sequences(LEARNED, AS_RECORDED, None)
    assert len(sequences) == 2
    for sequence, velocity in zip(sequences, velocities):
        np.testing.assert_allclose(sequence.raw[:, 1], velocity[: len(sequence.raw)], atol=1e-6)
        # Nobody reads efforts, and there are none.
        assert (sequence.raw[:, 2] == 0).all()
