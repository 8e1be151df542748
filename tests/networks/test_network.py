"""Networks as releases, and audits of them from one end to the other."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import leakbound as ls
from leakbound.cli.main import main
from leakbound.core.types import Points
from leakbound.dpsgd.config import DpSgd
from leakbound.dpsgd.network import PrivateNetwork
from leakbound.releases.factory import release_from, release_of
from leakbound.releases.networks.architecture import Architecture
from leakbound.releases.networks.network import Network, Trained
from leakbound.releases.networks.recipe import Recipe
from leakbound.runtime.observe import Execution, observe
from leakbound.runtime.store import Store

from .branches import Branches
from .conftest import Convolutions, stack

WANT = ["loss", "log_odds", "correct", "log_prob", "gradient_norm"]
HERE = "tests.networks.conftest"
QUICK = Recipe(epochs=40, batch=16, lr=0.02)


@pytest.mark.by_day("stack")
@pytest.mark.parametrize("make", [stack, Branches, Convolutions])
def test_members_are_learned_by_heart(make, points, member):
    """Labels are random: a model is right about its members alone; the recipe's order of columns is the signals'."""
    x = points.x if make is not Convolutions else np.random.default_rng(0).normal(size=(120, 8, 8))
    network = Network(make, QUICK)
    seen = network.observe(Points(x, points.y), member, np.arange(5), WANT)
    assert set(seen) == set(WANT)
    assert seen["log_prob"].shape == (5, 120, 3)
    assert seen["correct"][member].mean() > seen["correct"][~member].mean() + 0.2
    assert seen["loss"][member].mean() < seen["loss"][~member].mean() - 0.5
    assert seen["gradient_norm"][member].mean() < seen["gradient_norm"][~member].mean()
    np.testing.assert_allclose(seen["loss"], -seen["log_prob"][..., 0], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("make", "kind"), [(stack, "stack"), (Branches, "vmap"), (Convolutions, "one")])
def test_how_networks_are_trained(make, kind):
    recipe = Recipe()
    architecture = Architecture.of(make(), recipe)
    assert architecture.kind == kind
    assert architecture.chunk(recipe) == (1 if kind == "one" else 64)


def test_large_networks_are_trained_in_small_chunks():
    """446-128-30: 61,086 parameters; Adam keeps four numbers for each, 4 bytes each."""
    large = nn.Sequential(nn.Linear(446, 128), nn.ReLU(), nn.Linear(128, 30))
    assert Network(lambda: large).chunk == 12_000_000 // (16 * 61_086)
    assert Network(lambda: large, Recipe(optimiser="sgd")).chunk == 12_000_000 // (8 * 61_086)
    assert Network(lambda: large, rows=3).chunk == 3


def test_a_row_depends_on_its_seed_alone_where_models_are_trained_one_by_one(points, member):
    x = np.random.default_rng(0).normal(size=(120, 8, 8))
    network = Network(Convolutions, Recipe(epochs=1, augment="flip_crop"))
    images = Points(x, points.y)
    every = network.observe(images, member, np.arange(5), ["loss"])["loss"]
    third = network.observe(images, member[2:3], np.array([2]), ["loss"])["loss"]
    np.testing.assert_array_equal(every[2], third[0])
    assert not np.array_equal(third, network.observe(images, member[2:3], np.array([7]), ["loss"])["loss"])


def test_the_description_knows_all_that_a_row_depends_on():
    said = [
        json.dumps(each.describe(), sort_keys=True)
        for each in (
            Network(stack),
            Network(Branches),
            Network(stack, parameters={"width": 9}),
            Network(stack, Recipe(lr=0.1)),
            Network(stack, rows=2),
            Network(stack, layers="last"),
        )
    ]
    assert len(set(said)) == len(said)
    assert json.dumps(Network(stack).describe(), sort_keys=True) == said[0]
    assert Network(lambda: stack()).describe() is None
    assert Network(stack, parameters={"width": 9}).architecture.digest != Network(stack).architecture.digest


@pytest.mark.parametrize("role", ["make", "aggregate", "train"])
def test_the_description_knows_the_code_behind_an_import_path(tmp_path, monkeypatch, role):
    """The store must not answer for a function that was changed since."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    said = []
    for number in (1, 2):
        text = f"def {role}(*_):\n    from torch import nn\n\n    return nn.Linear(6, 3)  # {number}\n"
        (tmp_path / "users_own.py").write_text(text)
        monkeypatch.delitem(sys.modules, "users_own", raising=False)
        importlib.invalidate_caches()
        own = {role: getattr(importlib.import_module("users_own"), role)}
        said += [PrivateNetwork(**{"make": stack, "dpsgd": DpSgd(1.0, 1.0, 0.1), **own}).describe()]
        said += [Network(own["make"]).describe()] if role == "make" else []
    monkeypatch.delitem(sys.modules, "users_own")
    assert all(said)
    assert len({json.dumps(each, sort_keys=True) for each in said}) == len(said)


