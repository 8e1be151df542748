"""One trained network from the file of its weights: what is read, and what is refused."""

from __future__ import annotations

import hashlib
import json
import pickle
import re
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import leakbound as ls
from leakbound.releases.factory import trained_from
from leakbound.releases.networks.weight_files import weights_of
from leakbound.reports import Report
from tests.cli.calling import caller, refused
from tests.marks import nightly
from tests.mutations import check

SPEC = "mine:make"
MINE = """
from torch import nn

def make(width=4):
    return nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, 3))

def number():
    return 3

def fit(X, y, seed):
    return make()
"""
SIDES = "--members in.npz --others out.npz --n-jobs 1"


@pytest.fixture
def leakbound(tmp_path, monkeypatch, capfd, as_users_run_it):
    """A command in a folder with a network, its data and other data."""
    (tmp_path / "mine.py").write_text(MINE)
    rng = np.random.default_rng(0)
    for name in ("in", "out"):
        np.savez(tmp_path / f"{name}.npz", x=rng.normal(size=(40, 6)), y=rng.integers(3, size=40))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    return caller(monkeypatch, capfd)


def of_width(width: int) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, width), nn.Tanh(), nn.Linear(width, 3))


def test_weights_are_those_of_the_file(leakbound):
    network = of_width(5)
    torch.save(network.state_dict(), "net.pt")
    found = trained_from(SPEC, {"width": 5}, "net.pt")
    x = torch.arange(12.0).reshape(2, 6)
    assert torch.equal(found(x), network(x))


def test_the_command(leakbound):
    torch.save(of_width(4).state_dict(), "net.pt")
    left = leakbound(
        f"audit model --model {SPEC} --weights net.pt {SIDES} --attack loss --attack gradient_norm --out a"
    )
    assert left.code == 0, left.err
    report = Report.from_json(Path("a/report.json"))
    (facts,) = report.about.releases
    assert (facts.targets, facts.references) == (1, 0)
    assert {each.attack for each in report.findings if each.quantity == "auc"} == {"loss", "gradient_norm"}


def test_models_of_its_recipe_beside_it(leakbound):
    torch.save(of_width(4).state_dict(), "net.pt")
    references = "--n-models 4 --train epochs=2 --attack lira_offline"
    command = f"audit model --model {SPEC} --weights net.pt {SIDES} {references} --out a"
    assert leakbound(command).code == 0
    (facts,) = Report.from_json(Path("a/report.json")).about.releases
    assert (facts.targets, facts.references) == (1, 4)


def auc(out: str, attack: str) -> float:
    report = Report.from_json(Path(out) / "report.json")
    return next(each.value for each in report.findings if (each.quantity, each.attack) == ("auc", attack))


@pytest.mark.parametrize("names", [np.array(["b", "10", "2"]), nightly(np.array([9, 7, 5]))])
@pytest.mark.slow
def test_the_columns_are_those_that_are_named(leakbound, names):
    torch.save(of_width(4).state_dict(), "net.pt")
    command = f"audit model --model {SPEC} --weights net.pt {SIDES} --attack loss"
    assert leakbound(f"{command} --out numbered").code == 0
    for file in ("in.npz", "out.npz"):
        with np.load(file) as arrays:
            np.savez(file, x=arrays["x"], y=names[arrays["y"]])
    flags = " ".join(f"--classes {name}" for name in names)
    assert leakbound(f"{command} {flags} --out named").code == 0
    assert leakbound(f"{command} --out sorted").code == 0
    assert auc("named", "loss") == auc("numbered", "loss") != auc("sorted", "loss")


@pytest.mark.slow
def test_the_layers_that_are_named(leakbound):
    network = of_width(4)
    torch.save(network.state_dict(), "net.pt")
    command = f"audit model --model {SPEC} --weights net.pt {SIDES} --attack gradient_norm"
    for layers in ("last", "0"):
        assert leakbound(f"{command} --train layers={layers} --out {layers}").code == 0
    sides = []
    for file in ("in.npz", "out.npz"):
        with np.load(file) as arrays:
            sides.append((arrays["x"], arrays["y"]))
    made = ls.audit_model(network, *sides, train={"layers": "last"}, attacks=["gradient_norm"])
    found = [each.value for each in made.findings if each.quantity == "auc"]
    assert [auc("last", "gradient_norm")] == found != [auc("0", "gradient_norm")]


