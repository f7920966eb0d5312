"""
Learning while streaming, long before deep networks: adaptive filters.

**Taps.** The LMS rule follows the gradient of the squared error of a single sample,

    y = w . x,    e = d - y,    w <- w + mu e x        (Widrow and Hoff, 1960)

On average the error of w shrinks along each eigenvector of R = E[x x'] by 1 - mu lambda a sample,
so that w converges in the mean where mu < 2 / lambda_max and diverges above (Haykin, *Adaptive
filter theory*, 4th ed., section 5.4, under the independence assumption). The table follows this
mean, w <- w + mu (p - R w), for white noise through one pole of 0.8 into 4 taps; noisy single
samples need a smaller mu yet, as the last line shows.

**One pole.** h_t = a h_(t-1) + b u_t has memory, so its gradient has memory as well: with
e_t = d_t - h_t,

    dh_t/da = h_(t-1) + a dh_(t-1)/da,    dh_t/db = u_t + a dh_(t-1)/db

carried forward beside h: real-time recurrent learning (Williams and Zipser, *Neural Computation*
1, 1989) in its smallest form. It equals what differentiating backwards through the whole sequence
gives, and following it finds the filter that made d. The pole is kept below 0.98 on the way: a
step too far beyond 1 and h would grow without end.

Prints::

    eigenvalues of R: 8.62 to 0.36, 2 / lambda_max = 0.2320
    mu = 0.50 of the limit: error after 400 steps 2e-08
    mu = 0.99 of the limit: error after 400 steps 4e-05
    mu = 1.01 of the limit: error after 400 steps 4e+02
    single samples, mu = 0.05 of the limit: taps  0.50 -0.30  0.20 -0.10
    one pole: gradient by recursion (-0.3426, -0.8593), by autodiff (-0.3426, -0.8593)
    one pole: learned a = 0.900, b = 0.500
"""

import jax
import jax.numpy as jnp
import numpy as np

TAPS = np.array([0.5, -0.3, 0.2, -0.1])
COLOUR = 0.8


def coloured_noise(n_samples: int, seed: int = 0) -> np.ndarray:
    """Pass white noise through one pole; its covariance at lag k is 0.8^k / (1 - 0.8^2)."""
    u = np.random.default_rng(seed).normal(size=n_samples)
    for t in range(1, n_samples):
        u[t] += COLOUR * u[t - 1]
    return u


def covariance() -> np.ndarray:
    """Give R of four samples in a row."""
    lags = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    return COLOUR**lags / (1 - COLOUR**2)


def mean_error_after(mu: float, n_steps: int) -> float:
    """Follow the mean of the taps from zero; give their distance from the true ones."""
    R, w = covariance(), np.zeros(4)
    for _ in range(n_steps):
        w = w + mu * (R @ TAPS - R @ w)
    return float(np.linalg.norm(w - TAPS))


def lms(mu: float, n_samples: int) -> np.ndarray:
    """Learn the taps from single samples; give them at the end."""
    u, w = coloured_noise(n_samples), np.zeros(4)
    for t in range(3, n_samples):
        x = u[t - 3 : t + 1][::-1]
        w = w + mu * (TAPS @ x - w @ x) * x
    return w


def gradient_by_recursion(a: float, b: float, u: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Carry the derivatives of h along with it; give those of mean(e^2) by (a, b)."""
    h, dh, total = 0.0, np.zeros(2), np.zeros(2)
    for u_t, d_t in zip(u, d):
        dh = np.array([h, u_t]) + a * dh
        h = a * h + b * u_t
        total -= 2 * (d_t - h) * dh
    return total / len(u)


def gradient_by_autodiff(a: float, b: float, u: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Differentiate backwards through the whole sequence."""

    def loss(params: jax.Array) -> jax.Array:
        def advance(h: jax.Array, u_t: jax.Array) -> tuple[jax.Array, jax.Array]:
            h = params[0] * h + params[1] * u_t
            return h, h

        return jnp.mean((d - jax.lax.scan(advance, jnp.zeros(()), jnp.asarray(u))[1]) ** 2)

    return np.asarray(jax.grad(loss)(jnp.array([a, b])))


def one_pole_output(a: float, b: float, u: np.ndarray) -> np.ndarray:
    """Run the filter."""
    h, out = 0.0, []
    for u_t in u:
        h = a * h + b * u_t
        out.append(h)
    return np.array(out)


def learned_one_pole(mu: float, n_samples: int) -> tuple[float, float]:
    """Learn a and b sample by sample, from zero, of a filter with 0.9 and 0.5."""
    u = np.random.default_rng(1).normal(size=n_samples)
    d = one_pole_output(0.9, 0.5, u)
    params, h, dh = np.zeros(2), 0.0, np.zeros(2)
    for u_t, d_t in zip(u, d):
        a, b = params[0].clip(-0.98, 0.98), params[1]
        dh = np.array([h, u_t]) + a * dh
        h = a * h + b * u_t
        params = np.array([a, b]) + mu * (d_t - h) * dh
    return float(params[0]), float(params[1])


def main() -> None:
    eigenvalues = np.linalg.eigvalsh(covariance())
    limit = 2 / eigenvalues[-1]
    print(
        f'eigenvalues of R: {eigenvalues[-1]:.2f} to {eigenvalues[0]:.2f}, '
        f'2 / lambda_max = {limit:.4f}'
    )
    for share in (0.5, 0.99, 1.01):
        error = mean_error_after(share * limit, 400)
        print(f'mu = {share:.2f} of the limit: error after 400 steps {error:.0e}')
    taps = ' '.join(f'{w:5.2f}' for w in lms(0.05 * limit, 3000))
    print(f'single samples, mu = 0.05 of the limit: taps {taps}')
    u = np.random.default_rng(2).normal(size=200)
    d = one_pole_output(0.9, 0.5, u)
    by_recursion, by_autodiff = (
        ', '.join(f'{g:.4f}' for g in gradient(0.7, 0.2, u, d))
        for gradient in (gradient_by_recursion, gradient_by_autodiff)
    )
    print(f'one pole: gradient by recursion ({by_recursion}), by autodiff ({by_autodiff})')
    a, b = learned_one_pole(0.01, 3000)
    print(f'one pole: learned a = {a:.3f}, b = {b:.3f}')


if __name__ == '__main__':
    main()
