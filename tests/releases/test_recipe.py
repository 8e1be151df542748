"""Recipes: plain data, and one line for what is wrong; no PyTorch is needed for either."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from leakbound.releases.factory import release_from
from leakbound.releases.networks.recipe import Recipe
from leakbound.releases.specs import is_network


def test_a_factory_that_imports_torch_itself_says_what_to_install(as_users_run_it, tmp_path, monkeypatch):
    (tmp_path / "lazily.py").write_text("def make():\n    from torch import nn\n\n    return nn.Linear(2, 2)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ValueError, match=r"lazily:make: networks need PyTorch; install it with: pip install 'leakb"):
        release_from("lazily:make", {})


def test_a_recipe_is_plain_data(as_users_run_it):
    recipe = Recipe.of({"optimiser": "sgd", "lr": 1, "momentum": 0.9, "stop": 1e-4})
    assert json.loads(json.dumps(recipe.describe())) == recipe.describe()
    assert Recipe.of(recipe.describe()) == recipe
    assert isinstance(recipe.lr, float)
    assert Recipe(epochs=np.int64(3)) == Recipe(epochs=3)
    falling = Recipe(schedule="step", decay_epochs=5)
    assert falling.decay == 0.1
    assert Recipe.of(falling.describe()) == falling


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"epoch": 3}, r"unknown word of train 'epoch' \(did you mean 'epochs'\?\)"),
        ({"optimiser": "adm"}, r"unknown optimiser 'adm' \(did you mean 'adam'\?\)"),
        ({"loss": "huber"}, "unknown loss 'huber'"),
        ({"augment": "flips"}, r"did you mean 'flip'"),
        ({"device": "tpu"}, "unknown device 'tpu'"),
        ({"lr": 0}, "lr must be > 0"),
        ({"lr": float("nan")}, "lr must be finite"),
        ({"lr": "fast"}, "lr must be a number, got 'fast'"),
        ({"epochs": 2.5}, "epochs must be a whole number"),
        ({"batch": 0}, "batch must be >= 1"),
        ({"shift": 0, "augment": "crop"}, "shift must be >= 1"),
        ({"shift": 2, "augment": "flip"}, "shift is of augment='crop' or 'flip_crop', got 2 with 'flip'"),
        ({"stop": -1}, "stop must be > 0"),
        ({"schedule": "steps"}, r"unknown schedule 'steps' \(did you mean 'step'\?\)"),
        ({"schedule": "step"}, "schedule='step' needs decay_epochs, the epochs after which the step size falls"),
        ({"schedule": "step", "decay_epochs": 0}, "decay_epochs must be >= 1"),
        ({"schedule": "step", "decay_epochs": 3, "decay": 1.0}, "decay must be > 0 and < 1"),
        ({"schedule": "cosine", "decay_epochs": 3}, "decay_epochs is of schedule='step', got 3 with 'cosine'"),
        ({"decay": 0.5}, "decay is of schedule='step', got 0.5 with 'constant'"),
        ({"weight_decay": -0.1}, "weight_decay must be >= 0"),
        ({"momentum": 1.0, "optimiser": "sgd"}, "momentum must be < 1"),
        ({"momentum": 0.9}, "momentum is of optimiser='sgd'; adam takes none"),
        ({"mixed_precision": "yes"}, "mixed_precision must be true or false, got 'yes'"),
    ],
)
def test_what_is_no_recipe(as_users_run_it, words, message):
    with pytest.raises(ValueError, match=message):
        Recipe.of(words)


def test_networks_are_told_without_pytorch():
    class Module:
        __module__ = "torch.nn.modules.module"

    class Net(Module):
        pass

    class Other:
        pass

    assert is_network(Net)
    assert is_network(Net())
    assert not is_network(Other)
    assert not is_network(Module.__name__)


@pytest.mark.slow
def test_what_to_install_is_said(tmp_path):
    """In a process that cannot import PyTorch."""
    (tmp_path / "own.py").write_text("import torch\n")
    code = (
        "import sys; sys.path.append(sys.argv[1])\n"
        "class Absent:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name.partition('.')[0] == 'torch':\n"
        "            raise ModuleNotFoundError('No module named torch', name='torch')\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import leakbound as ls\n"
        "from leakbound.releases.factory import release_from, release_of\n"
        "for ask in (lambda: release_from('own:net', {}), lambda: ls.audit(lambda: 0, [[0], [1]], [0, 1])):\n"
        "    try:\n        ask()\n"
        "    except ValueError as error:\n        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    assert len(said) == 2
    assert all(line.endswith("install it with: pip install 'leakbound[torch]'") for line in said)
