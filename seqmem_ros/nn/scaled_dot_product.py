"""Scaled dot-product attention, with masks that may forbid everything."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def masked_softmax(scores: jax.Array, mask: jax.Array | None = None) -> jax.Array:
    """
    Take the softmax over the last axis among the allowed places only.

    ``p_j = exp(s_j) / sum_k exp(s_k)``, k over the places where the mask is True: scores of minus
    infinity elsewhere, as in Vaswani et al., *Attention is all you need*, NeurIPS 2017
    (arXiv:1706.03762), section 3.2.3. Where it is True nowhere, p is zero, and so are the
    gradients.

    :param scores: s, shape (..., T_k)
    :param mask: True = may attend, broadcast against the scores; None allows all
    :returns: p, shape (..., T_k)
    """
    if mask is None:
        return jax.nn.softmax(scores, axis=-1)
    # Forbidden scores are replaced before exp: an infinity there would give NaN gradients.
    lowest = jnp.finfo(scores.dtype).min
    top = jnp.where(mask, scores, lowest).max(-1, keepdims=True, initial=lowest)
    shifted = jnp.where(mask, scores - jax.lax.stop_gradient(top), 0)
    weights = jnp.where(mask, jnp.exp(shifted), 0)
    total = weights.sum(-1, keepdims=True)
    return weights / jnp.where(total > 0, total, 1)


def scaled_dot_product_attention(
    q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array | None = None
) -> jax.Array:
    """
    Mix values by how well their keys match each query.

    ``y = softmax(q k^T / sqrt(d_k)) v``. Vaswani et al., *Attention is all you need*, NeurIPS 2017
    (arXiv:1706.03762), Eq. 1.

    :param q: queries, shape (..., T_q, d_k), or one query (d_k,)
    :param k: keys, shape (..., T_k, d_k)
    :param v: values, shape (..., T_k, d_v), or with keys (T_k, d_k) one number a key, (T_k,)
    :param mask: True = may attend, broadcast against (..., T_q, T_k); a query that may attend to
        nothing gives zeros. None allows all
    :returns: shape (..., T_q, d_v), without the axes that q or v come without
    :raises ValueError: if q and k differ in width, or k and v in length
    """
    q, k, v = (1.0 * jnp.asarray(a) for a in (q, k, v))  # whole numbers become floats
    values = v[:, None] if v.ndim == 1 else v
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != values.shape[-2]:
        raise ValueError(
            'attention expected q (..., T_q, d_k), k (..., T_k, d_k), v (..., T_k, d_v); '
            f'got {q.shape}, {k.shape}, {v.shape}'
        )
    queries = q[None, :] if q.ndim == 1 else q
    scores = queries @ jnp.swapaxes(k, -1, -2) * q.shape[-1] ** -0.5
    y = masked_softmax(scores, mask) @ values
    y = y[..., 0] if v.ndim == 1 else y
    return y[0] if q.ndim == 1 else y
