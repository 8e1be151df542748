"""Natural calls: training loops of the user's own, and torch networks that leakbound trains."""

from __future__ import annotations

import io
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import leakbound as ls
from tests.libraries.natural import N_MODELS, finds_a_leak, finds_no_leak, natural, numbers, people, tokens

# Loops of the user's own


def fit_weighted(X, y, seed):
    from sklearn.ensemble import RandomForestClassifier

    weights = np.where(y == 1, 3.0, 1.0)
    return RandomForestClassifier(random_state=seed).fit(X, y, sample_weight=weights)


@natural("own loops", "A fit function that gives sample weights to a forest.")
def sample_weights_in_a_function() -> None:
    X, y = numbers()
    finds_a_leak(ls.audit(fit_weighted, X, y, n_models=N_MODELS))


def fit_with_early_stopping(X, y, seed):
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.metrics import log_loss
    from sklearn.model_selection import train_test_split

    X_fit, X_valid, y_fit, y_valid = train_test_split(X, y, test_size=0.15, stratify=y, random_state=seed)
    model = GradientBoostingClassifier(max_depth=6, warm_start=True, random_state=seed)
    best, waited = np.inf, 0
    for rounds in range(10, 301, 10):
        model.set_params(n_estimators=rounds).fit(X_fit, y_fit)
        loss = log_loss(y_valid, model.predict_proba(X_valid))
        best, waited = (loss, 0) if loss < best else (best, waited + 1)
        if waited == 3:
            break
    return model


@natural("own loops", "Boosting that stops early on a validation split inside the fit function.")
def early_stopping_on_an_inner_split() -> None:
    X, y = numbers()
    finds_a_leak(ls.audit(fit_with_early_stopping, X, y, n_models=N_MODELS))


def fit_with_torch(X, y, seed):
    import torch
    from torch import nn

    torch.manual_seed(seed)
    rows, labels = torch.from_numpy(X), torch.from_numpy(y)
    net = nn.Sequential(nn.Linear(X.shape[1], 128), nn.ReLU(), nn.Linear(128, int(y.max()) + 1))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(60):
        for batch in torch.randperm(len(rows)).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(rows[batch]), labels[batch]).backward()
            optimizer.step()

    def predict(Z):
        with torch.no_grad():
            return net(torch.from_numpy(Z)).softmax(dim=1).numpy()

    return predict


@natural("own loops", "A plain PyTorch loop with Adam and batches.", "torch")
def plain_torch_loop() -> None:
    X, y = numbers(n_columns=30, n_classes=4)
    finds_a_leak(ls.audit(fit_with_torch, X, y, n_models=N_MODELS))


@natural("own loops", "A lambda from a notebook that captures a setting.")
def lambda_with_a_captured_setting() -> None:
    from sklearn.ensemble import RandomForestClassifier

    X, y = numbers()
    n_trees = 50
    report = ls.audit(
        lambda X, y, seed: RandomForestClassifier(n_trees, random_state=seed).fit(X, y), X, y, n_models=N_MODELS
    )
    finds_a_leak(report)


def fit_with_lightning(X, y, seed):
    import lightning as L  # noqa: N812
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    class Classifier(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 4))

        def forward(self, rows):
            return self.net(rows)

        def training_step(self, batch, index):
            rows, labels = batch
            return nn.functional.cross_entropy(self(rows), labels)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.01)

    L.seed_everything(seed)
    model = Classifier()
    loader = DataLoader(TensorDataset(torch.tensor(X), torch.tensor(y)), batch_size=16, shuffle=True)
    trainer = L.Trainer(max_epochs=40, logger=False, enable_checkpointing=False, enable_progress_bar=False)
    trainer.fit(model, loader)
    model.eval()

    def predict(Z):
        with torch.no_grad():
            return model(torch.tensor(Z)).softmax(dim=1).numpy()

    return predict


