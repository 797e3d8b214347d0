"""`PYTHON benchmarks/torch/lattices_tensorflow.py`: TensorFlow Lattice on the rows and vertices of
`benchmarks/torch/lattices.py`, on the CPU with one thread.

It needs an environment of its own: `pip install tensorflow-cpu==2.15.1`, then `pip install
--no-deps tensorflow-lattice==2.1.1` (which asks for all of TensorFlow), then what that imports.
Once as Keras calls it and once compiled by `tf.function`; CPU seconds, the best of three.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_lattice as tfl

ROWS, COLUMNS = 20_000, 12


def main() -> None:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    rng = np.random.default_rng(0)
    x = tf.constant(rng.random((ROWS, COLUMNS), dtype=np.float32))
    theta = rng.standard_normal(2**COLUMNS, dtype=np.float32)
    for kind in ("simplex", "hypercube"):
        layer = tfl.layers.Lattice([2] * COLUMNS, interpolation=kind)
        layer(x[:2])
        layer.set_weights([theta[:, None]])

        def step(rows: Any, layer: Any = layer) -> Any:
            with tf.GradientTape() as tape:
                found = layer(rows)
                total = tf.reduce_sum(found)
            return found, tape.gradient(total, layer.trainable_variables)

        for name, call in (("eager", step), ("tf.function", tf.function(step))):
            taken, found = seconds(call, x)
            print(
                f"{kind}: TensorFlow Lattice ({name}) {1e3 * taken:.0f} ms for {ROWS:,} x "
                f"{COLUMNS}, predictions add up to {float(np.sum(found, dtype=np.float64)):.3f}",
                flush=True,
            )


def seconds(step: Callable[..., Any], x: Any) -> tuple[float, np.ndarray]:
    """Of a pass forward and back, and what it predicts."""
    found, taken = step(x)[0], []
    for _ in range(3):
        began = time.process_time()
        found = step(x)[0]
        taken.append(time.process_time() - began)
    return min(taken), np.asarray(found)


if __name__ == "__main__":
    main()
