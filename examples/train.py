"""Train a small transformer on random tokens: one compiled step, small enough for any machine.

    XLA_FLAGS="--xla_dump_to=/tmp/xla_dump --xla_dump_hlo_as_text" python train.py

Needs jax. examples/dumps is what four ways of compiling it left behind; see docs/tutorial.md.
"""

import argparse
from functools import partial

import jax
import jax.numpy as jnp

BATCH, TIME, WIDTH, HEADS, LAYERS, VOCABULARY = 8, 512, 256, 4, 2, 8192


def init(key):
    def normal(key, *shape):
        return 0.02 * jax.random.normal(key, shape)

    keys = iter(jax.random.split(key, 1 + 4 * LAYERS))
    blocks = [
        {
            "qkv": normal(next(keys), WIDTH, 3 * WIDTH),
            "out": normal(next(keys), WIDTH, WIDTH),
            "up": normal(next(keys), WIDTH, 4 * WIDTH),
            "down": normal(next(keys), 4 * WIDTH, WIDTH),
        }
        for _ in range(LAYERS)
    ]
    return {"embedding": normal(next(keys), VOCABULARY, WIDTH), "blocks": blocks}


def attention(block, x):
    qkv = (x @ block["qkv"]).reshape(*x.shape[:2], 3, HEADS, WIDTH // HEADS)
    q, k, v = jnp.moveaxis(qkv, 2, 0)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (WIDTH // HEADS) ** 0.5
    mask = jnp.tril(jnp.ones((TIME, TIME), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9))
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ block["out"]


def layer(block, x):
    x = x + attention(block, x)
    return x + jax.nn.gelu(x @ block["up"]) @ block["down"]


def loss_of_batch(params, tokens, *, remat):
    x = params["embedding"][tokens[:, :-1]]
    for block in params["blocks"]:
        x = (jax.checkpoint(layer) if remat else layer)(block, x)
    log_probabilities = jax.nn.log_softmax(x @ params["embedding"].T)
    return -jnp.take_along_axis(log_probabilities, tokens[:, 1:, None], axis=-1).mean()


def loss(params, tokens, *, remat, parts):
    of_batch = partial(loss_of_batch, params, remat=remat)
    if parts == 1:
        return of_batch(tokens)
    return jax.lax.map(jax.checkpoint(of_batch), tokens.reshape(parts, -1, TIME + 1)).mean()


def train_step(params, tokens, *, remat, parts):
    value, gradients = jax.value_and_grad(partial(loss, remat=remat, parts=parts))(params, tokens)
    return jax.tree.map(lambda old, change: old - 0.1 * change, params, gradients), value


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--parts", type=int, default=1, metavar="N", help="take the batch in N parts")
    parser.add_argument("--remat", action="store_true", help="compute what a layer does twice, not keep it")
    parser.add_argument("--donate", action="store_true", help="put the new parameters where the old ones are")
    options = parser.parse_args()
    step = jax.jit(
        partial(train_step, remat=options.remat, parts=options.parts),
        donate_argnums=(0,) if options.donate else (),
    )
    params = init(jax.random.key(0))
    tokens = jax.random.randint(jax.random.key(1), (BATCH, TIME + 1), 0, VOCABULARY)
    for number in range(2):
        params, value = step(params, tokens)
        print(f"step {number}: loss {value:.5f}")


if __name__ == "__main__":
    main()