@natural("own loops", "A network trained by Lightning's Trainer.", "lightning", "torch")
def lightning_trainer() -> None:
    X, y = numbers(n_columns=30, n_classes=4)
    finds_a_leak(ls.audit(fit_with_lightning, X, y, n_models=N_MODELS))


def fit_with_keras(X, y, seed):
    os.environ["KERAS_BACKEND"] = "jax"
    import keras

    keras.utils.set_random_seed(seed)
    layers = [keras.Input((30,)), keras.layers.Dense(128, "relu"), keras.layers.Dense(4, "softmax")]
    model = keras.Sequential(layers)
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
    model.fit(X, y, epochs=80, batch_size=16, verbose=0)
    return lambda Z: model.predict(Z, verbose=0)


@natural("own loops", "A Keras network on the JAX backend.", "keras", "jax")
def keras_on_jax() -> None:
    X, y = numbers(n_columns=30, n_classes=4)
    finds_a_leak(ls.audit(fit_with_keras, X, y, n_models=N_MODELS))


def fit_with_jax(X, y, seed):
    import jax
    import jax.numpy as jnp

    def logits(params, rows):
        hidden = jax.nn.relu(rows @ params["w1"] + params["b1"])
        return hidden @ params["w2"] + params["b2"]

    def loss(params):
        return -jax.nn.log_softmax(logits(params, X))[jnp.arange(len(y)), y].mean()

    @jax.jit
    def step(params):
        return jax.tree.map(lambda value, slope: value - 0.1 * slope, params, jax.grad(loss)(params))

    first, second = jax.random.split(jax.random.key(seed))
    params = {
        "w1": jax.random.normal(first, (30, 128)) * np.sqrt(2 / 30),
        "b1": jnp.zeros(128),
        "w2": jax.random.normal(second, (128, 4)) * np.sqrt(2 / 128),
        "b2": jnp.zeros(4),
    }
    for _ in range(600):
        params = step(params)
    return lambda Z: jax.nn.softmax(logits(params, Z))


@natural("own loops", "Gradient descent written in plain JAX.", "jax")
def plain_jax() -> None:
    X, y = numbers(n_columns=30, n_classes=4)
    finds_a_leak(ls.audit(fit_with_jax, X, y, n_models=N_MODELS))


FIT_IN_R = """
model <- glm(label ~ ., data = read.csv("train.csv"), family = binomial)
saveRDS(model, "model.rds")
"""
PREDICT_IN_R = """
rows <- read.csv(file("stdin"))
p <- predict(readRDS("model.rds"), rows, type = "response")
write.csv(data.frame(p = p), row.names = FALSE)
"""


def fit_in_r(X, y, seed):
    folder = Path(tempfile.mkdtemp())
    (folder / "fit.R").write_text(FIT_IN_R)
    (folder / "predict.R").write_text(PREDICT_IN_R)
    X.assign(label=y).to_csv(folder / "train.csv", index=False)
    subprocess.run(["Rscript", "fit.R"], cwd=folder, capture_output=True, check=True)

    def predict(Z):
        rows = Z.to_csv(index=False)
        command = ["Rscript", "predict.R"]
        done = subprocess.run(command, cwd=folder, input=rows, capture_output=True, text=True, check=True)
        p = pd.read_csv(io.StringIO(done.stdout))["p"]
        return np.column_stack([1 - p, p])

    return predict


@natural("own loops", "A logistic regression that Rscript fits and applies.", "R")
def glm_in_r() -> None:
    X, y = numbers(n_columns=2)
    frame = pd.DataFrame(X, columns=["dose", "weight"])
    finds_no_leak(ls.audit(fit_in_r, frame, y, n_models=N_MODELS))


