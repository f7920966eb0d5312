"""Levels and numbers of the diagnostics, and how often a log line is written."""

from collections import Counter

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from diagnostic_msgs.msg import DiagnosticStatus

from seqmem_ros.core.filters import Difference
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.stream import Stream
from seqmem_ros.ros.diagnostics import judge
from seqmem_ros.ros.diagnostics import Monitor
from seqmem_ros.ros.diagnostics import status
from seqmem_ros.ros.event_log import EventLog
from seqmem_ros.ros.reporter import Reporter

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR


@pytest.mark.parametrize(
    'new, level, message',
    [
        ({'received': 9, 'estimated': 9}, OK, 'estimating'),
        ({'received': 3, 'filling': 3}, OK, 'estimating'),
        ({}, WARN, 'no joint states are coming in'),
        ({'received': 9, 'estimated': 8, 'drop_late': 1}, WARN, 'drop_late 1'),
        ({'received': 9, 'estimated': 9, 'value_jump': 2}, WARN, 'value_jump 2'),
        ({'received': 9, 'filling': 9, 'reset_gap': 1}, WARN, 'reset_gap 1'),
        ({'received': 9, 'filling': 9, 'reset_requested': 1}, OK, 'estimating'),
        ({'received': 2, 'drop_late': 2}, ERROR, 'no message can be used: drop_late 2'),
        (
            {'received': 9, 'estimated': 8, 'drop_non_finite_output': 1},
            ERROR,
            'the model fails: drop_non_finite_output 1',
        ),
    ],
)
def test_the_level_follows_from_the_counts(new, level, message):
    assert judge(Counter(new)) == (level, message)


@pytest.mark.parametrize(
    'new, shared, n_unheard, level, message',
    [
        (
            {'received': 9, 'estimated': 8, 'drop_duplicate_stamp': 1, 'value_conflict': 2},
            ['a'],
            0,
            ERROR,
            'publishers contradict each other: drop_duplicate_stamp 1, value_conflict 2',
        ),
        ({'received': 9, 'estimated': 9}, ['a', 'b'], 0, WARN, 'several publishers send a, b'),
        (
            {'received': 9, 'estimated': 8, 'drop_late': 1},
            ['a'],
            0,
            WARN,
            'several publishers send a; drop_late 1',
        ),
        ({}, [], 2, WARN, '2 publishers cannot be heard for their QoS'),
        (
            {'received': 9, 'estimated': 9},
            [],
            1,
            WARN,
            '1 publishers cannot be heard for their QoS',
        ),
        ({'received': 9, 'merging': 9}, [], 0, OK, 'estimating'),
    ],
)
def test_the_level_follows_from_the_publishers(new, shared, n_unheard, level, message):
    assert judge(Counter(new), shared, n_unheard) == (level, message)


def test_a_report_covers_the_time_since_the_last_one(monkeypatch):
    now_s = 100.0
    monkeypatch.setattr('time.monotonic', lambda: now_s)
    monitor = Monitor()
    for k in range(1, 101):
        monitor.note(latency_ns=k * 1_000_000, step_ns=k * 10_000, age_ns=-k * 2_000_000)
    counts = Counter(received=104, estimated=100, filling=4)
    now_s = 102.0
    level, message, values = monitor.report(counts)
    assert (level, message) == (OK, 'estimating')
    assert values['input_rate_hz'] == '52.0'
    # Of 1..100 with linear interpolation: 50.5 and 99.01.
    assert (values['latency_p50_ms'], values['latency_p99_ms']) == ('50.500', '99.010')
    assert (values['step_p50_ms'], values['step_p99_ms']) == ('0.505', '0.990')
    assert (values['age_p50_ms'], values['age_p99_ms']) == ('-101.000', '-3.980')
    assert (values['received'], values['estimated'], values['filling']) == ('104', '100', '4')

    counts.update(received=2, drop_late=2)
    now_s = 103.0
    level, message, values = monitor.report(counts)
    assert (level, message) == (ERROR, 'no message can be used: drop_late 2')
    assert values['input_rate_hz'] == '2.0'
    assert values['latency_p50_ms'] == 'none'
    assert (values['drop_late'], values['dropped']) == ('2', '2')
    for key in (
        'drop_duplicate_stamp', 'drop_all_rejected', 'value_non_finite', 'value_jump',
        'value_conflict', 'reset_gap', 'reset_joint', 'reset_time_backwards', 'reset_requested',
        'reset_non_finite_output', 'published', 'thinned', 'merging',
    ):  # fmt: skip
        assert values[key] == '0'
    assert (values['shared_joints'], values['unheard_publishers']) == ('none', '0')


def test_a_report_tells_nothing_from_before_the_monitor(monkeypatch):
    now_s = 0.0
    monkeypatch.setattr('time.monotonic', lambda: now_s)
    counts = Counter(received=1000, estimated=990, drop_late=10)
    monitor = Monitor(counts)
    counts.update(received=5, estimated=5)
    now_s = 1.0
    level, message, values = monitor.report(counts)
    assert (level, message) == (OK, 'estimating')
    assert (values['input_rate_hz'], values['received']) == ('5.0', '1005')


def test_a_status_is_pairs_of_text():
    message = status('/arm', WARN, 'told', {'a': '1', 'b': 'two'})
    assert (message.name, message.level, message.message) == ('/arm', WARN, 'told')
    assert [(v.key, v.value) for v in message.values] == [('a', '1'), ('b', 'two')]


def test_one_line_of_a_kind_in_five_seconds():
    lines: list[str] = []
    now_s = 0.0
    log = EventLog(lines.append, lambda: now_s)
    counts = Counter(received=1, drop_late=1)
    log.update(counts, {'drop_late': 'late by 1 s'})
    for k in range(2, 50):
        now_s = 0.1 * k
        counts.update(received=1, drop_late=1)
        log.update(counts, {'drop_late': f'late by {k} s'})
    counts.update(reset_gap=1, reset_requested=1)
    log.update(counts, {'drop_late': 'late by 49 s', 'reset_gap': 'a gap of 1 s'})
    assert lines == ['drop_late: late by 1 s', 'reset_gap: a gap of 1 s']
    now_s = 5.1
    counts.update(drop_late=1)
    log.update(counts, {'drop_late': 'late by 51 s', 'reset_gap': 'a gap of 1 s'})
    assert lines[2:] == ['drop_late: late by 51 s (49 times)']


def test_each_stream_tells_its_own_first_event(harness, monkeypatch):
    """The counters of the one before are no measure of what is new."""
    lines: list[str] = []
    reporter = Reporter(harness.node, 1.0, lambda: ('active', '', None))
    monkeypatch.setattr(reporter, '_events', EventLog(lines.append))
    for stream in (Stream(Difference()), Stream(Difference())):
        reporter.begin(stream)
        stream.push(JointSample(0, ('elbow',), np.zeros(1)))
        reporter.note_events(stream)
        reporter.begin(stream)
        reporter.note_events(stream)
    assert len(lines) == 2
    assert all(line.startswith('drop_zero_stamp: expected a header stamp') for line in lines)