def test_what_answers_with_probabilities_is_refused(points, member):
    class Probabilities(nn.Linear):
        def forward(self, x):
            return super().forward(x).softmax(1)

    class Attends(nn.Module):
        """Its last registered part is a softmax, and what it answers is not."""

        def __init__(self):
            super().__init__()
            self.weigh, self.answer, self.softmax = nn.Linear(6, 6), nn.Linear(6, 3), nn.Softmax(1)

        def forward(self, x):
            return self.answer(x * self.softmax(self.weigh(x)))

    with pytest.raises(ValueError, match="answers with probabilities; leave softmax out: it is taken of what it"):
        Network(lambda: Probabilities(6, 3)).observe(points, member[:1], np.array([0]), ["loss"])
    made = Network(lambda: Attends(), Recipe(epochs=1)).observe(points, member[:1], np.array([0]), ["loss"])
    assert np.isfinite(made["loss"]).all()


def test_another_precision_is_named(points, member):
    with pytest.raises(ValueError, match=r"shape \(6,\): its weights are torch.float64, points are float32"):
        Network(lambda: stack().double()).observe(points, member[:1], np.array([0]), ["loss"])


@pytest.mark.slow
def test_same_bytes_from_the_store_and_by_any_number_of_workers(tmp_path, points, member):
    """Five rows in chunks of two: all at once, with two workers, and gone on with after a chunk was lost."""
    network = Network(Branches, Recipe(epochs=2), rows=2)
    points = Points(points.x, points.y, digest="d")
    once = observe(network, points, member, ["loss"], execution=Execution(n_jobs=1))["loss"]
    twice = observe(network, points, member, ["loss"], execution=Execution(tmp_path / "store", n_jobs=2))["loss"]
    chunks = sorted((tmp_path / "store").glob("*.npz"))
    assert len(chunks) == 3
    chunks[1].unlink()
    resumed = observe(network, points, member, ["loss"], execution=Execution(tmp_path / "store", n_jobs=1))["loss"]
    assert Store(tmp_path / "store").size()[0] == 3
    assert once.tobytes() == twice.tobytes() == resumed.tobytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"make": stack()}, "got a Sequential that is made"),
        ({"make": 3}, "a network is made by a function or class, got a int"),
        ({"make": lambda: 3}, r"<lambda> must make a network \(torch.nn.Module\), got a int"),
        ({"make": stack, "parameters": {"widht": 3}}, r"stack: unknown parameter 'widht' \(did you mean 'width'\?\)"),
        ({"make": lambda width: stack(width)}, "missing 1 required positional argument: 'width'"),
        ({"make": nn.ReLU}, "no parameters that are trained"),
        ({"make": lambda: nn.Sequential(nn.Linear(6, 3), nn.Softmax(1))}, "ends in Softmax; leave it out"),
        ({"make": stack, "layers": "3"}, "unknown layer '3'"),
        ({"make": stack, "rows": 0}, "rows must be >= 1"),
    ],
)
def test_no_network(as_users_run_it, arguments, message):
    with pytest.raises(ValueError, match=message):
        Network(**arguments)


@pytest.mark.parametrize(
    ("make", "recipe", "message"),
    [
        (lambda: nn.Linear(6, 2), Recipe(), "gives 2 numbers a point, and the label has 3 classes"),
        (lambda: nn.Linear(5, 3), Recipe(), r"cannot read points of shape \(6,\)"),
        (
            lambda: nn.Sequential(nn.Linear(6, 1), nn.Flatten(0)),
            Recipe(),
            "gives 1 number a point, and the label has 3",
        ),
        (
            lambda: nn.Sequential(nn.Linear(6, 6), nn.Unflatten(1, (2, 3))),
            Recipe(),
            r"must answer 2 points .* \(2, 2, 3",
        ),
        (stack, Recipe(augment="flip"), r"augment='flip' is for images, not for points of shape \(6,\)"),
    ],
)
def test_networks_that_do_not_fit_the_points(make, recipe, message, points, member):
    with pytest.raises(ValueError, match=message):
        Network(make, recipe).observe(points, member, np.arange(5), ["loss"])


def test_a_model_without_points(points):
    with pytest.raises(ValueError, match="needs training points, and a model has none"):
        Network(stack).observe(points, np.zeros((1, 120), dtype=bool), np.zeros(1, dtype=int), ["loss"])


def test_more_columns_than_classes_where_labels_are_columns(points, member):
    """A class may be missing from the data."""
    few = Points(points.x, np.where(points.y == 1, 4, points.y))
    seen = Network(lambda: nn.Linear(6, 5), Recipe(epochs=60, lr=0.1)).observe(few, member, np.arange(5), ["correct"])
    assert seen["correct"][member].mean() > 0.4


