"""Reinforcement learning on Ray in one file: rollouts are made on one node and trained on by another.

    head      this driver, the rollout manager and its rollout workers
    worker    the training actors; one on each training node contributes its memory to the Store

A rollout is a dictionary of ragged arrays. The manager puts it into the object store that ``--object-store-backend``
names, each training actor gets its share and removes it. The model is a table of logits that learns to answer each
prompt with one token; the rest is as in a large job. ``README.md`` beside this file has the commands.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from mooncake_config import (
    Resolution,
    Role,
    Topology,
    ValueSpec,
    add_object_store_arguments,
    open_object_store,
    resolve_store_config,
)

Floats = npt.NDArray[np.float64]
Node = dict[str, Any]
"""A node of the cluster, as Ray describes it."""
Row = dict[str, Any]
"""What is known of one sample."""
Rollout = dict[str, Any]
"""The same of many samples: a column for each field."""

PROMPTS = ("one", "two", "three", "four", "five", "six", "seven", "eight")
"""The right answer to PROMPTS[n] is token n + 1, again and again."""
END = 0
"""The token that ends an answer."""
VOCABULARY = 16

FIELDS = {
    "prompt": ValueSpec("utf8_ragged"),
    "tokens": ValueSpec("typed_ragged", "int32"),
    "rollout_log_probs": ValueSpec("typed_ragged", "float32"),
    "raw_reward": ValueSpec("ndarray", "float64"),
    "rewards": ValueSpec("ndarray", "float64"),
}
"""How each column of a rollout is stored; the same comes out with either backend."""


# --- The model: a row of logits for each prompt ---


def log_softmax(logits: Floats) -> Floats:
    """The logarithms of the probabilities."""
    shifted = logits - logits.max()
    return np.asarray(shifted - np.log(np.exp(shifted).sum()))


def sample(weights: Floats, prompt: int, longest: int, draw: np.random.Generator) -> Row:
    """An answer to a prompt: tokens up to and with END, at most ``longest``; its reward is the share of right ones."""
    log_probs = log_softmax(weights[prompt])
    tokens = draw.choice(VOCABULARY, size=longest, p=np.exp(log_probs)).astype(np.int32)
    ends = np.flatnonzero(tokens == END)
    tokens = tokens[: ends[0] + 1] if ends.size else tokens
    return {
        "prompt": PROMPTS[prompt],
        "tokens": tokens,
        "rollout_log_probs": log_probs[tokens].astype(np.float32),
        "raw_reward": float(np.mean(tokens == prompt + 1)),
    }


def with_advantages(group: Sequence[Row]) -> list[Row]:
    """The answers to one prompt, each with its reward as it compares to the others, as in GRPO."""
    rewards = np.array([row["raw_reward"] for row in group])
    advantages = (rewards - rewards.mean()) / (rewards.std() + 1e-6)
    return [{**row, "rewards": float(advantage)} for row, advantage in zip(group, advantages, strict=True)]


def policy_gradient(weights: Floats, rollout: Rollout, clip: float) -> Floats:
    """The gradient of ``-reward * log(probability)`` by the weights: a mean over tokens, a sum over samples.

    A token counts as many times as it has become more likely since it was sampled, at most ``clip`` times: that makes
    up for a rollout that older weights have made.
    """
    gradient = np.zeros_like(weights)
    columns = (rollout[name] for name in ("prompt", "tokens", "rollout_log_probs", "rewards"))
    for prompt, tokens, before, advantage in zip(*columns, strict=True):
        row = PROMPTS.index(prompt)
        now = log_softmax(weights[row])
        ratio = np.minimum(np.exp(now[tokens] - before), clip)
        gradient[row] -= advantage * np.mean(ratio[:, None] * (np.eye(VOCABULARY)[tokens] - np.exp(now)), axis=0)
    return gradient


# --- The object store of a process ---


def resolve(args: argparse.Namespace, role: Role, shape: Topology) -> Resolution | None:
    """The settings of the Store for this process, on the node where it runs. Ray's object store has none."""
    if args.object_store_backend == "ray":
        return None
    return resolve_store_config(
        args.mooncake_store_init_kwargs, role=role, replica_num=args.mooncake_replica_num, topology=shape
    )


def open_store(args: argparse.Namespace, role: Role, shape: Topology, driver: Resolution | None) -> Any:
    """The object store of an actor, if it is the one that the driver means."""
    mine = resolve(args, role, shape)
    if mine and driver and mine.fingerprint != driver.fingerprint:
        apart = "; ".join(str(item) for item in mine.differences(driver) if item.must_agree)
        raise RuntimeError(f"this node would use another Store than the driver. {apart}")
    return open_object_store(args.object_store_backend, mine, native_log="quiet")


