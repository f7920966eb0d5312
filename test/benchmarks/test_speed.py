"""The benchmarks of speed: their peers are our networks, and the page says what was measured."""

import importlib.util
import json

import numpy as np
import pytest

HAS_PEERS = all(
    importlib.util.find_spec(name) for name in ('torch', 'onnxruntime', 'onnx', 'equinox', 'flax')
)
needs_peers = pytest.mark.skipif(not HAS_PEERS, reason="needs the extra 'bench'")


@needs_peers
@pytest.mark.parametrize('cell', ['gru', 'lstm', 'attention'])
def test_the_peers_are_the_same_network(cell):
    step = importlib.import_module('step')
    differences = step.check(step.model_of(cell, 32), cell, n_samples=12)
    assert set(differences) == set(step.PEERS)
    assert max(differences.values()) <= 1e-5


@needs_peers
def test_a_peer_that_is_another_network_is_refused(monkeypatch):
    step = importlib.import_module('step')
    monkeypatch.setattr(
        step, 'PEERS', {'other': lambda cell, weights, n_joints: lambda x: np.zeros(n_joints)}
    )
    with pytest.raises(SystemExit, match='other, gru: expected outputs within 1e-05, got'):
        step.check(step.model_of('gru', 32), 'gru', n_samples=3)


def test_turns_are_taken_in_rounds():
    measure = importlib.import_module('measure')
    calls = []
    times = measure.in_turns(
        {'a': lambda: calls.append('a'), 'b': lambda: calls.append('b')}, 2, 3, warm_up=1
    )
    assert calls == (['a'] * 4 + ['b'] * 4) * 2
    assert times['a'].shape == (2, 3)
    assert (times['b'] > 0).all()


def test_ratios_are_taken_within_a_round():
    measure = importlib.import_module('measure')
    ours = np.array([[10, 10, 90], [100, 100, 900], [30, 30, 30]])
    peer = np.array([[20, 20, 20], [200, 200, 200], [30, 30, 30]])
    assert measure.ratio(ours, peer) == 0.5
    # Medians of the rounds are 10, 100 and 30 ns.
    assert measure.percentiles_us(ours)['p50'] == 0.03


def test_the_page_holds_figures_to_their_limits(tmp_path):
    page = importlib.import_module('performance_page')
    machine = {
        'cores': 2, 'processor': 'a processor', 'memory_gib': 4.0, 'system': 'Linux 6',
        'python': '3.12', 'load_1min': 0.5, 'packages': {'jax': '0.9'},
    }  # fmt: skip
    (tmp_path / 'images').mkdir()
    processes = {
        'import only': {
            'start_s': 2.0, 'start_ratio': 1.0, 'resident_mib': 200.0, 'resident_ratio': 1.0,
        },
        'node, cache': {
            'start_s': 4.0, 'start_ratio': 2.0, 'resident_mib': 220.0, 'resident_ratio': 1.1,
        },
    }  # fmt: skip
    (tmp_path / 'start.json').write_text(json.dumps({'machine': machine, 'processes': processes}))
    page.write_page(tmp_path, tmp_path)
    text = (tmp_path / 'performance.md').read_text()
    assert '| second start / import only | 2 | 1.5 | NO |' in text
    assert '| resident size / import only | 1.1 | 1.25 | yes |' in text
    assert 'Machine: 2 cores of a processor' in text