def test_a_trained_network_is_read_as_it_is(points):
    module = stack(dropout=0.5).train()
    before = {name: each.clone() for name, each in module.state_dict().items()}
    release = Trained(module, layers="last")
    seen = release.observe(points, np.ones((1, 120), dtype=bool), np.zeros(1, dtype=int), WANT)
    with torch.no_grad():
        p = module.eval()(torch.as_tensor(points.x, dtype=torch.float32)).double().softmax(1).numpy()
    module.train()
    np.testing.assert_allclose(seen["loss"][0], -np.log(p[np.arange(120), points.y]), rtol=1e-5)
    a = np.sqrt(np.square(p - np.eye(3)[points.y]).sum(1))
    assert (seen["gradient_norm"][0] >= a * (1 - 1e-5)).all()  # |g| sqrt(|a|^2 + 1)
    assert module.training
    assert all(torch.equal(before[name], each) for name, each in module.state_dict().items())
    assert release.describe() is None


def test_classes_of_a_trained_network(points):
    named = Points(points.x, np.array(["a", "b", "c"])[points.y])
    module, row, seed = stack(), np.ones((1, 120), dtype=bool), np.zeros(1, dtype=int)
    sorted_names = Trained(module).observe(named, row, seed, ["loss"])["loss"]
    turned = Trained(module, np.array(["c", "a", "b"])).observe(named, row, seed, ["loss"])["loss"]
    other = Points(points.x, np.array([1, 2, 0])[points.y])
    np.testing.assert_array_equal(turned, Trained(module).observe(other, row, seed, ["loss"])["loss"])
    assert not np.array_equal(turned, sorted_names)
    with pytest.raises(ValueError, match="the label 'c' is none of classes="):
        Trained(module, np.array(["a", "b", "d"])).observe(named, row, seed, ["loss"])


def test_objects_and_paths_that_are_networks():
    assert release_of(stack, train={"epochs": 3}).recipe.epochs == 3
    assert release_of(Branches).name == "Branches"
    made = release_from(f"{HERE}:stack", {"width": 4}, "net", {"lr": 0.1})
    assert (made.name, made.parameters, made.recipe.lr) == ("net", {"width": 4}, 0.1)
    assert release_from("tests.networks.branches:Branches", {}).make is Branches
    with pytest.raises(ValueError, match=r"unknown parameter 'widht' \(did you mean 'width'\?\)"):
        release_from(f"{HERE}:stack", {"widht": 4})
    with pytest.raises(ValueError, match="train says how a network is trained; RandomForestClassifier is none"):
        release_from("sklearn.ensemble:RandomForestClassifier", {}, train={"epochs": 3})
    assert release_of(made) is made


def test_audits(points):
    report = ls.audit({"net": stack}, points.x, points.y, n_models=8, n_jobs=1, attacks=["loss", "lira"], train=QUICK)
    auc = {each.attack: each.value for each in report.findings if each.quantity == "auc"}
    assert auc["loss"] > 0.7
    assert auc["lira"] > 0.7
    torch.manual_seed(0)
    module, half = stack(), (points.x[:60], points.y[:60])
    optimiser, x = torch.optim.Adam(module.parameters(), lr=0.05), torch.as_tensor(half[0], dtype=torch.float32)
    for _ in range(100):
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(x), torch.as_tensor(half[1])).backward()
        optimiser.step()
    words = {"n_jobs": 1, "attacks": ["loss", "lira"], "references": ls.Fitted(stack, n=4), "train": QUICK}
    one = ls.audit_model(module, half, (points.x[60:], points.y[60:]), **words)
    assert next(each.value for each in one.findings if each.quantity == "auc" and each.attack == "loss") > 0.8


@pytest.mark.slow
def test_from_the_command_line(tmp_path, image_folder):
    flags = ["--set", "width=4", "--train", "epochs=3", "--train", "lr=0.05", "--n-models", "4", "--attack", "loss"]
    flags += ["--n-jobs", "1", "--json", "--no-records"]
    (tmp_path / "own.py").write_text(
        "from torch import nn\n\ndef net(width):\n"
        "    return nn.Sequential(nn.Conv2d(3, width, 3), nn.ReLU(), nn.Flatten(), nn.Linear(6 * width, 2))\n"
    )
    command = [
        sys.executable,
        "-m",
        "leakbound",
        "audit",
        "--model",
        "own:net",
        "--data",
        str(image_folder),
        *flags,
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["about"]["releases"][0]["name"] == "net"


def test_an_unknown_word_of_train_is_met_with_the_nearest(tmp_path, image_folder, monkeypatch, capsys):
    monkeypatch.delitem(sys.modules, "own", raising=False)  # of another test
    (tmp_path / "own.py").write_text("from torch import nn\n\ndef net():\n    return nn.Flatten()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    words = ["audit", "--model", "own:net", "--data", str(image_folder), "--train", "epoch=3"]
    monkeypatch.setattr(sys, "argv", ["leakbound", *words])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 1
    assert "unknown word of train 'epoch' (did you mean 'epochs'?)" in capsys.readouterr().err