# --- The actors ---


@ray.remote
class RolloutWorker:
    """Answers prompts, as an inference engine does."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args

    def generate(self, weights: Floats, rollout_id: int, position: int) -> list[Row]:
        """A group of answers to the prompt at a position of a rollout. Its numbers alone decide what is drawn."""
        prompt = (rollout_id * self.args.rollout_batch_size + position) % len(PROMPTS)
        draw = np.random.default_rng([self.args.seed, rollout_id, position])
        longest = self.args.rollout_max_response_len
        return with_advantages([sample(weights, prompt, longest, draw) for _ in range(self.args.n_samples_per_prompt)])


@ray.remote
class RolloutManager:
    """Makes rollouts of the workers' answers and puts them into the object store, a share for each training actor."""

    def __init__(
        self, args: argparse.Namespace, shape: Topology, driver: Resolution | None, workers: Sequence[Any]
    ) -> None:
        self.args, self.workers = args, workers
        self.store = open_store(args, Role.ROLLOUT_MANAGER, shape, driver)

    def generate(self, rollout_id: int, weights: Floats) -> list[Any]:
        """Makes a rollout with these weights and gives a ref to each share of it."""
        groups = ray.get(
            [
                self.workers[position % len(self.workers)].generate.remote(weights, rollout_id, position)
                for position in range(self.args.rollout_batch_size)
            ]
        )
        rows = [row for group in groups for row in group]
        trainers = self.args.actor_num_nodes * self.args.actors_per_node
        shares = [rows[rank::trainers] for rank in range(trainers)]
        return [self.store.put({name: [row[name] for row in share] for name in FIELDS}, FIELDS) for share in shares]

    def close(self) -> None:
        """Leaves the object store."""
        self.store.close()


@ray.remote
class TrainingActor:
    """Trains its copy of the model on its share of each rollout. Local rank 0 contributes a segment to the Store."""

    def __init__(self, args: argparse.Namespace, shape: Topology, driver: Resolution | None) -> None:
        self.args = args
        self.weights = initial_weights()
        self.store = open_store(args, Role.TRAINER, shape, driver)

    def gradient(self, ref: Any) -> tuple[Floats, Floats]:
        """Reads a share of a rollout and frees its space. Returns its gradient and its rewards."""
        with self.store.get(ref) as rollout:
            gradient = policy_gradient(self.weights, rollout, self.args.tis_clip)
            rewards = np.array(rollout["raw_reward"])
        self.store.remove(ref)
        return gradient, rewards

    def step(self, gradient: Floats) -> Floats:
        """Moves the weights against a gradient, the same one in every training actor. Returns the new weights."""
        self.weights = self.weights - self.args.lr * gradient
        return self.weights

    def close(self) -> None:
        """Leaves the object store, and takes the segment along."""
        self.store.close()


def initial_weights() -> Floats:
    """A model that answers anything."""
    return np.zeros((len(PROMPTS), VOCABULARY))


# --- The job ---


def node_shares(training_nodes: int) -> tuple[list[Node], list[Node]]:
    """The nodes that make rollouts, the head first, and those that train; on one machine it is the same one.

    Raises:
        SystemExit: the cluster has too few nodes.
    """
    alive = [node for node in ray.nodes() if node["Alive"]]
    alive.sort(key=lambda node: ("node:__internal_head__" not in node["Resources"], node["NodeManagerAddress"]))
    if len(alive) < training_nodes:
        raise SystemExit(f"--actor-num-nodes is {training_nodes}, and the nodes of the cluster are {len(alive)}")
    return alive[:-training_nodes] or alive, alive[-training_nodes:]


def addresses(nodes: Sequence[Node]) -> str:
    """Where these nodes are."""
    return ", ".join(node["NodeManagerAddress"] for node in nodes)


def on(node: Node) -> NodeAffinitySchedulingStrategy:
    """Runs an actor on this node and on no other."""
    return NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)


def start_actors(args: argparse.Namespace) -> tuple[Any, list[Any]]:
    """The rollout manager and the training actors, each with its store open."""
    making, training = node_shares(args.actor_num_nodes)
    print(f"rollouts on {addresses(making)}, training on {addresses(training)}")
    shape = Topology(trainer_nodes=args.actor_num_nodes, processes_per_node=args.actors_per_node)
    driver = resolve(args, Role.DRIVER, shape)
    trainers = [
        TrainingActor.options(scheduling_strategy=on(node)).remote(args, replace(shape, local_rank=rank), driver)
        for node in training
        for rank in range(args.actors_per_node)
    ]
    workers = [
        RolloutWorker.options(scheduling_strategy=on(making[n % len(making)])).remote(args)
        for n in range(args.rollout_workers)
    ]
    where = on(making[0]) if args.pin_rollout_manager_to_head else "DEFAULT"
    manager = RolloutManager.options(scheduling_strategy=where).remote(args, shape, driver, workers)
    # Before the first segment is there, the Store has no room for a rollout.
    ray.get([actor.__ray_ready__.remote() for actor in (*trainers, manager)])
    return manager, trainers


