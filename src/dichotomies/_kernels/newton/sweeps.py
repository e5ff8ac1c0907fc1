"""Dual coordinate ascent on sparse rows, for all members of a node at once.

With ``w = X' (a y)`` the dual has one variable a in (0, c) per row, at whose optimum
``log(a / (c - a)) + y z`` is zero (Yu, Huang & Lin 2011, *Dual coordinate descent methods for logistic
regression*). A sweep gives every row its best value. It visits them in a new random order each time:
rows of texts resemble one another, and in a fixed order they would only pass their errors on.
"""

from typing import Any

import numpy as np

from dichotomies._common.typing import FloatArray
from dichotomies._kernels.compile import vector_kernel
from dichotomies._kernels.newton.lanes import add_row, score_row

_MOST_TRIES = 6
_MOST_SWEEPS = 30


@vector_kernel
def best_value(margin: float, square: float, cost: float, odds: float, value: float) -> tuple[float, float]:
    """The best value of a row's variable, and its log-odds ``log(a / (c - a))``, from those it has now.

    Solves ``u + margin + square (c sigmoid(u) - a) = 0`` by Newton's method, which goes straight to the
    solution from 0, and from between 0 and it.
    """
    at_zero = margin + square * (0.5 * cost - value)
    u, a, rest = odds, value, odds + margin
    if value == 0.0:
        u, a, rest = 0.0, 0.5 * cost, at_zero
    enough = 0.1 * abs(rest)
    for _ in range(_MOST_TRIES):
        u -= rest / (1.0 + square * a * (1.0 - a / cost))
        if u * at_zero > 0.0:
            u = 0.0
        a = cost / (1.0 + np.exp(-u))
        rest = u + margin + square * (a - value)
        if abs(rest) <= enough:
            break
    return u, a


@vector_kernel
def shuffle(order: Any, seed: Any) -> Any:
    """Bring numbers into random order (Fisher & Yates); return the next seed, 64 bits without sign."""
    state = seed
    for i in range(len(order) - 1, 0, -1):
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        j = ((state >> np.uint64(32)) * np.uint64(i + 1)) >> np.uint64(32)
        order[i], order[j] = order[j], order[i]
    return state


@vector_kernel
def sweep(X: Any, order: Any, slack: float, state: FloatArray, w: Any, progress: FloatArray) -> None:
    """Give every row's variables their best values, one row after the other.

    Parameters
    ----------
    order : (n,)
        Of the rows.
    slack : float
        Square of the intercept's constant feature.
    state : (n, 2 + 3 n_lanes)
        See `empty_state`.
    w : (p + 1,) or (p + 1, 4)
        Weights of one or four members, the last ones the intercepts.
    progress : (n_lanes,)
        Written: increase of the dual objectives.
    """
    n, n_lanes = len(order), len(progress)
    z, pull = np.empty(n_lanes), np.empty(n_lanes)
    intercept = w[-1:].reshape(n_lanes)
    progress[:] = 0.0
    for at in range(n):
        i = order[at]
        score_row(X, i, w, z)
        square, y = state[i, 0] + slack, state[i, 1]
        cost, odds, value = state[i, 2::3], state[i, 3::3], state[i, 4::3]
        for lane in range(n_lanes):
            pull[lane] = 0.0
            if cost[lane] > 0.0:
                margin, before, wrong = y * z[lane], value[lane], odds[lane] + y * z[lane]
                odds[lane], value[lane] = best_value(margin, square, cost[lane], odds[lane], before)
                progress[lane] += 0.5 * abs(wrong * (value[lane] - before))
                pull[lane] = y * (value[lane] - before)
                intercept[lane] += slack * pull[lane]
        add_row(X, i, pull, w)


@vector_kernel
def empty_state(X: Any, y: FloatArray, n_lanes: int) -> FloatArray:
    """State of each row, side by side.

    Its square, its side, and for each lane its cost (0 where it must not be seen), the log-odds of its
    variable as a part of the cost, and the variable.
    """
    data, _, indptr = X
    state = np.zeros((len(y), 2 + 3 * n_lanes))
    for i in range(len(y)):
        for place in range(indptr[i], indptr[i + 1]):
            state[i, 0] += data[place] * data[place]
        state[i, 1] = y[i]
    return state


