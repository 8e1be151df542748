"""Plans: every key is checked, the nearest known one is named, and what is wrong is one line."""

from __future__ import annotations

import pytest

import leakbound as ls
from leakbound.plans.audits import AuditPlan, ClaimPlan, ModelPlan, from_toml, refuse_unknown
from leakbound.plans.plan import read
from leakbound.plans.policies import policy_of

FULL = """
title = "Who is in the forest?"
unit = "person"
date = "2024-05-01"
author = "A. Lovelace"
data = "people.csv"
label = "income"
group = "household"
drop = ["id"]
separator = ";"
decimal = ","
encoding = "cp1252"
id = "name"
n_models = 32
attacks = ["lira", "rmia"]
seed = 7
fpr = [0.001, 0.1, 0.1, 0.01]
confidence = 0.9
policy = "research"

[game.canaries]
targets = [3, 8]
references = 16

[[model]]
spec = "sklearn.ensemble:RandomForestClassifier"
name = "forest"
set = { n_estimators = 100, criterion = "entropy" }

[[model]]
spec = "sklearn.naive_bayes:GaussianNB"

[[claim]]
epsilon = 3
delta = 1e-5
adjacency = "add_remove"
model = "forest"

[[claim]]
eta = 0.05
"""


def write(tmp_path, text: str) -> str:
    path = tmp_path / "plan.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


