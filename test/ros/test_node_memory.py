"""The memory in the node: fresh after every reset, exchanged with the weights, never poisoned."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from diagnostic_msgs.msg import DiagnosticArray
from diagnostic_msgs.msg import DiagnosticStatus
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from ros_harness import arm_samples
from ros_harness import NAMES
from ros_harness import PERIOD_NS
from ros_harness import stamps_ns
from std_msgs.msg import Float64MultiArray
from std_msgs.msg import String
from std_srvs.srv import Trigger
from weights_files import write_weights

from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.stream import Stream


def offline(samples, weights, **options):
    stream = Stream(load_estimator('auto', weights), StreamOptions(**options))
    estimates = [stream.push(sample) for sample in samples]
    return [estimate for estimate in estimates if estimate is not None]


def bits(messages):
    return [message.velocity.tobytes() for message in messages]


def set_parameter(harness, name, value):
    request = [Parameter(name, value=value).to_parameter_msg()]
    answer = harness.call(SetParameters, '/seqmem/set_parameters', parameters=request)
    assert answer.results[0].successful, answer.results[0].reason


def noisy(n, start, seed):
    rng = np.random.default_rng(seed)
    samples = arm_samples(n, start=start)
    for sample in samples:
        sample.position[:] += 0.01 * rng.standard_normal(3)
    return samples


def test_after_every_reset_the_node_is_a_fresh_process_to_the_bit(harness, tmp_path):
    parameters = {'weights': str(write_weights(tmp_path, 'lstm')), 'max_rejected': 1}
    part = noisy(20, 5000, seed=1)

    def shifted(by):
        return [JointSample(s.stamp_ns + by * PERIOD_NS, s.names, s.position.copy()) for s in part]

    fresh_process = harness.start(parameters)
    received = harness.collect()
    harness.play(harness.player(), part)
    assert harness.spin_until(lambda: len(received) == 16)
    fresh = bits(received)
    assert fresh_process.stop() == 0
    assert harness.spin_until(lambda: not harness.node.count_subscribers('/joint_states'))

    used_process = harness.start(parameters)
    player = harness.player()

    def plays_as_fresh(samples):
        received.clear()
        harness.play(player, samples)
        assert harness.spin_until(lambda: len(received) == 16), len(received)
        assert stamps_ns(received) == [s.stamp_ns for s in samples[-16:]]
        return bits(received) == fresh

    received.clear()
    harness.play(player, noisy(30, 1000, seed=2))
    assert harness.spin_until(lambda: len(received) == 26)
    # Without a reset the same samples give something else, or this would show nothing.
    assert harness.call(Trigger, '/seqmem/reset').success
    assert plays_as_fresh(part)
    # A gap.
    assert plays_as_fresh(shifted(1000))
    # Nothing but NaN, once as often as allowed.
    nothing = JointSample(shifted(1020)[0].stamp_ns, NAMES, np.full(3, np.nan))
    assert plays_as_fresh([nothing, *shifted(1021)])
    # Time that starts over: one late message, and then they are believed.
    late = JointSample(part[0].stamp_ns - PERIOD_NS, NAMES, np.zeros(3))
    assert plays_as_fresh([late, *part])
    # Without any of these it would not be equal.
    received.clear()
    harness.play(player, shifted(20))
    assert harness.spin_until(lambda: len(received) == 20)
    assert bits(received)[4:] != fresh
    assert used_process.output().count('] [seqmem]: reset_') == 3


def test_weights_are_exchanged_by_configuring_again(harness, tmp_path):
    """In one process, to those of another kind, and back to what does not exist."""
    first, second = (write_weights(tmp_path, name) for name in ('gru', 'attention'))
    reports = harness.collect('/diagnostics', DiagnosticArray)
    received = harness.collect()
    process = harness.start({'weights': str(first), 'diagnostics_rate_hz': 20.0})
    harness.play(harness.player(), arm_samples(12))
    assert harness.spin_until(lambda: len(received) == 8)
    assert bits(received) == [e.velocity.tobytes() for e in offline(arm_samples(12), first)]

    def change(*transitions):
        return [
            harness.call(ChangeState, '/seqmem/change_state', transition=Transition(id=t)).success
            for t in transitions
        ]

    deactivate, cleanup = Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP
    configure, activate = Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE
    assert change(deactivate, cleanup) == [True, True]
    set_parameter(harness, 'weights', str(tmp_path / 'none.safetensors'))
    assert change(configure) == [False]
    set_parameter(harness, 'weights', str(second))
    assert change(configure, activate) == [True, True]
    received.clear()
    reports.clear()
    harness.play(harness.player(), arm_samples(12))
    assert harness.spin_until(lambda: len(received) == 8)
    assert bits(received) == [e.velocity.tobytes() for e in offline(arm_samples(12), second)]
    assert harness.spin_until(lambda: reports)
    values = {v.key: v.value for v in reports[-1].status[0].values}
    assert values['digest'] == load_estimator('auto', second).digest
    assert values['estimator'] == 'attention'
    assert process.output().count('cannot configure') == 1
    assert process.stop() == 0


def test_parts_of_a_named_arm_are_merged_and_a_joint_that_lacks_is_named(harness, tmp_path):
    weights = write_weights(tmp_path, 'arm_label')
    whole = arm_samples(12)
    scores = harness.collect('/seqmem/label_scores', Float64MultiArray)
    process = harness.start({'weights': str(weights)})
    threads = Path(f'/proc/{process.process.pid}/task')
    if threads.is_dir():
        # Middleware and compiler have some; they do not grow with the machine.
        assert len(list(threads.iterdir())) < 40
    arm, hand = harness.player(), harness.player()
    for sample in whole:
        parts = [
            JointSample(sample.stamp_ns, NAMES[at], sample.position[at])
            for at in (slice(0, 2), slice(2, 3))
        ]
        harness.play(arm, parts[:1])
        harness.play(hand, parts[1:])
        harness.spin(0.002)
    assert harness.spin_until(lambda: len(scores) == 8), len(scores)
    expected = offline(whole, weights)
    assert [m.data.tobytes() for m in scores] == [e.scores.tobytes() for e in expected]
    # From here on there is only the arm.
    for k in range(40, 60):
        harness.play(arm, arm_samples(1, NAMES[:2], start=k))
    told = 'expected 3 joints shoulder, elbow, wrist, missing wrist'
    assert harness.spin_until(lambda: told in process.output())
    assert len(scores) == 8


def test_an_output_that_is_not_finite_is_not_published(harness, tmp_path):
    """Weights so large that sums overflow single precision."""
    weights = write_weights(tmp_path, 'direct', huge=True)
    reports = harness.collect('/diagnostics', DiagnosticArray)
    received = harness.collect()
    process = harness.start({'weights': str(weights), 'diagnostics_rate_hz': 20.0})
    harness.play(harness.player(), arm_samples(30))

    def counted():
        values = {v.key: v.value for v in reports[-1].status[0].values} if reports else {}
        return values.get('received') == '30' and values

    assert harness.spin_until(counted)
    values = counted()
    assert int(values['drop_non_finite_output']) > 0
    assert int(values['reset_non_finite_output']) >= int(values['drop_non_finite_output'])
    told = int(values['published']) + int(values['filling']) + int(values['dropped'])
    assert told == 30
    assert all(np.isfinite(m.velocity).all() for m in received)
    worst = max((r.status[0] for r in reports), key=lambda status: status.level)
    assert worst.level == DiagnosticStatus.ERROR
    assert 'non_finite_output' in worst.message
    assert 'drop_non_finite_output: the model gave a value that is not finite' in process.output()


def test_labels_are_told_by_their_rules(harness, tmp_path):
    weights = write_weights(tmp_path, 'label')
    samples = noisy(60, 0, seed=4)
    received = harness.collect('/seqmem/label', String)
    harness.start({'weights': str(weights), 'min_label_duration_s': 0.03})
    player = harness.player()
    harness.play(player, samples)
    assert harness.spin_until(lambda: len(received) == 56)
    expected = offline(samples, weights, min_label_duration_s=0.03)
    texts = [', '.join(f'{n}: {x}' for n, x in zip(e.names, e.labels)) for e in expected]
    assert [m.data for m in received] == texts
    received.clear()
    set_parameter(harness, 'min_label_duration_s', 0)
    set_parameter(harness, 'min_label_score', 1)
    harness.play(player, noisy(10, 60, seed=4))
    assert harness.spin_until(lambda: len(received) == 10)
    assert received[-1].data == 'shoulder: unknown, elbow: unknown, wrist: unknown'
