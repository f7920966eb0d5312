"""The evaluation as a whole: on a bag written here, and on the one that is shipped."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest

import seqmem_ros
from seqmem_ros.core import motion as motion_labels
from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.stream import Stream
from seqmem_ros.offline.bags import read_joint_messages
from seqmem_ros.offline.bags import write_joint_bag
from seqmem_ros.offline.degrade import AS_RECORDED
from seqmem_ros.offline.degrade import Degradation
from seqmem_ros.offline.degrade import degrade
from seqmem_ros.offline.evaluate import count_messages
from seqmem_ros.offline.evaluate import evaluate_bag as evaluate_with
from seqmem_ros.offline.evaluate import Setting
from seqmem_ros.offline.tables import report

SHIPPED_BAG = Path(seqmem_ros.__file__).parent / 'data' / 'kr300_a'
NAMES = ('shoulder', 'elbow', 'finger')
PERIOD_S = 0.01
START_NS = 1_700_000_000_000_000_000


def evaluate_bag(bag, estimators, degradation=None, options=None, on_progress=None):
    """Evaluate with two of the settings."""
    setting = Setting(degradation or Degradation(), options or StreamOptions())
    return evaluate_with(bag, estimators, setting, on_progress)


def motion(count=400):
    """Return positions and velocities: two joints in motion from rest, one at rest."""
    time_s = np.arange(count) * PERIOD_S
    phase = np.maximum(time_s - 1.0, 0.0)
    position = np.stack(
        [0.5 * (1 - np.cos(3.0 * phase)), 0.2 * (1 - np.cos(5.0 * phase)), 0.7 + 0.0 * phase],
        axis=1,
    )
    velocity = np.stack([1.5 * np.sin(3.0 * phase), np.sin(5.0 * phase), 0.0 * phase], axis=1)
    return position, velocity


def write_bag(path, count=400, velocity=None):
    position, truth = motion(count)
    velocity = truth if velocity is None else velocity
    stamps = [START_NS + index * 10_000_000 for index in range(count)]
    samples = [
        (stamp + 200_000, JointSample(stamp, NAMES, position[i], velocity[i]))
        for i, stamp in enumerate(stamps)
    ]
    write_joint_bag(path, '/joint_states', samples, 'base')
    return samples


def filters(*names):
    return {name: load_estimator(name) for name in names}


@pytest.fixture
def bag(tmp_path):
    write_bag(tmp_path / 'bag')
    return tmp_path / 'bag'


def test_scores_are_those_of_the_stream_against_the_true_velocity(bag):
    setting = Degradation(bits=12, drop=0.05, seed=3)
    result = evaluate_bag(bag, filters('difference', 'kalman'), setting)
    stream = Stream(load_estimator('difference'))
    estimates = {}
    samples = [message.sample for message in read_joint_messages(bag)]
    for sample in degrade(samples, setting):
        estimate = stream.push(sample)
        if estimate is not None:
            estimates[sample.stamp_ns] = estimate.velocity
    _, truth = motion()
    errors = []
    # The window of the reference is three samples wide on each side.
    for index in range(3, 397):
        stamp_ns = START_NS + index * 10_000_000
        if stamp_ns in estimates:
            errors.append(estimates[stamp_ns] - truth[index])
    errors = np.array(errors)
    total = result.estimators['difference'].total
    assert total.samples == 2 * len(errors)
    # The reference is not the truth: it rounds off the start from rest, by 0.2 rad/s at most.
    assert total.rmse == pytest.approx(np.sqrt(np.mean(errors[:, :2] ** 2)), rel=0.02)
    per_joint = result.estimators['difference'].per_joint
    for joint, name in enumerate(NAMES[:2]):
        expected = np.sqrt(np.mean(errors[:, joint] ** 2))
        assert per_joint[name].rmse == pytest.approx(expected, rel=0.02)
    squares = [per_joint[name].rmse ** 2 for name in NAMES[:2]]
    assert total.rmse == pytest.approx(np.sqrt(np.mean(squares)), rel=1e-12)


def test_joints_that_never_move_count_for_standstill_only(bag):
    result = evaluate_bag(bag, filters('difference'), Degradation(bits=12, drop=0.0))
    assert result.still_joints == ('finger',)
    entry = result.estimators['difference']
    assert entry.total.samples == sum(entry.per_joint[name].samples for name in NAMES[:2])
    assert np.isnan(entry.per_joint['finger'].lag_s)
    assert entry.per_joint['finger'].rmse == 0.0
    text = report(result)
    assert '1 joints never move: they count for standstill, not for the other totals' in text


def test_all_estimators_are_compared_on_the_same_samples(bag):
    class Late:
        """A filter that speaks only from the 50th sample on."""

        def __init__(self):
            self._inner = load_estimator('difference')

        def __getattr__(self, name):
            return 50 if name == 'window' else getattr(self._inner, name)

    result = evaluate_bag(bag, {**filters('difference'), 'late': Late()}, AS_RECORDED)
    counted = {name: each.total.samples for name, each in result.estimators.items()}
    assert counted == {'difference': 2 * (397 - 49), 'late': 2 * (397 - 49)}
    assert result.estimators['difference'].counts['estimated'] == 396


def test_the_lag_of_the_difference_is_half_a_period(bag):
    result = evaluate_bag(bag, filters('difference'), AS_RECORDED)
    total = result.estimators['difference'].total
    assert total.lag_s == pytest.approx(PERIOD_S / 2, abs=2e-4)
    assert total.rmse_at_lag < 0.3 * total.rmse


def test_two_runs_say_the_same_and_another_seed_something_else(bag):
    runs = [
        evaluate_bag(bag, filters('kalman'), Degradation(drop=0.1, seed=seed)).to_json()
        for seed in (1, 1, 2)
    ]
    assert json.dumps(runs[0]) == json.dumps(runs[1])
    assert runs[0]['estimators'] != runs[2]['estimators']


def test_the_json_has_the_documented_layout(bag):
    content = evaluate_bag(bag, filters('difference', 'kalman')).to_json()
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content['bag'] == str(bag) and content['topic'] == '/joint_states'
    assert content['frame_id'] == 'base'
    assert content['degradation']['bits'] == 14
    assert content['degradation']['summary'] == (
        '14 bits per revolution, 1 % of messages dropped, seed 0'
    )
    assert content['reference']['degree'] == 3
    assert content['reference']['half_width_s'] == pytest.approx(0.035)
    assert content['truth_check']['joints']['elbow']['kind'] == 'other'
    assert content['health']['rate_hz'] == pytest.approx(100.0)
    assert list(content['estimators']) == ['difference', 'kalman']
    entry = content['estimators']['kalman']
    numbers = {
        'samples', 'rmse', 'lag_s', 'rmse_at_lag', 'p99', 'standstill_rms', 'rest_samples',
    }  # fmt: skip
    assert numbers <= set(entry)
    assert set(entry['per_joint']) == set(NAMES)
    assert set(entry['per_joint']['elbow']) == numbers
    assert entry['per_joint']['finger']['lag_s'] is None
    assert entry['counts']['received'] == entry['counts']['estimated'] + 4


def test_a_velocity_that_is_a_difference_is_told(tmp_path):
    position, _ = motion()
    difference = np.concatenate([np.zeros((1, 3)), np.diff(position, axis=0) / PERIOD_S])
    write_bag(tmp_path / 'bag', velocity=difference)
    result = evaluate_bag(tmp_path / 'bag', filters('difference'))
    kinds = {name: check.kind for name, check in result.truth.items()}
    assert kinds == {'shoulder': 'difference', 'elbow': 'difference', 'finger': 'at rest'}
    assert 'truth check  recorded velocity is the backward difference' in report(result)


def test_joints_that_wrap_have_a_reference_without_jumps(tmp_path):
    time_s = np.arange(300) * PERIOD_S
    wrapped = (3.0 * time_s + np.pi) % (2.0 * np.pi) - np.pi
    samples = [
        (stamp, JointSample(stamp, ('wheel',), wrapped[i : i + 1]))
        for i, stamp in enumerate(START_NS + np.arange(300) * 10_000_000)
    ]
    write_joint_bag(tmp_path / 'bag', '/joint_states', samples)
    options = StreamOptions(continuous_joints=('wheel',))
    result = evaluate_bag(tmp_path / 'bag', filters('difference'), AS_RECORDED, options)
    velocity = result.reference.velocity[3:-3]
    np.testing.assert_allclose(velocity, 3.0, atol=1e-6)
    assert result.estimators['difference'].total.rmse < 1e-6


class LabelStub:
    """Labels each joint by the sign of its last step, for tests of the bookkeeping."""

    name = 'stub'
    task = 'label'
    joints = ()
    fields = ('position',)
    source = 'stub'
    digest = ''
    window = 5
    compile_count = 0

    def __init__(self, labels, per_joint=True):
        self.labels = labels
        self.per_joint = per_joint

    def init_state(self, capacity):
        return ()

    def step(self, windows, advance, state):
        step = windows.differences()[:, 0]
        scores = np.full((len(step), len(self.labels)), 0.1)
        scores[np.arange(len(step)), np.where(step < 0, 0, 1)] = 0.9
        return scores if self.per_joint else scores[:1], state


def test_labels_of_motion_are_scored_against_those_of_the_reference(bag):
    """A model that always says 'stationary' is right as often as the arm rests."""
    stub = LabelStub(motion_labels.LABELS)
    stub.step = lambda windows, advance, state: (np.eye(3)[np.zeros(len(advance), int)], state)
    result = evaluate_bag(bag, {'stub': stub}, AS_RECORDED)
    _, velocity = motion()
    entry = result.estimators['stub']
    assert entry.per_joint['finger'].macro_f1 == 1.0
    for joint, name in enumerate(NAMES[:2]):
        # From the fifth sample on, less the rim of the reference.
        resting = np.abs(velocity[4:397, joint]) < 0.02
        got = entry.per_joint[name]
        assert got.samples == 393 and got.confusion[:, 1:].sum() == 0
        assert got.accuracy == pytest.approx(resting.mean(), abs=0.01)
    assert entry.total.samples == 3 * 393
    assert f'stub: macro-F1 {entry.total.macro_f1:.3f}, accuracy' in report(result)
    content = result.to_json()['estimators']['stub']
    assert np.sum(content['confusion']) == 3 * 393 and content['labels'][0] == 'stationary'


def test_labels_of_the_whole_arm_are_kept_but_not_scored(bag):
    stub = LabelStub(motion_labels.LABELS, per_joint=False)
    result = evaluate_bag(bag, {**filters('difference'), 'stub': stub})
    assert result.estimators['stub'].outputs.shape == (400, 1, 3)
    assert result.estimators['stub'].note == 'it labels the whole arm: name the true labels'


def test_labels_that_have_no_reference_are_reported_without_a_score(bag):
    estimators = {**filters('difference'), 'stub': LabelStub(('open', 'shut'))}
    result = evaluate_bag(bag, estimators)
    assert result.estimators['stub'].total is None
    assert result.estimators['stub'].outputs.shape == (400, 3, 2)
    note = 'its labels are not those of motion: name the true ones'
    assert result.to_json()['estimators']['stub']['note'] == note
    assert f'stub: {note}' in report(result)


def test_a_damaged_bag_is_scored_as_far_as_it_goes(bag, caplog):
    file = bag / 'bag.mcap'
    content = file.read_bytes()
    file.write_bytes(content[: len(content) * 2 // 3])
    with caplog.at_level(logging.WARNING):
        result = evaluate_bag(bag, filters('difference'))
    assert len(caplog.messages) == 1 and caplog.messages == list(result.warnings)
    assert 100 < result.health.messages < 400
    assert result.to_json()['warnings'] == list(result.warnings)


def test_what_cannot_be_scored_is_refused_with_the_reason(tmp_path, bag):
    with pytest.raises(
        SeqmemError,
        match=r'no message gave an estimate; the first comes with sample 5 of a joint: '
        r'difference, kalman: received \d+, '
        r'drop_no_known_joint \d+ \(expected some of the joints nose',
    ):
        evaluate_bag(bag, filters('difference', 'kalman'), options=StreamOptions(joints=('nose',)))
    write_bag(tmp_path / 'short', count=6)
    with pytest.raises(
        SeqmemError,
        match=r'no reference can be made: expected unbroken stretches of at least 0.07 s, got '
        r'6 messages, 3 joints, 0.05 s at 100 Hz, no faults',
    ):
        evaluate_bag(tmp_path / 'short', filters('difference'), AS_RECORDED)
    with pytest.raises(
        SeqmemError,
        match=r'expected a reference window of at least 0.03 s, 3 samples to each side, got 0.00',
    ):
        evaluate_with(bag, filters('difference'), Setting(half_width_s=0.001))
    unstamped = [(r, JointSample(0, s.names, s.position)) for r, s in write_bag(tmp_path / 'b')]
    write_joint_bag(tmp_path / 'unstamped', '/joint_states', unstamped)
    with pytest.raises(SeqmemError, match='drop_zero_stamp 400'):
        evaluate_bag(tmp_path / 'unstamped', filters('difference'), AS_RECORDED)
    options = StreamOptions(zero_stamp='receive_time')
    result = evaluate_bag(tmp_path / 'unstamped', filters('difference'), AS_RECORDED, options)
    assert result.health.zero_stamps == 400 and result.estimators['difference'].total.rmse < 0.1


def test_the_progress_is_told_how_much_there_is(bag):
    told = []
    evaluate_bag(bag, filters('difference'), on_progress=told.append)
    assert sum(told) == count_messages(bag) == 400


def test_the_shipped_recording_is_what_its_readme_says():
    messages = list(read_joint_messages(SHIPPED_BAG))
    stamps = np.array([message.sample.stamp_ns for message in messages])
    assert len(messages) == 2501 and set(np.diff(stamps)) == {4_000_000}
    assert {message.frame_id for message in messages} == {'base_link'}
    assert {message.sample.names for message in messages} == {
        tuple(f'joint_a{axis}' for axis in range(1, 7))
    }
    position = np.array([message.sample.position for message in messages])
    # Axis 1 goes from 0 to 46.3 degrees, as in the source.
    assert np.rad2deg(position[:, 0].max()) == pytest.approx(46.3057715, abs=1e-6)
    files = {path.name for path in SHIPPED_BAG.iterdir()}
    assert files == {'LICENSE', 'README.md', 'kr300_a.mcap', 'metadata.yaml'}


def test_the_shipped_recording_is_clean_and_its_velocity_a_lagging_low_pass():
    result = evaluate_bag(SHIPPED_BAG, filters('difference', 'kalman'))
    assert str(result.health) == '2501 messages, 6 joints, 10.00 s at 250 Hz, no faults'
    assert {check.kind for check in result.truth.values()} == {'low-pass'}
    lags_s = [check.lag_s for check in result.truth.values()]
    assert 0.004 < min(lags_s) and max(lags_s) < 0.005
    difference, kalman = (result.estimators[name].total for name in ('difference', 'kalman'))
    # 14 bits at 250 Hz: a step of 2 pi / 2^14 in 4 ms, and its error uniform in phase.
    assert difference.rmse == pytest.approx(np.sqrt(2 / 12) * 2 * np.pi / 2**14 / 0.004, rel=0.15)
    assert kalman.rmse < 0.5 * difference.rmse
    assert np.nanmax(result.reference.doubt_rad_s) < 0.05 * kalman.rmse