def test_the_report_holds_the_recipe_and_the_files(leakbound):
    torch.save(of_width(4).state_dict(), "net.pt")
    command = (
        f"audit model --model {SPEC} --weights net.pt {SIDES} --n-models 2 --train epochs=2 --train lr=0.005 --out a"
    )
    assert leakbound(command).code == 0
    (release,) = json.loads(Path("a/report.json").read_text())["about"]["releases"]
    digest = hashlib.sha256(Path("net.pt").read_bytes()).hexdigest()
    assert release["files"] == {"net.pt": digest}
    assert release["data"]["name"] == "in.npz and out.npz"
    page = Path("a/report.html").read_text()
    for part in (digest, "epochs=2", "lr=0.005", "in.npz and out.npz"):
        assert part in release["description"] + release["data"]["name"]
        assert part in page


@pytest.mark.parametrize("references", ["", "--n-models 2 --train epochs=2"])
def test_the_report_holds_no_folder(leakbound, tmp_path, references):
    folder = tmp_path / "ada-lovelace" / "clinic"
    folder.mkdir(parents=True)
    torch.save(of_width(4).state_dict(), folder / "net.pt")
    for side in ("in.npz", "out.npz"):
        Path(side).rename(folder / side)
    sides = f"--members {folder}/in.npz --others {folder}/out.npz --n-jobs 1"
    left = leakbound(f"audit model --model {SPEC} --weights {folder}/net.pt {sides} {references} --out {folder}/a")
    assert left.code == 0, left.err
    texts = [left.out, *((folder / "a" / file).read_text() for file in ("report.json", "report.html"))]
    for text in texts:
        assert "net.pt" in text
        assert "ada-lovelace" not in text
        assert "clinic" not in text


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            f"--weights net.pt {SIDES}",
            "--weights needs the --model that they are of, as --model my_package:make_net",
        ),
        (f"--model {SPEC} --weights net.pt", "--weights needs --members FILE and --others FILE"),
        (f"--model {SPEC} --weights gone.pt {SIDES}", "gone.pt: no such file"),
        (
            f"--model {SPEC} --weights pickled.pt {SIDES}",
            "pickled.pt: no state dict; tensors alone are read",
        ),
        (
            f"--model {SPEC} --weights network.pt {SIDES}",
            "network.pt: a network or other objects in a pickle, which runs code when it is read; it is not read: save",
        ),
        (
            f"--model {SPEC} --weights script.pt {SIDES}",
            "script.pt: an archive of TorchScript, which holds code; nothing of it is run. Save its weights by "
            "torch.save(",
        ),
        (
            f"--model mine:fit --weights net.pt {SIDES}",
            "mine:fit trains a network, and weights need what makes one, as --model my_package:make_net",
        ),
        (
            f"--model {SPEC} --weights net.pt {SIDES} --dry-run",
            "audit model has no --dry-run; use --dry-run of leakbound audit",
        ),
        (f"--model {SPEC} --weights tensor.pt {SIDES}", "tensor.pt: no state dict; tensors alone are read"),
        (
            f"--model {SPEC} --weights whole.pt {SIDES}",
            "whole.pt: a state dict alone is read, this one is in net: save it by torch.save(torch.load('whole.pt', "
            "weights_only=True)['net'], 'net.pt')",
        ),
        (f"--model {SPEC} --weights net.pt {SIDES} --train layers=3", "unknown layer '3'"),
        (
            f"--model {SPEC} --weights net.pt {SIDES} --classes a --classes b --classes c",
            "--classes are numbers where",
        ),
        (
            f"--model {SPEC} --weights net.pt {SIDES} --classes 0 --classes 1 --classes 3",
            "net.pt: the label '2' is none of classes",
        ),
        (f"--weights net.pt {SIDES} --train layers=last", "--train needs a --model"),
        (f"--model {SPEC} --dpsgd clip=1 --weights net.pt", "audit model has no --dpsgd; use --dpsgd of"),
        (f"--model {SPEC} --layers last", "audit model has no --layers; use --train layers=..."),
        (f"--model {SPEC} --classes 1", "give ONE trained model: a file"),
        (f"--model {SPEC} --weights in.npz {SIDES}", "in.npz: no state dict; tensors alone are read"),
        (
            f"--model {SPEC} --set width=9 --weights net.pt {SIDES}",
            "net.pt: the weights of another network: size mismatch for 0.weight: ",
        ),
        (
            f"--model mine:number --weights net.pt {SIDES}",
            "mine:number makes no network, and weights are those of one",
        ),
        (
            f"--model {SPEC} --weights net.pt {SIDES} --predict mine:make",
            "give ONE trained model: a file",
        ),
        (f"--model {SPEC} --weights net.pt --dataset wine", "audit model has no --dataset; use --members"),
    ],
)
def test_what_is_refused(leakbound, words: str, line: str):
    torch.save(of_width(4).state_dict(), "net.pt")
    torch.save(torch.ones(3), "tensor.pt")
    torch.save({"epoch": 3, "net": of_width(4).state_dict()}, "whole.pt")
    torch.save(of_width(4), "network.pt")
    script_archive(Path("script.pt"))
    Path("pickled.pt").write_bytes(pickle.dumps({"0.weight": print}))
    refused(leakbound(f"audit model {words} --out a"), line)
    assert not Path("a").exists()


