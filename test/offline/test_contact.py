"""Contact models: blocks that do not leak, peers that are what they say, files that load."""

from dataclasses import replace

import numpy as np

from seqmem_ros.core.weights import load_model
from seqmem_ros.offline import contact
from seqmem_ros.offline.contact import nearest_neighbour
from seqmem_ros.offline.contact_blocks import blocks_of
from seqmem_ros.offline.contact_blocks import learned_from


def test_blocks_are_contiguous_and_show_every_link():
    y = np.repeat([[0, 2, 2, 2, 2, 2], [0, 3, 3, 3, 3, 3]], [10, 15], axis=0).ravel()
    blocks = blocks_of(y, 5)
    for block in range(5):
        rows = blocks == block
        assert set(y[rows]) == {0, 2, 3}
        # Two stretches, one of each link, each of whole touches.
        assert np.sum(np.diff(np.flatnonzero(rows)) > 1) == 1
        assert (np.bincount(np.flatnonzero(rows) // 6) % 6 == 0).all()
    np.testing.assert_array_equal(blocks_of(np.arange(1, 11), 5), np.repeat(np.arange(5), 2))


def test_nothing_near_a_block_is_learned_from():
    blocks = np.repeat(np.arange(5), 40)
    for held_out in range(5):
        learned = np.flatnonzero(learned_from(blocks, held_out))
        asked = np.flatnonzero(blocks == held_out)
        assert np.abs(learned[:, None] - asked).min() == 11
    # Fewer windows than lie near one.
    np.testing.assert_array_equal(learned_from(np.repeat([0, 1], [12, 3]), 1), np.arange(15) < 2)


def test_the_nearest_neighbour_is_nearest_after_scaling():
    rng = np.random.default_rng(0)
    x, asked = rng.standard_normal((50, 4, 2)), rng.standard_normal((9, 4, 2))
    x[..., 1], asked[..., 1] = 1e-4 * x[..., 1], 1e-4 * asked[..., 1]
    y = rng.integers(0, 3, 50)
    scale = x.reshape(-1, 2).std(axis=0)
    expected = [
        y[np.argmin([(((known - one) / scale) ** 2).sum() for known in x])] for one in asked
    ]
    np.testing.assert_array_equal(nearest_neighbour(x, y, asked), expected)


def test_a_file_is_written_with_its_scores(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(1)
    links = np.repeat([2, 3, 2, 3], 5)
    x = 1e-5 * rng.standard_normal((len(links), 6, 28, 3))
    for touch, link in enumerate(links):
        x[touch, 1:, 14:, link - 2] += 3e-4
    y = np.repeat(links, 6)
    y[::6] = 0
    np.savez(tmp_path / 'arm.npz', X=x.reshape(-1, 28, 3), y=y)
    robot = contact.Robot(
        'arm', ('p', 'q', 'r'), 'arm', ('position', 'lag_velocity'), 0.2e-4, 0.2, 32, 'arm'
    )  # fmt: skip
    monkeypatch.setattr(contact, 'ROBOTS', (robot,))
    monkeypatch.setattr(contact, 'FOLDS', 2)
    small = replace(contact.OPTIONS, hidden_size=16, learning_rate=2e-2)
    monkeypatch.setattr(contact, 'OPTIONS', small)
    assert contact.main([str(tmp_path), '--out', str(tmp_path), '--steps', '60']) == 0
    model = load_model(tmp_path / 'contact_arm.safetensors')
    assert model.spec.labels == ('none', 'link_2', 'link_3')
    assert (model.spec.joints, model.spec.network['window']) == (('p', 'q', 'r'), 28)
    scores = model.spec.card['scores']['arm']
    assert scores['model']['accuracy'] > 0.9
    assert np.sum(scores['confusion']) == len(y)
    assert np.trace(scores['confusion']) == round(scores['model']['accuracy'] * len(y))
    # Each block's commonest label is that of a link; five of twelve windows carry it.
    assert scores['commonest']['accuracy'] < 0.5
    assert 'arm, 120 windows, 2 contiguous blocks' in capsys.readouterr().out
