"""The model of the comparisons: a training step of two layers, compiled and not run.

XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_as_text --xla_dump_hlo_module_re=jit_train_step"
python model.py BATCH
jax 0.4.38 and 0.10.2 compiled it as /home/user/train/model.py; the texts were kept, compressed by gzip -n.
"""

import sys

import jax
import jax.numpy as jnp

TIME, WIDTH, WORDS = 64, 128, 1024


def attention(block, x):
    scores = (x @ block["query"]) @ jnp.swapaxes(x @ block["key"], 1, 2) / WIDTH**0.5
    return jax.nn.softmax(scores) @ (x @ block["value"])


def loss(params, tokens):
    x = params["embedding"][tokens]
    for number in range(2):
        with jax.named_scope(f"layer{number}"):
            block = params["blocks"][number]
            x = x + attention(block, x)
            x = x + jax.nn.gelu(x @ block["up"]) @ block["down"]
    return -jax.nn.log_softmax(x @ params["embedding"].T)[..., 0].mean()


def train_step(params, tokens):
    gradients = jax.grad(loss)(params, tokens)
    return jax.tree_util.tree_map(lambda old, change: old - 0.1 * change, params, gradients)


def shape(*dimensions, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(dimensions, dtype)


block = {
    **{name: shape(WIDTH, WIDTH) for name in ("query", "key", "value")},
    "up": shape(WIDTH, 4 * WIDTH),
    "down": shape(4 * WIDTH, WIDTH),
}
params = {"embedding": shape(WORDS, WIDTH), "blocks": [block, block]}
jax.jit(train_step).lower(params, shape(int(sys.argv[1]), TIME, dtype=jnp.int32)).compile()
