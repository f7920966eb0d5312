"""Memories of many arrays as one: nothing may change on the way."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from seqmem_ros.core.packed_state import PackedState


@pytest.fixture
def state():
    rng = np.random.default_rng(0)
    return (
        {'b': rng.standard_normal(3), 'a': rng.standard_normal((3, 2)).astype(np.float32)},
        (np.array([[7], [-1], [2**31 - 1]], dtype=np.int32), ()),
    )


def of_one_row(state):
    return jax.tree.map(lambda leaf: leaf[0], state)


def beside_each_other(state):
    words = [
        np.ascontiguousarray(leaf).reshape(3, -1).view(np.float32)
        for leaf in jax.tree.leaves(state)
    ]
    return np.concatenate(words, axis=1)


def test_columns_stand_in_the_order_of_the_tree(state):
    state[0]['b'] = state[0]['b'].astype(np.float32)
    packing = PackedState(of_one_row(state))
    packed = np.asarray(jax.vmap(packing.pack)(state))
    assert packing.width == 4
    np.testing.assert_array_equal(packed[:, :2], state[0]['a'])
    np.testing.assert_array_equal(packed[:, 2], state[0]['b'])
    np.testing.assert_array_equal(packed[:, 3].view(np.int32), state[1][0][:, 0])


def test_all_arrays_come_back_bit_by_bit(state, x64):
    packing = PackedState(of_one_row(state))
    assert packing.width == 5
    packed = beside_each_other(state)
    np.testing.assert_array_equal(packed, jax.jit(jax.vmap(packing.pack))(state))
    back = jax.jit(jax.vmap(packing.unpack))(packed)
    assert jax.tree.structure(back) == jax.tree.structure(state)
    for got, expected in zip(jax.tree.leaves(back), jax.tree.leaves(state)):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


def test_a_memory_without_arrays_has_no_columns():
    assert PackedState(((), ())).width == 0
    assert PackedState(()).pack(()).shape == (0,)


def test_numbers_of_other_sizes_are_refused():
    with pytest.raises(ValueError, match='expected numbers of 4 or 8 bytes, got bool'):
        PackedState((jnp.zeros(2, bool),))