@natural("own loops", "A trained network, with references trained by the user's own loop.", "torch")
def trained_network_with_own_references() -> None:
    from sklearn.model_selection import train_test_split

    X, y = numbers(n_columns=30, n_classes=4)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
    predict = fit_with_torch(X_train, y_train, seed=0)
    report = ls.audit_model(
        predict, (X_train, y_train), (X_test, y_test), references=ls.Fitted(fit_with_torch, n=N_MODELS)
    )
    finds_a_leak(report)


def fit_on_people(X, y, seed):
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["town", "job"]), remainder="passthrough")
    return make_pipeline(encode, RandomForestClassifier(random_state=seed)).fit(X, y)


@natural("own loops", "A fit function that encodes a mixed frame itself and returns a fitted pipeline.")
def one_hot_inside_the_function() -> None:
    X, y = people()
    finds_a_leak(ls.audit(fit_on_people, X, y, n_models=N_MODELS))


# Networks that leakbound trains


def make_token_net():
    from torch import nn

    class TokenNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(50, 64)
            self.head = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 2))

        def forward(self, ids):
            return self.head(self.embedding(ids).mean(dim=1))

    return TokenNet()


@natural("networks", "Token ids in an embedding with mean pooling.", "torch")
def token_ids_with_an_embedding() -> None:
    X, y = tokens()
    report = ls.audit(make_token_net, X, y, train={"epochs": 200, "batch_size": 16}, n_models=N_MODELS)
    finds_a_leak(report)


@dataclass
class Output:
    logits: Any
    loss: Any = None


def make_net_with_logits():
    from torch import nn

    class TokenClassifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(50, 64)
            self.head = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 2))

        def forward(self, input_ids, labels=None):
            logits = self.head(self.embedding(input_ids).mean(dim=1))
            loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
            return Output(logits, loss)

    return TokenClassifier()


@natural("networks", "A network whose output is an object with logits, as in Hugging Face's library.", "torch")
def output_with_logits() -> None:
    X, y = tokens()
    report = ls.audit(make_net_with_logits, X, y, train={"epochs": 200, "batch_size": 16}, n_models=N_MODELS)
    finds_a_leak(report)


def make_masked_net():
    from torch import nn

    class MaskedNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(50, 64)
            self.head = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 2))

        def forward(self, input_ids, attention_mask):
            mask = attention_mask.unsqueeze(-1)
            pooled = (self.embedding(input_ids) * mask).sum(dim=1) / mask.sum(dim=1)
            return self.head(pooled)

    return MaskedNet()


@natural("networks", "A dictionary of token ids and attention mask as the features.", "torch")
def dictionary_of_inputs() -> None:
    ids, y = tokens()
    lengths = np.random.default_rng(1).integers(6, 13, size=len(ids))
    mask = (np.arange(12) < lengths[:, None]).astype(np.int64)
    X = {"input_ids": ids * mask, "attention_mask": mask}
    report = ls.audit(make_masked_net, X, y, train={"epochs": 200, "batch_size": 16}, n_models=N_MODELS)
    finds_a_leak(report)


def make_image_net():
    from torch import nn

    class ImageNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution = nn.Conv2d(1, 16, kernel_size=3, padding=1)
            self.head = nn.Linear(16 * 8 * 8, 4)

        def forward(self, x):
            x = self.convolution(x).relu()
            return self.head(x.view(x.size(0), -1))

    return ImageNet()


@natural("networks", "A convolutional network that flattens with view.", "torch")
def convolution_then_view() -> None:
    X, y = numbers(n_columns=64, n_classes=4)
    images = X.reshape(240, 1, 8, 8)
    report = ls.audit(make_image_net, images, y, train={"epochs": 100, "batch_size": 16}, n_models=N_MODELS)
    finds_a_leak(report)


def make_net_with_dropout():
    from torch import nn

    return nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Dropout(p=0.0), nn.Linear(128, 4))


@natural("networks", "A network with a dropout layer that is switched off.", "torch")
def dropout_of_zero() -> None:
    X, y = numbers(n_columns=30, n_classes=4)
    report = ls.audit(make_net_with_dropout, X, y, train={"epochs": 100, "batch_size": 16}, n_models=N_MODELS)
    finds_a_leak(report)


