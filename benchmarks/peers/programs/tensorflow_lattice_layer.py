"""TensorFlow Lattice: one 2^D lattice layer, increasing in every feature; Keras applies its
constraint after every step.
"""

from __future__ import annotations

from importlib.metadata import version

import tensorflow as tf
import tensorflow_lattice as tfl
import tf_keras as keras
from exchange import Run, vertices


def main() -> None:
    run = Run()
    tf.config.threading.set_intra_op_parallelism_threads(1)  # as ours
    tf.config.threading.set_inter_op_parallelism_threads(1)
    tf.random.set_seed(0)
    better, worse = (tf.constant(run.problem[name], tf.float32) for name in ("better", "worse"))
    features, bound = better.shape[1], float(run.problem["bound"])
    layer = tfl.layers.Lattice(
        [2] * features,
        monotonicities=["increasing"] * features,
        output_min=-bound,
        output_max=bound,
        interpolation="simplex",
        kernel_initializer=keras.initializers.Zeros(),
    )
    corners = tf.constant(vertices(features), tf.float32)
    layer(corners)
    optimizer = getattr(keras.optimizers, run.settings["optimizer"])(run.settings["step"])
    optimizer.build(layer.trainable_variables)

    @tf.function
    def step():
        drawn = tf.random.uniform((run.settings["batch"],), maxval=better.shape[0], dtype=tf.int32)
        with tf.GradientTape() as tape:
            margin = layer(tf.gather(better, drawn)) - layer(tf.gather(worse, drawn))
            loss = tf.reduce_mean(tf.nn.relu(1.0 - margin))
        optimizer.apply_gradients(
            zip(
                tape.gradient(loss, layer.trainable_variables),
                layer.trainable_variables,
                strict=True,
            )
        )

    step()  # builds the graph, off the clock
    layer.kernel.assign(tf.zeros_like(layer.kernel))
    run.start()
    while run.goes_on(lambda: layer(corners).numpy()):
        if run.iterations % 16 == 0:  # an assignment costs as much as a tenth of a step
            optimizer.learning_rate.assign(run.step())
        step()
    run.finish(version=version("tensorflow-lattice"), threads=1)


if __name__ == "__main__":
    main()
