"""What a user may set, and what is said of the rest."""

import pytest

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.options import StreamOptions

INF, NAN = float('inf'), float('nan')


@pytest.mark.parametrize(
    ('name', 'lowest', 'bad'),
    [
        ('max_gap_s', '1e-06', [0.0, -1.0, INF, NAN]),
        ('max_velocity_rad_s', '0.0', [-0.1, INF, NAN]),
        ('max_rejected', '1', [0, -3]),
        ('clock_jump_tolerance_s', '0.0', [-1e-9, INF, NAN]),
        ('max_merge_age_s', '0.0', [-1.0, INF, NAN]),
        ('min_label_duration_s', '0.0', [-1.0, INF, NAN]),
        ('min_label_score', '0.0', [-0.1, INF, NAN]),
    ],
)
def test_numbers_out_of_range(name, lowest, bad):
    for value in bad:
        with pytest.raises(SeqmemError) as error:
            StreamOptions(**{name: value})
        assert str(error.value) == f'{name}: expected a number from {lowest} up, got {value}'
    StreamOptions(**{name: float(lowest)})


def test_a_probability_is_no_more_than_one():
    with pytest.raises(SeqmemError) as error:
        StreamOptions(min_label_score=1.5)
    assert str(error.value) == 'min_label_score: expected a probability up to 1, got 1.5'


def test_unknown_rule_for_zero_stamps():
    with pytest.raises(SeqmemError) as error:
        StreamOptions(zero_stamp='guess')
    text = "zero_stamp: expected one of reject, receive_time, got 'guess'"
    assert str(error.value) == text


@pytest.mark.parametrize('name', ['joints', 'assume_joint_order', 'continuous_joints'])
def test_a_joint_named_twice(name):
    with pytest.raises(SeqmemError) as error:
        StreamOptions(**{name: ('a', 'b', 'a')})
    assert str(error.value) == f'{name}: expected each joint once, got a, b, a'


def test_limits_of_single_joints():
    options = StreamOptions(joint_max_velocity=('elbow: 3.1', 'left/arm:1:2', ' wrist :0'))
    assert options.velocity_limits() == {'elbow': 3.1, 'left/arm:1': 2.0, 'wrist': 0.0}


@pytest.mark.parametrize('entry', ['elbow', 'elbow: fast', ': 3', 'elbow: -1', 'a: inf', 'a: nan'])
def test_limits_of_single_joints_that_are_none(entry):
    with pytest.raises(SeqmemError) as error:
        StreamOptions(joint_max_velocity=(entry,))
    assert str(error.value) == (
        "joint_max_velocity: expected entries as 'elbow: 3.1', each joint once, in rad/s from 0 "
        f"up, got '{entry}'"
    )
    with pytest.raises(SeqmemError, match='each joint once'):
        StreamOptions(joint_max_velocity=('a: 1', 'a: 2'))