class TestFiles:
    def test_every_field(self, tmp_path):
        plan = from_toml(write(tmp_path, FULL))
        forest = ModelPlan(
            spec="sklearn.ensemble:RandomForestClassifier",
            name="forest",
            set={"n_estimators": 100, "criterion": "entropy"},
        )
        assert plan == AuditPlan(
            title="Who is in the forest?",
            unit="person",
            date="2024-05-01",
            author="A. Lovelace",
            data="people.csv",
            label="income",
            group="household",
            drop=("id",),
            separator=";",
            decimal=",",
            encoding="cp1252",
            id="name",
            game=ls.Canaries(targets=(3, 8), references=16),
            n_models=32,
            attacks=("lira", "rmia"),
            seed=7,
            fpr=(0.1, 0.01, 0.001),
            confidence=0.9,
            policy=policy_of("research"),
            model=(forest, ModelPlan(spec="sklearn.naive_bayes:GaussianNB")),
            claim=(
                ClaimPlan(epsilon=3.0, delta=1e-5, adjacency="add_remove", model="forest"),
                ClaimPlan(eta=0.05),
            ),
        )
        # the example leaves nothing else out: only a single model is varied
        assert plan.model_fields_set == AuditPlan.model_fields.keys() - {"dataset", "vary", "depends_on", "score"}

    def test_a_function_that_makes_versions_is_code_of_the_plan(self, tmp_path):
        text = '[[model]]\nspec = "a:B"\n[game.half_split]\nqueries = { n = 3, versions = "my_versions:blurred" }'
        assert from_toml(write(tmp_path, text)).import_paths == ("a:B", "my_versions:blurred")

    def test_canaries_that_nobody_names_are_planted_in_one_model(self, tmp_path):
        text = 'game = "canaries"\n[[model]]\nspec = "a:B"\n[model.dpsgd]\nclip = 2'
        plan = from_toml(write(tmp_path, text))
        assert (plan.game, plan.planted, plan.models) == (ls.Canaries(), "dirac", 1)
        assert plan.model[0].dpsgd == {"clip": 2}
        three = from_toml(write(tmp_path, 'n_models = 3\n[game.canaries]\nkind = "random"'))
        assert (three.planted, three.models) == ("random", 3)
        named = from_toml(write(tmp_path, "[game.canaries]\ntargets = [3]"))
        assert (named.planted, named.models) == (None, 64)

    def test_models_may_be_added_until_something_is_known(self, tmp_path):
        plan = from_toml(write(tmp_path, '[n_models.until]\nquantity = "auc"\nwidth = 0.1\nat_most = 32'))
        assert (plan.until, plan.models) == (ls.Until("auc", width=0.1, at_most=32), 32)
        assert plan.model_dump()["n_models"] == {"until": {"quantity": "auc", "width": 0.1, "at_most": 32}}

    def test_layers_are_of_the_training(self, tmp_path):
        plan = from_toml(write(tmp_path, '[[model]]\nspec = "a:B"\ntrain = { epochs = 3, layers = "last" }'))
        assert (plan.model[0].recipe, plan.model[0].layers) == ({"epochs": 3}, ("last",))

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("n_canaries = 3", "n_canaries is now n of [game.canaries]"),
            ('attribute = "sex"', "attribute is now column of [game.attribute]"),
            ("n_queries = 3", "n_queries is now queries of [game.half_split]"),
            ('slice = "sex"', "slice is now slices of [game.half_split]"),
            ('until = "refuted"', "until is now [n_models.until]"),
            ('[[model]]\nspec = "a:B"\nlayers = ["last"]', "model.0.layers is now layers of [model.train]"),
        ],
    )
    def test_an_old_key_says_where_it_is_now(self, tmp_path, text, line):
        path = write(tmp_path, text)
        with pytest.raises(ValueError) as caught:
            from_toml(path)
        assert str(caught.value) == f"{path}: {line}"

    def test_an_empty_plan_is_the_default_one(self, tmp_path):
        assert from_toml(write(tmp_path, "")) == AuditPlan()

    def test_every_field_says_what_it_is(self):
        for kind in (AuditPlan, ModelPlan, ClaimPlan):
            assert all(field.description for field in kind.model_fields.values())

    def test_nothing_can_be_changed_afterwards(self):
        with pytest.raises(ValueError, match="frozen"):
            AuditPlan().seed = 1  # pyright: ignore[reportAttributeAccessIssue]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("modles = 3", "unknown key 'modles' (did you mean 'n_models'?); known: title, unit, date, "),
            ('[[model]]\nspce = "a:B"', "unknown key 'model.0.spce' (did you mean 'spec'?); known: spec, name, set"),
            ("[[claim]]\nepsilom = 1", "unknown key 'claim.0.epsilom' (did you mean 'epsilon'?); known: epsilon, "),
            ('[[model]]\nname = "a"', "the key 'model.0.spec' is missing"),
            ("n_models = 0", "n_models must be >= 1, got 0"),
            ("n_models = 1", "n_models must be >= 2, got 1; one is enough for the game canaries alone"),
            ('n_models = "many"', "n_models must be a number, got "),
            ("seed = -1", "seed: Input should be greater than or equal to 0, got -1"),
            ("attacks = []", "attacks: Tuple should have at least 1 item after validation, not 0, got []"),
            (
                'game = "chess"',
                "game must be one of half_split, per_datum, average_datum, canaries, attribute, fresh, forg",
            ),
            ("[game.half_split]\nqueries = 0", "game: half_split: queries: n: Input should be greater than or equal"),
            (
                '[game.half_split.queries]\nversions = "shifts"',
                "game: half_split: queries: versions says how versions of the records are made; give their number too",
            ),
            (
                '[game.half_split]\nqueries = { n = 4, versions = "mirror" }',
                "game: half_split: queries: versions must be shifts, noise, growing_noise or module:function, got",
            ),
            (
                '[game.half_split]\nqueries = 4\n[[model]]\nspec = "a:B"\n[model.dpsgd]\nclip = 1',
                "queries asks trained models; DP-SGD is observed by its steps: leave it out",
            ),
            ("[game.half_split]\nsample = 0", "game: half_split: sample: Input should be greater than or equal to 1"),
            (
                '[game.half_split]\nsampling = "coin"',
                "game: half_split: sampling: Input should be 'fixed' or 'poisson', got 'coin'",
            ),
            ("fpr = [5]", "fpr is a fraction: 5 is out of range; did you mean 0.05? It must be > 0 and < 1"),
            ("fpr = [nan]", "fpr must be finite, got nan"),
            (
                "confidence = 95",
                "confidence is a fraction: 95 is out of range; did you mean 0.95? It must be > 0 and < 1",
            ),
            ('policy = "tpr=0.1"', "policy: limits: tpr needs a false-alarm rate, as tpr@0.01=0.05; got 'tpr=0.1'"),
            ('fail_above = ["auc=0.6"]', "fail_above is now policy"),
            ('data = "a.csv"\ndataset = "digits"', "give data or dataset, not both"),
            ('game = "per_datum"', "game: per_datum: the key 'target' is missing"),
            (
                "[game.per_datum]\ntarget = [1, 2]",
                "game: per_datum: target: Input should be a valid integer, got [1, 2]",
            ),
            ("[game.average_datum]\ntarget = 1", "game: average_datum has no target; it has: references, prior"),
            ("[game.half_split]\nreferences = 4", "game: half_split has no references; it has: sampling, sample, "),
            (
                '[game.canaries]\nkind = "diracs"',
                "game: canaries: kind: Input should be 'dirac', 'mahalanobis', 'mislabelled' or 'random', got 'diracs'",
            ),
            (
                '[game.canaries]\ntargets = [1]\nkind = "random"',
                "game: canaries: kind, n and knowledge are of canaries that are planted; leave them out, or targets",
            ),
            ("[game.canaries]\nn = 0", "game: canaries: n: Input should be greater than or equal to 1, got 0"),
            ("[game.canaries]\ntargets = [1, 1]", "game: canaries: targets names a record twice: [1, 1]"),
            (
                "[game.canaries]\n[game.attribute]",
                "game must be one of half_split, per_datum, average_datum, canaries, ",
            ),
            (
                '[[model]]\nspec = "a:B"\ntrain = { epochs = 3 }\n[model.dpsgd]\nclip = 1',
                "model.0: train says how a network is trained without DP-SGD; give train or dpsgd, not both",
            ),
            ('data = ""', "data: String should have at least 1 character, got ''"),
            (
                '[[model]]\nspec = "a:B"\nname = "b"\n[[model]]\nspec = "a:C"\nname = "b"',
                "two models have the same name; names: b, b",
            ),
            ("n_models = ", "not TOML: "),
        ],
    )
    def test_the_line_that_a_bad_plan_gets(self, tmp_path, text, message):
        path = write(tmp_path, text)
        with pytest.raises(ValueError) as caught:
            from_toml(path)
        assert str(caught.value).startswith(f"{path}: {message}")
        assert "\n" not in str(caught.value)

    def test_no_such_file(self, tmp_path):
        with pytest.raises(ValueError) as caught:
            from_toml(tmp_path / "plan.toml")
        assert str(caught.value) == f"{tmp_path / 'plan.toml'}: no such plan file"

    def test_not_text(self, tmp_path):
        path = tmp_path / "plan.toml"
        path.write_bytes(b"\xff\xfe\x00")
        with pytest.raises(ValueError, match=f"^{path}: not TOML: "):
            from_toml(path)


