"""The training job that readers copy: its model learns as its formulas say, and it runs on one machine too."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hosts import two_hosts
from hypothesis import given, settings
from hypothesis import strategies as st
from lab import EXAMPLE, PIECES, Shell, headline, outcome

pytestmark = [pytest.mark.ray, pytest.mark.mooncake]


@pytest.fixture(scope="module")
def train() -> Any:
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("train", EXAMPLE / "train.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def drawn(train: Any, seed: int, answers: int) -> tuple[Any, dict[str, list[Any]]]:
    """Weights, and a rollout that was made with them: some answers to each prompt."""
    draw = np.random.default_rng(seed)
    weights = draw.normal(size=(len(train.PROMPTS), train.VOCABULARY))
    rows = [
        row
        for prompt in range(len(train.PROMPTS))
        for row in train.with_advantages([train.sample(weights, prompt, 20, draw) for _ in range(answers)])
    ]
    return weights, {name: [row[name] for row in rows] for name in train.FIELDS}


def loss(train: Any, weights: Any, rollout: dict[str, list[Any]]) -> float:
    """What the gradient is said to be of: -reward * log(probability), a mean over tokens, a sum over samples."""
    gained = (
        reward * np.mean(train.log_softmax(weights[train.PROMPTS.index(prompt)])[tokens])
        for prompt, tokens, reward in zip(rollout["prompt"], rollout["tokens"], rollout["rewards"], strict=True)
    )
    return -float(sum(gained))


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32))
def test_gradient(train: Any, seed: int) -> None:
    """With the weights that made the rollout, the gradient is the derivative of the loss along any direction."""
    weights, rollout = drawn(train, seed, 3)
    direction = np.random.default_rng(seed + 1).normal(size=weights.shape)
    gradient = train.policy_gradient(weights, rollout, 2.0)
    step = 1e-5 * direction
    difference = (loss(train, weights + step, rollout) - loss(train, weights - step, rollout)) / 2e-5
    assert np.isclose(np.sum(gradient * direction), difference, rtol=1e-4, atol=1e-4)


def test_clip(train: Any) -> None:
    """A token counts by how much more likely it has become, and at most as many times as the clip says."""
    weights, rollout = drawn(train, 0, 3)
    older = {**rollout, "rollout_log_probs": [probs - np.log(10) for probs in rollout["rollout_log_probs"]]}
    gradient = train.policy_gradient(weights, rollout, 100.0)
    assert np.allclose(train.policy_gradient(weights, older, 100.0), 10 * gradient, rtol=1e-4, atol=1e-5)
    assert np.allclose(train.policy_gradient(weights, older, 2.0), 2 * gradient, rtol=1e-4, atol=1e-5)


@given(seed=st.integers(0, 2**32), longest=st.integers(1, 40))
def test_answers(train: Any, seed: int, longest: int) -> None:
    """An answer has 1 token to the longest allowed, its end is its last one, and its reward is between 0 and 1."""
    draw = np.random.default_rng(seed)
    row = train.sample(draw.normal(size=(8, train.VOCABULARY)), seed % 8, longest, draw)
    assert 1 <= len(row["tokens"]) <= longest
    assert train.END not in row["tokens"][:-1]
    assert len(row["rollout_log_probs"]) == len(row["tokens"])
    assert 0 <= row["raw_reward"] <= 1


@pytest.mark.timeout(240)
def test_one_machine(tmp_path: Path) -> None:
    """Without a cluster the commands of the page start one, and both stores lead to the same result."""
    with two_hosts() as (alone, _):
        headline("On one machine")
        shell = Shell(alone, tmp_path)
        told = [shell.run(piece.script) for piece in PIECES if piece.place == "one machine"]
    ray, mooncake = map(outcome, told)
    assert ray == mooncake
    assert ray.losses == sorted(ray.losses, reverse=True)