ONE = torch.ones(1)


def script_archive(path: Path) -> None:
    """An archive with the files of TorchScript."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("data.pkl", "constants.pkl", "code/__torch__.py", "version"):
            archive.writestr(f"script/{name}", b"3")


def safetensors(state: dict[str, torch.Tensor], **changed: object) -> bytes:
    """A file of safetensors, by its published format; perhaps with another header."""
    names = {torch.float32: "F32", torch.float64: "F64", torch.bfloat16: "BF16", torch.int64: "I64", torch.bool: "BOOL"}
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    content = b""
    for name, tensor in state.items():
        raw = bytes(tensor.contiguous().reshape(-1).view(torch.uint8).numpy()) if tensor.numel() else b""
        offsets = [len(content), len(content) + len(raw)]
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": offsets}
        content += raw
    text = json.dumps(header | changed).encode()
    return len(text).to_bytes(8, "little") + text + content


def test_safetensors_are_read(leakbound):
    network = of_width(4)
    Path("net.safetensors").write_bytes(safetensors(network.state_dict()))
    found = trained_from(SPEC, {}, "net.safetensors")
    x = torch.arange(12.0).reshape(2, 6)
    assert torch.equal(found(x), network(x))
    state = {
        "half": torch.tensor([1.5, -2.0]).bfloat16(),
        "count": torch.tensor(7),
        "flag": torch.tensor([True, False, True]),
        "none": torch.empty(0, 3),
        "double": torch.tensor([[1.0, 2.0]], dtype=torch.float64),
    }
    Path("all.safetensors").write_bytes(safetensors(state))
    read = weights_of("all.safetensors")
    assert read.keys() == state.keys()
    for name, tensor in state.items():
        assert read[name].dtype == tensor.dtype
        assert torch.equal(read[name], tensor)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ((10**9).to_bytes(8, "little") + b"{}", "its header is longer than the file"),
        ((4).to_bytes(8, "little") + b"{no}", "its header is no JSON"),
        (safetensors({}, a=[]), "a has no type, shape and place"),
        (safetensors({}, a={"dtype": "F8", "shape": [], "data_offsets": [0, 0]}), "a has numbers of type F8; read are"),
        (safetensors({}, a={"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}), "do not end where it ends"),
        (safetensors({}, a={"dtype": "F32", "shape": [-1], "data_offsets": [4, 0]}), "a does not have the bytes"),
        (safetensors({}, a={"dtype": "F32", "shape": [10**12], "data_offsets": [0, 0]}), "a does not have the bytes"),
        (safetensors({}, a={"dtype": "F32", "shape": [0, 10**19], "data_offsets": [0, 0]}), "a does not have the by"),
        (safetensors({"a": ONE}, b={"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}), "b does not follow the te"),
        (safetensors({"a": ONE}, a={"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}), "do not end where it ends"),
        (safetensors({}, a={"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}), "a does not follow the tensor"),
    ],
)
def test_damaged_safetensors_give_one_line(tmp_path, content, says):
    file = tmp_path / "net.safetensors"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(says)):
        weights_of(file)


def test_tensors_that_share_bytes_take_no_memory(tmp_path):
    """8 MB that 300 tensors share would be 2.5 GB."""
    header = {str(n): {"dtype": "U8", "shape": [8_000_000], "data_offsets": [0, 8_000_000]} for n in range(300)}
    text = json.dumps(header).encode()
    file = tmp_path / "net.safetensors"
    file.write_bytes(len(text).to_bytes(8, "little") + text + bytes(8_000_000))
    with pytest.raises(ValueError, match=r"net\.safetensors: a damaged file of safetensors: 1 does not follow the ten"):
        weights_of(file)


@pytest.mark.parametrize("kind", ["state", "safetensors"])
@pytest.mark.slow
def test_mutated_weights_give_one_line(kind):
    check(kind, 100)