def make_one_output_net():
    from torch import nn

    return nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 1))


@natural("networks", "A binary classifier with one logit and labels 0 and 1.", "torch")
def one_logit_head() -> None:
    X, y = numbers(n_columns=30)
    report = ls.audit(make_one_output_net, X, y, train={"epochs": 200, "batch_size": 16}, n_models=N_MODELS)
    finds_a_leak(report)


@natural("networks", "A regression network with one output and float labels.", "torch")
def regression_network() -> None:
    X, _ = numbers(n_columns=30)
    noise = np.random.default_rng(1).normal(size=len(X))
    y = (X[:, 0] + noise).astype(np.float32)
    report = ls.audit(make_one_output_net, X, y, train={"epochs": 200, "batch_size": 16}, n_models=N_MODELS)
    finds_a_leak(report)


def make_three_label_net():
    from torch import nn

    return nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 3))


@natural("networks", "A multi-label network with three labels for each record.", "torch")
def multi_label_head() -> None:
    X, _ = numbers(n_columns=30)
    flipped = np.random.default_rng(1).random((len(X), 3)) < 0.2
    y = ((X[:, :3] > 0) ^ flipped).astype(int)
    report = ls.audit(make_three_label_net, X, y, train={"epochs": 200, "batch_size": 16}, n_models=N_MODELS)
    finds_a_leak(report)


def make_small_net():
    from torch import nn

    return nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 4))


@natural("networks", "A TensorDataset of features and labels in place of two arrays.", "torch")
def tensor_dataset() -> None:
    import torch
    from torch.utils.data import TensorDataset

    X, y = numbers(n_columns=30, n_classes=4)
    dataset = TensorDataset(torch.from_numpy(X), torch.from_numpy(y))
    report = ls.audit(make_small_net, dataset, train={"epochs": 100, "batch_size": 16}, n_models=N_MODELS)
    finds_a_leak(report)


def make_ragged_net():
    from torch import nn

    class RaggedNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(51, 64, padding_idx=0)
            self.head = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 2))

        def forward(self, ids):
            length = (ids != 0).sum(dim=1, keepdim=True)
            return self.head(self.embedding(ids).sum(dim=1) / length)

    return RaggedNet()


def pad(batch):
    import torch
    from torch.nn.utils.rnn import pad_sequence

    sequences, labels = zip(*batch, strict=True)
    ids = pad_sequence([torch.tensor(sequence) for sequence in sequences], batch_first=True)
    return ids, torch.tensor(labels)


@natural("networks", "Lists of token ids of different lengths, with a collate function.", "torch")
def ragged_sequences() -> None:
    ids, y = tokens()
    lengths = np.random.default_rng(1).integers(6, 13, size=len(ids))
    X = [(row[:length] + 1).tolist() for row, length in zip(ids, lengths, strict=True)]
    recipe = {"epochs": 200, "batch_size": 16, "collate": pad}
    finds_a_leak(ls.audit(make_ragged_net, X, y, train=recipe, n_models=N_MODELS))


@natural("networks", "A trained network with its training and test data as DataLoaders.", "torch")
def trained_network_with_loaders() -> None:
    import torch
    from torch.utils.data import DataLoader, TensorDataset, random_split

    torch.manual_seed(0)
    X, y = numbers(n_columns=30, n_classes=4)
    dataset = TensorDataset(torch.from_numpy(X), torch.from_numpy(y))
    train_set, test_set = random_split(dataset, [120, 120])
    train_loader = DataLoader(train_set, batch_size=16, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=16)
    net = make_small_net()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(60):
        for rows, labels in train_loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(rows), labels).backward()
            optimizer.step()
    net.eval()
    finds_a_leak(ls.audit_model(net, train_loader, test_loader))
