"""Messages from estimates and samples, field by field."""

from array import array
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from seqmem_ros.core.estimate import Estimate
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.joints import sample_from_message
from seqmem_ros.core.joints import stamp_to_ns
from seqmem_ros.ros import messages

HEAD = messages.Head(12, 999_999_999, 'base')
VELOCITY = Estimate(
    12_999_999_999, ('a', 'b'), np.array([0.1, -2.0]), velocity=np.array([1e-300, -0.0])
)
SCORES = np.array([[0.25, 0.75], [0.9, 0.1]])
LABELS = ('still', 'moving')
EACH = Estimate(12, ('a', 'b'), np.zeros(2), scores=SCORES, labels=('moving', 'still'))
ARM = Estimate(12, ('a', 'b'), np.zeros(2), scores=SCORES[:1], labels=('moving',))


@pytest.mark.parametrize(
    'stamp_ns, sec, nanosec',
    [(0, 0, 0), (1, 0, 1), (1_700_000_000_000_000_001, 1_700_000_000, 1), (-1, -1, 999_999_999)],
)
def test_time(stamp_ns, sec, nanosec):
    stamp = messages.time_from_ns(stamp_ns)
    assert (stamp.sec, stamp.nanosec) == (sec, nanosec)
    assert stamp_to_ns(stamp) == stamp_ns


def test_a_sample_survives_the_way_through_a_message():
    sample = JointSample(5, ('a', 'b'), np.array([0.1, np.nan]), effort=np.array([3.0, -4.0]))
    message = messages.message_from_sample(sample, 'tool')
    assert message.header.frame_id == 'tool'
    assert len(message.velocity) == 0
    back = sample_from_message(message)
    assert (back.stamp_ns, back.names) == (5, ('a', 'b'))
    assert back.position.tobytes() == sample.position.tobytes()
    assert back.effort.tobytes() == sample.effort.tobytes()


def test_velocities_to_the_last_bit():
    message = messages.joint_state(HEAD, VELOCITY)
    assert messages.head_of(message.header) == HEAD
    assert list(message.name) == ['a', 'b']
    assert message.position == array('d', [0.1, -2.0])
    assert message.velocity.tobytes() == np.array([1e-300, -0.0]).tobytes()
    assert len(message.effort) == 0


def test_the_header_is_passed_on_unless_it_has_no_stamp():
    assert messages.head_for(HEAD, VELOCITY) is HEAD
    # As it came, though nobody should write a second like this.
    odd = messages.Head(11, 1_999_999_999, 'base')
    assert messages.head_for(odd, VELOCITY) is odd
    assert messages.head_for(messages.Head(0, 0, 'base'), VELOCITY) == HEAD


def test_labels_as_text():
    assert messages.label_text(EACH, per_joint=True).data == 'a: moving, b: still'
    assert messages.label_text(ARM, per_joint=False).data == 'moving'


def test_scores_say_what_their_rows_and_columns_are():
    message = messages.label_scores(EACH, LABELS, per_joint=True)
    assert list(message.data) == [0.25, 0.75, 0.9, 0.1]
    dims = [(d.label, d.size, d.stride) for d in message.layout.dim]
    assert dims == [('joint=a,b', 2, 4), ('label=still,moving', 2, 2)]
    message = messages.label_scores(ARM, LABELS, per_joint=False)
    assert list(message.data) == [0.25, 0.75]
    assert [(d.label, d.size) for d in message.layout.dim] == [
        ('arm', 1),
        ('label=still,moving', 2),
    ]


def test_classifications_where_they_can_be_had(monkeypatch):
    # vision_msgs is not always there; its two messages are plain records.
    monkeypatch.setattr(messages, 'Classification', SimpleNamespace)
    monkeypatch.setattr(messages, 'ObjectHypothesis', SimpleNamespace, raising=False)
    message = messages.label_classification(HEAD, EACH, LABELS, per_joint=True)
    assert messages.head_of(message.header) == HEAD
    assert [(r.class_id, r.score) for r in message.results] == [
        ('a: still', 0.25), ('a: moving', 0.75), ('b: still', 0.9), ('b: moving', 0.1),
    ]  # fmt: skip
    message = messages.label_classification(HEAD, ARM, LABELS, per_joint=False)
    assert [(r.class_id, r.score) for r in message.results] == [('still', 0.25), ('moving', 0.75)]