@vector_kernel
def weights_of(X: Any, slack: float, is_free: bool, state: FloatArray, w: Any) -> None:
    """Write the weights of variables whose log-odds are known, for the costs of now; free intercepts stay."""
    n_lanes = state.shape[1] // 3
    pull = np.empty(n_lanes)
    lanes = w.reshape(-1, n_lanes)
    lanes[: len(lanes) - is_free] = 0.0
    for i in range(len(state)):
        for lane in range(n_lanes):
            cost, odds = state[i, 2 + 3 * lane], state[i, 3 + 3 * lane]
            if state[i, 4 + 3 * lane] > 0.0:
                state[i, 4 + 3 * lane] = cost / (1.0 + np.exp(-odds))
            pull[lane] = state[i, 1] * state[i, 4 + 3 * lane]
            if not is_free:
                lanes[-1, lane] += slack * pull[lane]
        add_row(X, i, pull, w)


@vector_kernel
def ascend(
    X: Any, order: Any, is_free: bool, slack: float, accuracy: float, state: FloatArray, w: Any
) -> bool:
    """Sweep until the weights are so near to the optimum, as a part of them; return whether they are."""
    n_lanes = state.shape[1] // 3
    lanes = w.reshape(-1, n_lanes)
    progress, last = np.empty(n_lanes), np.inf
    seed: Any = np.uint64(1)
    for count in range(_MOST_SWEEPS):
        seed = shuffle(order, seed)
        sweep(X, order, slack, state, w, progress)
        if is_free and count > 0:
            # The penalty of the constant feature is on the distance from the last intercept (method of
            # multipliers), so that there is none in the end.
            for i in range(len(order)):
                for lane in range(n_lanes):
                    lanes[-1, lane] += slack * state[i, 1] * state[i, 4 + 3 * lane]
        now, square = progress.sum(), 0.0
        for j in range(len(lanes) - 1):
            for lane in range(n_lanes):
                square += lanes[j, lane] ** 2
        # Progress falls in a geometric series, whose rest is what remains to be gained.
        if count > 0 and now < last and 2.0 * now * now / (last - now) <= accuracy**2 * (square + 1e-2):
            return True
        last = now
    return False


@vector_kernel
def settle_intercept(state: FloatArray, lane: int, tolerance: float, z: FloatArray) -> float:
    """Add the best constant to the scores of a lane, and return it."""
    total = 0.0
    for _ in range(_MOST_TRIES):
        slope, curve = 0.0, 1e-300
        for i in range(len(z)):
            cost = state[i, 2 + 3 * lane]
            if cost > 0.0:
                wrong = 1.0 / (1.0 + np.exp(state[i, 1] * (z[i] + total)))
                slope += cost * state[i, 1] * wrong
                curve += cost * wrong * (1.0 - wrong)
        if abs(slope) <= 0.1 * tolerance:
            break
        total += min(max(slope / curve, -1.0), 1.0)
    for i in range(len(z)):
        z[i] += total
    return total


@vector_kernel
def largest_derivatives(
    X: Any, is_free: bool, slack: float, tolerance: FloatArray, state: FloatArray, w: Any, z: FloatArray
) -> FloatArray:
    """Write the rows' scores `z` (n, n_lanes), settle intercepts; return each lane's largest derivative."""
    n, n_lanes = z.shape
    pull, lanes = np.empty(n_lanes), w.reshape(-1, n_lanes)
    for i in range(n):
        score_row(X, i, w, z[i])
    if is_free:
        for lane in range(n_lanes):
            lanes[-1, lane] += settle_intercept(state, lane, tolerance[lane], z[:, lane])
    gradient = np.zeros_like(w)
    slopes = np.zeros(n_lanes)
    for i in range(n):
        for lane in range(n_lanes):
            cost, y = state[i, 2 + 3 * lane], state[i, 1]
            pull[lane] = cost * y / (1.0 + np.exp(y * z[i, lane])) if cost > 0.0 else 0.0
            slopes[lane] += pull[lane]
        add_row(X, i, pull, gradient)
    most, derivatives = np.zeros(n_lanes), gradient.reshape(-1, n_lanes)
    for lane in range(n_lanes):
        if is_free:
            most[lane] = abs(slopes[lane])
        elif slack > 0.0:
            most[lane] = abs(slopes[lane] - lanes[-1, lane] / slack)
        for j in range(len(lanes) - 1):
            most[lane] = max(most[lane], abs(derivatives[j, lane] - lanes[j, lane]))
    return most