def train(args: argparse.Namespace, manager: Any, trainers: Sequence[Any]) -> tuple[Floats, list[float]]:
    """Trains. Returns the final weights and the loss of each rollout.

    With ``ahead`` 0 a rollout is made with the newest weights, while the trainers wait for it. With 1 it is asked for
    one update earlier, and made while they work on the one before.
    """
    ahead = args.rollouts_ahead if args.fully_async else 0
    coming: deque[tuple[int, Any]] = deque()
    weights, losses, asked, waited, began = initial_weights(), [], 0, 0.0, time.monotonic()
    for rollout_id in range(args.num_rollout):
        while asked <= min(rollout_id + ahead, args.num_rollout - 1):
            coming.append((rollout_id, manager.generate.remote(asked, weights)))
            asked += 1
        made_with, rollout = coming.popleft()
        before = time.monotonic()
        refs = ray.get(rollout)
        waited += time.monotonic() - before
        weights, loss = update(trainers, refs)
        losses.append(loss)
        print(f"rollout {rollout_id}: made with weights {made_with}, loss {loss:.4f}")
    seconds = time.monotonic() - began
    print(
        f"{asked} rollouts through {args.object_store_backend} in {seconds:.2f} s; the trainers waited {waited:.2f} s"
    )
    return weights, losses


def update(trainers: Sequence[Any], refs: Sequence[Any]) -> tuple[Floats, float]:
    """One step on a rollout. Returns the new weights and the loss that it lowers: 1 less the mean reward."""
    shares = ray.get([trainer.gradient.remote(ref) for trainer, ref in zip(trainers, refs, strict=True)])
    rewards = np.concatenate([rewards for _, rewards in shares])
    gradient = sum(gradient for gradient, _ in shares) / len(rewards)
    weights = ray.get([trainer.step.remote(gradient) for trainer in trainers])
    return weights[0], 1 - float(rewards.mean())


def digest(weights: Floats, losses: Sequence[float]) -> str:
    """Equal where every bit of the result is equal: of two runs with one seed, whichever object store they used."""
    return hashlib.sha256(weights.tobytes() + np.array(losses).tobytes()).hexdigest()


def parsed() -> argparse.Namespace:
    """The arguments of the job; those of the object store are the reference's."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--num-rollout", type=int, default=3, metavar="N", help="rollouts to train on (default: 3)")
    add("--rollout-batch-size", type=int, default=8, metavar="N", help="prompts in a rollout (default: 8)")
    add("--n-samples-per-prompt", type=int, default=16, metavar="N", help="answers to each prompt (default: 16)")
    add("--rollout-max-response-len", type=int, default=64, metavar="N", help="tokens of an answer (default: 64)")
    add("--rollout-workers", type=int, default=2, metavar="N", help="actors that answer prompts (default: 2)")
    add("--actor-num-nodes", type=int, default=1, metavar="N", help="nodes that train (default: 1)")
    add("--actors-per-node", type=int, default=2, metavar="N", help="training actors on each of them (default: 2)")
    add("--pin-rollout-manager-to-head", action="store_true", help="run the rollout manager on Ray's head")
    add("--fully-async", action="store_true", help="make the next rollouts while the trainers work on this one")
    add("--rollouts-ahead", type=int, default=1, metavar="N", help="how many of them, if --fully-async (default: 1)")
    add("--lr", type=float, default=200.0, help="learning rate (default: 200)")
    add("--tis-clip", type=float, default=2.0, help="most that a token of an older policy counts (default: 2)")
    add("--seed", type=int, default=0, help="decides every answer, and so the result (default: 0)")
    add_object_store_arguments(parser)
    return parser.parse_args()


def main() -> None:
    """Runs the job and prints its losses and what they come to."""
    args = parsed()
    ray.init()
    manager, trainers = start_actors(args)
    weights, losses = train(args, manager, trainers)
    print(f"digest {digest(weights, losses)}")
    ray.get(manager.close.remote())
    ray.get([trainer.close.remote() for trainer in trainers])  # last, since the segment goes with them


if __name__ == "__main__":
    main()
