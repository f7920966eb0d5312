"""
Whatever a weights file can hold: it loads and runs, or it is refused in one sentence.

SEQMEM_FUZZ=whole tries 10,000 files instead of a part of them.
"""

import copy
import json
import time
import tracemalloc

from fuzz_counts import count
import numpy as np
import pytest

from seqmem_ros.core.errors import SeqmemError
from seqmem_ros.core.joints import JointSample
from seqmem_ros.core.network_estimator import NetworkEstimator
from seqmem_ros.core.stream import Stream
from seqmem_ros.core.weights import load_model
from seqmem_ros.core.weights import save_model

NAMES = ('gru', 'lstm', 'attention', 'direct', 'arm_label')
JUNK = (
    None, True, -1, 0, 1, 2, 5, 3.5, 10**9, 10**30, -(10**18), 1e308, '', 'gru', 'x' * 10_000, [],
    [[]], {}, [1, 2], ['a', 'a'], {'builder': 'layer_stack'}, [None], 'nan', '__class__', '../..',
)  # fmt: skip
# A file may cost a few times its size, and what a network of its own size takes to be traced.
ALLOWED_TIMES = 40
ALLOWED_BYTES = 4_000_000


class Files:
    """Mutations of good files: single bytes, lengths, the header, and every value in it."""

    def __init__(self, wholes, seed):
        self.wholes = wholes
        self.rng = np.random.default_rng(seed)

    def __next__(self):
        rng = self.rng
        whole = self.wholes[rng.integers(len(self.wholes))]
        n_header = int.from_bytes(whole[:8], 'little')
        how = int(rng.integers(8))
        if how == 0:
            return rng.bytes(int(rng.integers(0, 300)))
        if how == 1:
            return whole[: rng.integers(len(whole))] + rng.bytes(int(rng.integers(0, 9)))
        if how <= 3:
            data = bytearray(whole)
            end = n_header + 8 if how == 2 else len(whole)
            for _ in range(int(rng.integers(1, 6))):
                data[int(rng.integers(end))] = int(rng.integers(256))
            return bytes(data)
        if how == 4:
            length = int(rng.choice([0, 1, 8, n_header - 1, n_header + 1, 10**8, 2**40, 2**63]))
            return length.to_bytes(8, 'little') + whole[8:]
        header = json.loads(whole[8 : 8 + n_header])
        if how == 5:
            self._change(header)
        else:
            description = json.loads(header['__metadata__']['seqmem'])
            for _ in range(int(rng.integers(1, 3))):
                self._change(description)
            header['__metadata__']['seqmem'] = json.dumps(description)
        text = json.dumps(header).encode()
        return len(text).to_bytes(8, 'little') + text + whole[8 + n_header :]

    def _change(self, tree):
        """Replace, take away or add something at a random place."""
        rng = self.rng
        node = tree
        while True:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            if not keys:
                return
            key = keys[rng.integers(len(keys))]
            inner = node[key]
            if isinstance(inner, (dict, list)) and inner and rng.random() < 0.7:
                node = inner
                continue
            break
        chance = rng.random()
        if chance < 0.7:
            node[key] = copy.deepcopy(JUNK[rng.integers(len(JUNK))])
        elif chance < 0.85:
            del node[key]
        elif isinstance(node, dict):
            node['n_layers' if chance < 0.9 else 'surprise'] = JUNK[rng.integers(len(JUNK))]
        else:
            node.append(node[0])


@pytest.fixture
def make_files(tmp_path, make_model, wholes):
    for name in NAMES if not wholes else ():
        path = tmp_path / 'whole.safetensors'
        save_model(path, make_model(name))
        wholes.append(path.read_bytes())
    return lambda seed: Files(wholes, seed)


@pytest.fixture(scope='module')
def wholes():
    return []


def load(path, data):
    """Return the model, or the sentence with which it was refused."""
    path.write_bytes(data)
    try:
        return load_model(path), None
    except SeqmemError as error:
        return None, str(error)


def test_a_file_is_refused_in_a_sentence_or_its_model_runs(tmp_path, make_files):
    files, path = make_files(0), tmp_path / 'mutated.safetensors'
    refused = loaded = 0
    slowest_s = 0.0
    for _ in range(count(10_000, 250)):
        data = next(files)
        start_s = time.process_time()
        model, sentence = load(path, data)
        slowest_s = max(slowest_s, time.process_time() - start_s)
        if model is None:
            refused += 1
            assert '\n' not in sentence
            assert str(path) in sentence
            assert 20 < len(sentence) < 1200
            continue
        loaded += 1
        if loaded <= count(25, 3):
            runs(model)
    assert refused > 0.6 * (refused + loaded)
    assert loaded > 5
    # Not a measurement: whatever hangs takes longer.
    assert slowest_s < 30


def runs(model):
    """Nothing but finite numbers comes out, whatever the numbers in the file are."""
    fields = ('position', 'velocity', 'effort')
    names = model.spec.joints or ('a', 'b')
    try:
        stream = Stream(NetworkEstimator(model))
    except SeqmemError as error:
        assert "set memory to 'window'" in str(error)
        return
    for k in range(8):
        values = {name: np.sin(0.3 * k + np.arange(len(names))) for name in fields}
        estimate = stream.push(JointSample(10**18 + k * 10**7, names, **values))
        if estimate is not None:
            out = estimate.velocity if estimate.scores is None else estimate.scores
            assert np.isfinite(out).all()


def test_no_more_memory_is_taken_than_a_file_brings(tmp_path, make_files):
    files, path = make_files(1), tmp_path / 'mutated.safetensors'
    worst = 0.0
    tracemalloc.start()
    try:
        for _ in range(count(2000, 80)):
            data = next(files)
            tracemalloc.reset_peak()
            start, _ = tracemalloc.get_traced_memory()
            load(path, data)
            _, peak = tracemalloc.get_traced_memory()
            worst = max(worst, (peak - start - ALLOWED_BYTES) / (len(data) + 1))
    finally:
        tracemalloc.stop()
    assert worst < ALLOWED_TIMES