class TestClaims:
    @pytest.mark.parametrize(
        ("text", "claim"),
        [
            (
                "epsilon=3,delta=1e-5,adjacency=add_remove",
                ClaimPlan(epsilon=3.0, delta=1e-5, adjacency="add_remove"),
            ),
            ("mu=1,adjacency=replace_one", ClaimPlan(mu=1.0, adjacency="replace_one")),
            ("eta=0.05", ClaimPlan(eta=0.05)),
            ("accuracy=0.55, model=forest", ClaimPlan(accuracy=0.55, model="forest")),
            ("epsilon=0,adjacency=replace_one", ClaimPlan(epsilon=0.0, adjacency="replace_one")),
        ],
    )
    def test_from_the_command_line(self, text, claim):
        assert ClaimPlan.parse(text) == claim

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("delta=0.1", "a claim needs one of epsilon, mu, eta, accuracy; got none"),
            ("eta=0.1,accuracy=0.6", "a claim needs one of epsilon, mu, eta, accuracy; got eta, accuracy"),
            ("epsilon=3", "a claim of epsilon needs adjacency=add_remove or adjacency=replace_one"),
            ("mu=3", "a claim of mu needs adjacency=add_remove or adjacency=replace_one"),
            ("eta=0.1,adjacency=add_remove", "a claim of eta takes no adjacency and no delta"),
            ("accuracy=0.6,delta=0.1", "a claim of accuracy takes no adjacency and no delta"),
            ("epsilon=-1,adjacency=add_remove", "epsilon must be >= 0, got -1"),
            ("epsilon=nan,adjacency=add_remove", "epsilon must be finite, got nan"),
            ("epsilon=inf,adjacency=add_remove", "epsilon must be finite, got inf"),
            ("eta=0.6", "eta must be >= 0 and < 0.5, got 0.6"),
            ("accuracy=0.4", "accuracy must be >= 0.5 and < 1, got 0.4"),
            (
                "epsilon=1,delta=2,adjacency=add_remove",
                "delta is a fraction: 2 is out of range; did you mean 0.02? It must be >= 0 and < 1",
            ),
            ("epsilon=much,adjacency=add_remove", "epsilon: Input should be a valid number, "),
            ("epsilon=1,adjacency=swap", "adjacency: Input should be 'add_remove' or 'replace_one', got 'swap'"),
            ("epsilon", "write NAME=VALUE, got 'epsilon'"),
            ("epsilon=1,,", "write NAME=VALUE, got ''"),
            ("", "write NAME=VALUE, got ''"),
            ("sigma=1", "unknown key 'sigma'; known: epsilon, delta, mu, eta, accuracy, adjacency, model"),
        ],
    )
    def test_the_line_that_a_bad_claim_gets(self, text, message):
        with pytest.raises(ValueError) as caught:
            ClaimPlan.parse(text)
        assert str(caught.value).startswith(f"claim: {message}")
        assert "\n" not in str(caught.value)


def test_a_claim_is_about_a_model_that_is_there():
    plan = read(AuditPlan, {"claim": [{"eta": 0.1, "model": "forest"}, {"eta": 0.2}]}, "plan")
    refuse_unknown(plan, ["forest", "tree"])
    with pytest.raises(ValueError) as caught:
        refuse_unknown(plan, ["tree", "net"])
    assert str(caught.value) == "a claim is about 'forest', which is no model here: tree, net"
