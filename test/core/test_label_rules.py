"""Which label is told, against a plain loop and by hand."""

import numpy as np
import pytest

from seqmem_ros.core.label_rules import LabelRules
from seqmem_ros.core.network_estimator import NetworkEstimator
from seqmem_ros.core.options import StreamOptions
from seqmem_ros.core.stream import Stream

MS = 1_000_000
LABELS = ('still', 'moving')


def told(rules, script, step_ms=10):
    """Feed the probability of 'moving' of one row, and collect what is told."""
    out = []
    for k, moving in enumerate(script):
        scores = np.array([[1 - moving, moving]])
        out += rules.choose(np.array([0]), np.array([k == 0]), k * step_ms * MS, scores)
    return out


def test_without_limits_the_winner_is_told():
    rules = LabelRules(LABELS, StreamOptions(), 1)
    assert told(rules, [0.1, 0.9, 0.2]) == ['still', 'moving', 'still']


def test_a_label_has_to_last():
    rules = LabelRules(LABELS, StreamOptions(min_label_duration_s=0.02), 1)
    # One and two samples of another label are too short, three last 20 ms.
    script = [0.1, 0.9, 0.1, 0.9, 0.9, 0.1, 0.9, 0.9, 0.9, 0.9, 0.1, 0.1, 0.1]
    expected = ['still'] * 8 + ['moving'] * 4 + ['still']
    assert told(rules, script) == expected


def test_a_label_that_is_hardly_believed_is_unknown():
    rules = LabelRules(LABELS, StreamOptions(min_label_score=0.7), 1)
    assert told(rules, [0.6, 0.71, 0.31, 0.29]) == ['unknown', 'moving', 'unknown', 'still']
    both = StreamOptions(min_label_score=0.7, min_label_duration_s=0.02)
    script = [0.9, 0.5, 0.9, 0.5, 0.5, 0.5]
    assert told(LabelRules(LABELS, both, 1), script) == ['moving'] * 5 + ['unknown']


def test_a_row_that_starts_forgets():
    rules = LabelRules(LABELS, StreamOptions(min_label_duration_s=1.0), 2)
    rows = np.array([0, 1])
    still, moving = [0.9, 0.1], [0.1, 0.9]
    no, yes = np.array([False, False]), np.array([True, True])
    assert rules.choose(rows, yes, 0, np.array([still, still])) == ('still', 'still')
    rules.resize(4)
    started = np.array([False, True])
    assert rules.choose(rows, started, MS, np.array([moving, moving])) == ('still', 'moving')
    assert rules.choose(rows, no, 2 * MS, np.array([moving, still])) == ('still', 'moving')


def test_limits_change_while_it_runs():
    rules = LabelRules(LABELS, StreamOptions(min_label_duration_s=9.0), 1)
    assert told(rules, [0.1, 0.9, 0.9]) == ['still'] * 3
    rules.use(StreamOptions())
    scores = np.array([[0.1, 0.9]])
    assert rules.choose(np.array([0]), np.array([False]), 30 * MS, scores) == ('moving',)


@pytest.mark.parametrize('name', ['label', 'arm_label'])
def test_the_stream_tells_labels_by_these_rules(name, make_model, make_sample):
    """Against a loop over the scores of an unlimited stream; a gap starts them again."""
    estimator = NetworkEstimator(make_model(name, seed=2))
    options = StreamOptions(min_label_duration_s=0.05)
    plain, limited = Stream(estimator), Stream(estimator, options)
    rng = np.random.default_rng(1)
    shown, candidate, since_s = {}, {}, {}
    changes = {'plain': 0, 'limited': 0}
    last = {}
    position = np.zeros(3)
    for k in range(300):
        time_s = 0.01 * k + (1.0 if k >= 150 else 0.0)
        position = position + rng.choice([0.0, 0.03], 3) * rng.choice([-1, 1], 3)
        one = plain.push(make_sample(time_s, position))
        other = limited.push(make_sample(time_s, position))
        if k == 150:
            shown.clear()
        assert (one is None) == (other is None)
        if one is None:
            continue
        np.testing.assert_array_equal(one.scores, other.scores)
        for row, (winner, label) in enumerate(zip(one.labels, other.labels)):
            if row not in shown:
                shown[row], candidate[row], since_s[row] = winner, winner, time_s
            elif winner != candidate[row]:
                candidate[row], since_s[row] = winner, time_s
            if time_s - since_s[row] >= 0.05 - 1e-9:
                shown[row] = winner
            assert label == shown[row], (k, row)
            changes['limited'] += last.get(('limited', row), label) != label
            changes['plain'] += last.get(('plain', row), winner) != winner
            last['limited', row], last['plain', row] = label, winner
    if name == 'label':
        assert 0 < changes['limited'] < changes['plain']
