"""Recordings of other robots, where they are at hand: each as its description says."""

from pathlib import Path

import numpy as np
import pytest

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.estimators import load_estimator
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.offline.bags import list_topics
from seqmem_ros.offline.bags import read_joint_messages
from seqmem_ros.offline.degrade import AS_RECORDED
from seqmem_ros.offline.degrade import Degradation
from seqmem_ros.offline.evaluate import evaluate_bag
from seqmem_ros.offline.evaluate import Setting

DATA = Path(__file__).parents[3] / 'shared' / 'data'

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason='the recordings of other robots are not part of this repository'
)


def evaluate(path, degradation=AS_RECORDED, **options):
    setting = Setting(degradation, StreamOptions(**options), fast=True)
    return evaluate_bag(DATA / path, {'difference': load_estimator('difference')}, setting)


def test_the_lwr_has_a_velocity_that_is_just_a_difference():
    result = evaluate('kuka_lwr/kuka_lwr.bag', Degradation(bits=14, drop=0.0))
    assert (result.health.messages, result.health.joints) == (4101, 7)
    assert result.health.rate_hz == pytest.approx(100.0, abs=0.5)
    moving = [result.truth[name].kind for name in np.array(result.recording.names)[result.moving]]
    assert set(moving) == {'difference'}
    assert -0.005 < result.health.delay_s < -0.002
    assert np.isfinite(result.estimators['difference'].total.rmse)


@pytest.mark.parametrize('name', ['pr2_static', 'pr2_moving_tilt'])
def test_the_pr2_has_45_joints_and_comes_in_bursts(name):
    result = evaluate(f'pr2/{name}.bag')
    assert result.health.joints == 45
    assert result.health.rate_hz == pytest.approx(100.0, abs=2.0)
    assert result.health.delay_range_s[1] > 0.03
    assert len(result.still_joints) >= 44


def test_a_header_of_an_older_name_and_a_topic_without_a_slash():
    path = DATA / 'rsp_pr2' / 'joint_states_indexed.bag'
    messages = list(read_joint_messages(path))
    assert len(messages) == 1598
    assert {len(message.sample.names) for message in messages} == {42}
    assert 'joint_states' in list_topics(path)


@pytest.mark.parametrize('name', ['G-Shape-3_joints', 'N-Shape-1_joints'])
def test_recordings_without_stamps_or_times(name):
    path = f'more_dmps/{name}.bag'
    messages = list(read_joint_messages(DATA / path))
    assert {message.sample.stamp_ns for message in messages} == {0}
    assert {message.sample.velocity.size for message in messages} == {0}
    with pytest.raises(SeqmemError, match=r'drop_zero_stamp \d+ .expected a header stamp, got 0'):
        evaluate(path)


def test_a_damaged_index_is_an_error_in_one_line():
    with pytest.raises(SeqmemError, match=r'grab\.bag: ') as error:
        list(read_joint_messages(DATA / 'segbot_arm' / 'grab.bag'))
    assert '\n' not in str(error.value)


@pytest.mark.parametrize('path', ['mcap', 'sqlite3'])
def test_bags_of_many_types(path):
    messages = list(read_joint_messages(DATA / 'rosbags_rs' / path))
    assert len(messages) == 2
    for message in messages:
        assert abs(message.record_ns - message.sample.stamp_ns) > 10**9
