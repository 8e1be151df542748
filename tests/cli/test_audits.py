"""The command line from outside: exit codes, what goes to which stream, what is written where."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import leakbound as ls
from leakbound.attacks import ATTACKS, DEFAULT
from leakbound.auditing import api as audit_api
from leakbound.cli import audits
from leakbound.plans import AuditPlan
from leakbound.reports import Report
from leakbound.runtime.execution import Tally
from tests.cli.calling import Left, caller, refused
from tests.marks import nightly
from tests.results import of_the_result

N = 80
TREE = "--model sklearn.tree:DecisionTreeClassifier"
NOISE = "audit --data noise.csv --label label --n-models 24 --attack gap --attack lira --n-jobs 1"


@pytest.fixture
def leakbound(tmp_path, monkeypatch, capfd, as_users_run_it) -> Callable[[str], Left]:
    """A command in an empty folder with one file: labels that only a memory can know."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=N), "b": rng.normal(size=N), "label": rng.integers(0, 2, N)})
    frame.to_csv(tmp_path / "noise.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return caller(monkeypatch, capfd)


@pytest.fixture
def asked(monkeypatch) -> list[tuple[AuditPlan, dict[str, Any]]]:
    """The plans that audits are asked for; none is carried out."""
    plans: list[tuple[AuditPlan, dict[str, Any]]] = []

    def run(plan: AuditPlan, **words: Any) -> Report:
        plans.append((plan, words))
        return audit_api.audit_scores(np.arange(40.0), np.arange(40) % 2 == 0)

    monkeypatch.setattr(audit_api, "run", run)
    return plans


class TestExitCodes:
    @pytest.mark.by_day("--policy auc=0.99-0-")
    @pytest.mark.parametrize(
        ("flags", "code", "said"),
        [
            ("", 0, ""),
            ("--policy auc=0.99", 0, ""),
            ("--claim eta=0.49", 0, ""),
            (
                "--policy auc=0.6",
                3,
                r"leakbound: limit: DecisionTreeClassifier: the policy says do not release\n",
            ),
            (
                "--claim epsilon=0.1,adjacency=replace_one",
                2,
                r"leakbound: refuted: DecisionTreeClassifier: epsilon = 0.1, .+\n",
            ),
            nightly(
                "--claim mu=0.1,adjacency=add_remove --policy auc=0.6",
                2,
                r"leakbound: refuted: .+\nleakbound: limit: .+\n",
            ),
        ],
    )
    def test_of_an_audit(self, leakbound, flags, code, said):
        left = leakbound(f"{NOISE} {TREE} {flags}")
        assert left.code == code
        wrote = "leakbound: wrote leakbound-report/report.json and leakbound-report/report.html\n"
        assert re.fullmatch(wrote + said, left.err)
        assert Path("leakbound-report/report.html").stat().st_size > 10_000  # written whatever the verdict

    @pytest.mark.usefixtures("without_pages")
    def test_what_could_not_be_measured_fails_the_gate(self, leakbound):
        few = "audit --data noise.csv --label label --n-models 2 --attack loss --n-jobs 1"
        left = leakbound(f"{few} {TREE} --policy tpr@0.001=0.5")
        assert left.code == 3
        assert "limit: DecisionTreeClassifier: the policy says ask" in left.err

    def test_ctrl_c(self, leakbound, monkeypatch):
        def interrupted(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(audit_api, "run", interrupted)
        line = "leakbound: interrupted; finished models are in the store, the same command goes on from there\n"
        assert leakbound("audit") == (130, "", line)

    def test_a_traceback_on_request(self, leakbound, monkeypatch):
        monkeypatch.setenv("LEAKBOUND_TRACEBACK", "1")
        monkeypatch.setattr(audit_api, "run", lambda *_, **__: {}["lost"])
        with pytest.raises(KeyError, match="lost"):
            leakbound("audit")


@pytest.mark.usefixtures("without_pages")
class TestPlans:
    def test_with_no_argument(self, leakbound, asked):
        assert leakbound("audit").code == 0
        ((plan, words),) = asked
        assert (plan.dataset, plan.models, plan.seed, plan.attacks) == ("digits", 64, 0, ("default",))
        assert [model.spec for model in plan.model] == ["sklearn.ensemble:RandomForestClassifier"]
        places = {"store": "leakbound-report/store", "n_jobs": None, "from_store": ""}
        assert words == {**places, "command": "leakbound audit", "tally": Tally()}

    def test_flags_on_top_of_a_file(self, leakbound, asked):
        Path("plan.toml").write_text(
            "title = 'Ours'\ndata = 'people.csv'\nlabel = 'income'\nn_models = 8\nseed = 3\n"
            "[[model]]\nspec = 'sklearn.tree:DecisionTreeClassifier'\n[[claim]]\neta = 0.1\n"
        )
        leakbound("audit plan.toml --seed 4 --fpr 0.1 --fpr 0.2")
        leakbound("audit plan.toml --dataset wine --claim mu=1,adjacency=add_remove --attack lira")
        (first, _), (second, _) = asked
        assert (first.title, first.data, first.label, first.n_models, first.seed) == (
            "Ours",
            "people.csv",
            "income",
            8,
            4,
        )
        assert first.fpr == (0.2, 0.1)
        assert [claim.eta for claim in first.claim] == [0.1]
        assert (second.dataset, second.data, second.label, second.seed) == ("wine", None, None, 3)
        assert [claim.mu for claim in second.claim] == [1.0]
        assert second.attacks == ("lira",)

    def test_dp_sgd_and_canaries(self, leakbound, asked):
        flags = "--dpsgd noise_multiplier=2 --dpsgd clip=1.5 --game canaries,kind=mahalanobis,knowledge=others,n=50"
        assert leakbound(f"audit --model a:b --model c:d {flags}").code == 0
        ((plan, _),) = asked
        assert [model.dpsgd for model in plan.model] == [None, {"noise_multiplier": 2, "clip": 1.5}]
        assert plan.game == ls.Canaries("mahalanobis", n=50, knowledge="others")
        assert plan.models == 1

    @pytest.mark.parametrize(
        ("flags", "line"),
        [
            ("--dpsgd clip=1", "--dpsgd needs a --model"),
            (f"{TREE} --dpsgd clip=1", "dpsgd trains networks; give a class of networks or a function that makes one"),
            (
                f"{TREE} --dpsgd clpi=1",
                "unknown word of DP-SGD 'clpi' (did you mean 'clip'?); known: noise_multiplier, ",
            ),
            (
                f"{TREE} --game canaries",
                "dirac canaries need the steps of DP-SGD, and DecisionTreeClassifier shows none",
            ),
            ("--canaries dirac", "audit has no --canaries; use --game canaries,kind=..."),
            ("--game canaries,kind=diracs", "audit: game: canaries: kind: Input should be 'dirac', 'mahalanobis', "),
        ],
    )
    def test_canaries_that_do_not_fit(self, leakbound, flags, line):
        refused(leakbound(f"audit --data noise.csv --label label {flags}"), line)

    def test_mislabelled_canaries_fit_any_model(self, leakbound):
        planted = "--game canaries,kind=mislabelled,n=30"
        left = leakbound(f"audit --data noise.csv --label label {TREE} {planted}")
        assert left.code == 0
        assert "1 model trained 1 time with a random half of the canaries" in left.out

    @pytest.mark.parametrize(
        ("typed", "tables"),
        [
            ("--model a:A --set d=1 --model b:B --set d=2", [{"set": {"d": 1}}, {"set": {"d": 2}}]),
            ("--model=a:A --set=d=1 --model a:A", [{"set": {"d": 1}}, {}]),
            ("--model a:A --set d=1 --set e=2 --model b:B --set d=3", [{"set": {"d": 1, "e": 2}}, {"set": {"d": 3}}]),
            ("--set d=1 --model a:A --set e=2", [{"set": {"d": 1, "e": 2}}]),
            (
                "--model a:A --train epochs=3 --train layers=last --model b:B --dpsgd clip=1 --set d=2",
                [{"train": {"epochs": 3, "layers": "last"}}, {"dpsgd": {"clip": 1}, "set": {"d": 2}}],
            ),
            ("--title --set --model a:A --set d=1 --model b:B", [{"set": {"d": 1}}, {}]),  # a title called --set
        ],
    )
    def test_parameters_go_to_the_model_before_them(self, leakbound, asked, typed, tables):
        leakbound(f"audit {typed}")
        ((plan, _),) = asked
        assert [model.model_dump(exclude_unset=True, exclude={"spec"}) for model in plan.model] == tables

    @pytest.mark.parametrize("flag", ["--set d=1", "--train epochs=3", "--train layers=last", "--dpsgd clip=1"])
    def test_parameters_before_several_models_are_refused(self, leakbound, flag):
        left = leakbound(f"audit {flag} --model a:A --model b:B")
        refused(left, f"{flag} comes before 2 --model; write it behind the one that it belongs to")

    @pytest.mark.parametrize("is_terminal", [True, False])
    def test_a_dry_run_fits_the_terminal(self, monkeypatch, capsys, is_terminal):
        monkeypatch.setattr(audits, "_dry_run", lambda *given: iter(["imports a:b", "word " * 40]))
        monkeypatch.setattr(audits, "width", lambda: 60)
        monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
        audits._emit_dry_run(AuditPlan(dataset="wine"), 1, False)
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "imports a:b"
        assert (max(map(len, lines)) <= 60) == is_terminal
        assert " ".join(lines).split().count("word") == 40

    def test_models_of_one_class_are_named_by_what_differs(self, leakbound):
        depths = [f"{TREE} --set criterion=entropy,max_depth={depth}" for depth in (1, "none")]
        forest = "--model sklearn.ensemble:RandomForestClassifier --set n_estimators=3"
        command = (
            f"audit --data noise.csv --label label {' '.join(depths)} {forest} --n-models 4 --attack gap --n-jobs 1"
        )
        left = leakbound(command)
        assert left.code == 0, left.err
        names = [release.name for release in Report.from_json("leakbound-report/report.json").about.releases]
        trees = ["DecisionTreeClassifier max_depth=1", "DecisionTreeClassifier max_depth=none"]
        assert names == [*trees, "RandomForestClassifier"]
        left = leakbound(f"{command} --dry-run")
        assert all(name in left.out for name in trees)

    def test_several_models_and_parameters_of_the_last(self, leakbound, asked):
        leakbound("audit --model a:One --model b:Two --set depth=3,kind=gini --set seed=none")
        ((plan, _),) = asked
        assert [model.spec for model in plan.model] == ["a:One", "b:Two"]
        assert [model.set for model in plan.model] == [{}, {"depth": 3, "kind": "gini", "seed": None}]

    def test_init_writes_a_plan_that_can_be_audited(self, leakbound):
        left = leakbound("init")
        assert left == (0, "", "leakbound: wrote plan.toml; run it with: leakbound audit plan.toml\n")
        left = leakbound(f"audit plan.toml --dataset wine {TREE} --n-models 4 --attack gap --n-jobs 1")
        assert left.code == 0
        assert Report.from_json("leakbound-report/report.json").about.plan["dataset"] == "wine"
        assert leakbound("init").code == 1  # and does not write over it

    @pytest.mark.parametrize(
        ("typed", "command"),
        [
            ("audit --n-jobs 2 --n-models 8 --store S --out=O --json", "leakbound audit --n-models 8"),
            ("audit --data /home/ada/people.csv --label x", "leakbound audit --data people.csv --label x"),
            (
                "audit --data=../data/people.csv --label 'net pay'",
                "leakbound audit --data=people.csv --label 'net pay'",
            ),
            ("audit --claim epsilon=3,adjacency=add_remove", "leakbound audit --claim epsilon=3,adjacency=add_remove"),
        ],
    )
    def test_the_command_of_the_page_has_no_folders_and_nothing_of_the_run(self, leakbound, asked, typed, command):
        assert leakbound(typed).code == 0
        assert asked[0][1]["command"] == command


@pytest.mark.usefixtures("without_pages")
class TestStreams:
    def test_json_and_nothing_else(self, leakbound):
        left = leakbound(f"{NOISE} {TREE} --json")
        assert set(json.loads(left.out)) == {"schema", "sha256", "about", "findings", "curves", "records"}
        assert left.out == Path("leakbound-report/report.json").read_text(encoding="utf-8")

    @pytest.mark.slow
    def test_the_table_fits(self, leakbound):
        left = leakbound(f"{NOISE} {TREE} --attack all --claim eta=0.1 --fpr 0.1 --fpr 0.01")
        lines = left.out.splitlines()
        assert max(map(len, lines)) <= 100
        assert any(line.startswith(" LiRA") for line in lines)
        assert "\x1b" not in left.out

    def test_bare(self, leakbound):
        left = leakbound("")
        assert (left.code, left.err) == (0, "")
        assert "How much does what you release reveal" in left.out
        assert {"audit", "attacks", "compare", "init", "store"} <= set(left.out.split())

    def test_version(self, leakbound):
        assert re.fullmatch(r"leakbound \d+\.\d+\.\d+\n", leakbound("--version").out)

    def test_attacks(self, leakbound):
        left = leakbound("attacks")
        assert left.code == 0
        assert max(map(len, left.out.splitlines())) <= 100
        table, _, notes = left.out.partition("\n* by default")
        names = {line.split()[0]: line.split()[1] for line in table.splitlines()[1:] if not line.startswith(" ")}
        assert "population: points that are in no model" in notes
        assert set(names) == set(ATTACKS)
        assert {name for name, mark in names.items() if mark == "*"} == set(DEFAULT)
        rows = json.loads(leakbound("attacks --json").out)
        assert [row["attack"] for row in rows] == list(ATTACKS)
        assert all(row["source"] == ATTACKS[row["attack"]].source for row in rows)
        needs = {row["attack"]: (row["needs"], row["signals"]) for row in rows}
        assert needs["rmia"] == ("references, population", "loss or query_loss or score")
        assert needs["glir"] == ("nothing", "step_dot and step_norm")
        assert needs["lira"][0] == "references"

    @pytest.mark.slow
    def test_compare(self, leakbound):
        for seed in (0, 1):
            assert leakbound(f"{NOISE} {TREE} --seed {seed} --out {seed}").code == 0
        rows = json.loads(leakbound("compare 0/report.json 1/report.json --json").out)
        table = leakbound("compare 0/report.json 1/report.json").out.splitlines()
        assert {row["attack"] for row in rows} >= {"gap", "lira"}
        assert len(table) <= 25
        assert max(map(len, table)) <= 100
        full = leakbound("compare 0/report.json 1/report.json --full").out
        assert len(full.splitlines()) > len(rows) > len(table)
        assert "No difference between" in " ".join(table)
        page = leakbound("compare 0/report.json 1/report.json --out there/page.html")
        assert (page.out.splitlines(), page.err) == (table, f"leakbound: wrote {Path('there/page.html')}\n")
        assert "No difference between" in Path("there/page.html").read_text(encoding="utf-8")
        wrong = leakbound("compare 0/report.json 1/report.json --out there")
        assert (wrong.code, wrong.err) == (
            1, "leakbound: error: --out there: give the file of a page, as comparison.html\n",
        )  # fmt: skip
        same = json.loads(leakbound("compare 0/report.json 0/report.json --json").out)
        assert {row["difference"] for row in same} <= {0.0, None}

    def test_dry_run(self, leakbound):
        left = leakbound(f"{NOISE} {TREE} --dry-run --n-jobs 3")
        assert (left.code, left.err) == (0, "")
        imports, first, what, second = left.out.splitlines()
        assert imports == "imports sklearn.tree:DecisionTreeClassifier"
        assert first.startswith("noise.csv: 80 points, ")
        assert what == "one model is fitted now, to measure what it takes"
        assert re.match(r"DecisionTreeClassifier: 24 models, \S+ s for the first, 0.0 MB in the store for all$", second)
        assert len(json.loads(leakbound(f"{NOISE} {TREE} --dry-run --json").out)) == 4
        assert not Path("leakbound-report").exists()


class TestFolders:
    def test_what_is_written(self, leakbound):
        before = time.time()
        leakbound(f"{NOISE} {TREE} --out deep/O")
        out = Path("deep/O")
        assert sorted(path.name for path in out.iterdir()) == ["report.html", "report.json", "run.json", "store"]
        run = json.loads((out / "run.json").read_text())
        assert run["report"] == Report.from_json(out / "report.json").digest()
        assert run["command"][:2] == ["leakbound", "audit"]
        assert (
            before - 1
            <= time.mktime(time.strptime(run["started"], "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
            <= time.time()
        )
        assert 0 <= run["seconds"] < 120

    @pytest.mark.slow
    def test_records_are_left_out_on_request(self, leakbound):
        for flag in ("--records", "--no-records"):
            leakbound(f"{NOISE} {TREE} {flag} --out O{flag}")
        first, second = (Path(f"O{flag}/report.json").read_bytes() for flag in ("--records", "--no-records"))
        report = Report.from_json("O--records/report.json")
        assert first.decode() == report.to_json()
        assert second.decode() == report.to_json(records=False) != report.to_json()
        with_records, without = (Path(f"O{flag}/report.html").read_text() for flag in ("--records", "--no-records"))
        assert without == report.to_html(records=False)
        assert with_records == report.to_html(records=True)
        assert with_records != without

    @pytest.mark.slow
    def test_no_path_host_or_clock_in_the_report(self, leakbound, tmp_path):
        folder = tmp_path / "a folder of this machine"
        folder.mkdir()
        Path("noise.csv").rename(folder / "noise.csv")
        texts = []
        for out in ("one", "two"):
            command = NOISE.replace("noise.csv", f"'{folder / 'noise.csv'}'")
            assert leakbound(f"{command} {TREE} --out '{folder / out}'").code == 0
            texts.append([(folder / out / name).read_text() for name in ("report.json", "report.html")])
        assert texts[0] == texts[1]
        words = [tmp_path.name, folder.name, socket.gethostname(), time.strftime("%Y-%m-%d"), str(Path.home()) + "/"]
        assert [word for word in words for text in texts[0] if word in text] == []

    @pytest.mark.usefixtures("without_pages")
    def test_the_store_is_used_again_counted_and_cleared(self, leakbound):
        leakbound(f"{NOISE} {TREE} --store S --out one")
        made = {path.name: path.stat().st_mtime_ns for path in Path("S").iterdir()}
        leakbound(f"{NOISE} {TREE} --store S --out two")
        assert {path.name: path.stat().st_mtime_ns for path in Path("S").iterdir()} == made
        size = sum(path.stat().st_size for path in Path("S").iterdir())
        assert leakbound("store size S").out == f"6 chunks, {size / 1e6:,.1f} MB\n"
        assert leakbound("store clear S").out == "removed 6 files\n"
        assert leakbound("store size S").out == "0 chunks, 0.0 MB\n"
        one, two = (of_the_result(Path(out, "report.json").read_bytes()) for out in ("one", "two"))
        assert one == two

    def test_an_empty_store_is_the_default_one(self, leakbound, asked):
        leakbound("audit --store ''")
        assert asked[0][1]["store"] == "leakbound-report/store"


@pytest.mark.usefixtures("without_pages")
class TestOtherSources:
    @pytest.mark.slow
    def test_one_trained_model(self, leakbound):
        Path("trained.py").write_text(
            "import pandas as pd\nfrom sklearn.tree import DecisionTreeClassifier\n"
            "frame = pd.read_csv('in.csv')\n"
            "answer = DecisionTreeClassifier(random_state=0).fit(frame[['a', 'b']], frame['label']).predict_proba\n"
        )
        frame = pd.read_csv("noise.csv")
        frame[::2].to_csv("in.csv", index=False)
        frame[1::2].to_csv("out.csv", index=False)
        sides = "--predict trained:answer --members in.csv --others out.csv --label label --n-jobs 1"
        assert leakbound(f"audit model {sides}").code == 0
        alone = Report.from_json("leakbound-report/report.json")
        assert leakbound(f"audit model {sides} {TREE} --n-models 8").code == 0
        compared = Report.from_json("leakbound-report/report.json")
        assert [report.about.releases[0].references for report in (alone, compared)] == [0, 8]
        assert [report.about.releases[0].name for report in (alone, compared)] == ["trained:answer"] * 2
        gap = next(each.value for each in alone.findings if (each.attack, each.quantity) == ("gap", "advantage"))
        assert gap is not None
        assert gap > 0.3  # the tree knows its own data by heart, and half of the others by chance

    @pytest.mark.slow
    def test_how_csv_is_written_is_said_once_for_all_files(self, leakbound):
        flags = "--separator : --decimal ,"
        rng = np.random.default_rng(0)
        Path("trained.py").write_text(
            "import numpy as np\n"
            "def answer(x):\n"
            "    p = 1 / (1 + np.exp(-np.asarray(x, dtype=float)[:, 0]))\n"
            "    return np.stack([1 - p, p], axis=1)\n"
        )
        frame = pd.read_csv("noise.csv")
        p = rng.random(len(frame)).round(3)
        member = np.arange(len(frame)) % 2
        tables = {
            "all": frame,
            "in": frame[::2],
            "out": frame[1::2],
            "scores": pd.DataFrame({"member": member, "score": p}),
            "answers": pd.DataFrame({"member": member, "label": member, "p_0": p, "p_1": (1 - p).round(3)}),
        }
        for name, table in tables.items():
            table.to_csv(f"{name}.csv", index=False, sep=":", decimal=",")
        commands = [
            f"audit --data all.csv --label label {TREE} --n-models 4 --attack loss --n-jobs 1",
            "audit model --predict trained:answer --members in.csv --others out.csv --label label",
            "audit scores scores.csv",
            "audit model --probabilities answers.csv",
            "bound regression --data all.csv --drop label",
            "calibrate --data all.csv --drop label --promise drawn,games=0 --eta 0.1",
            "protect --data all.csv --drop label --promise drawn,games=0 --eta 0.1",
        ]
        for command in commands:
            assert "name it as separator (--separator)" in leakbound(command).err, command
            left = leakbound(f"{command} {flags}")
            assert left.code == 0, (command, left.err)

    def test_signals_from_elsewhere(self, leakbound):
        rng = np.random.default_rng(0)
        member = rng.random((16, 60)) < 0.5
        np.savez("signals.npz", member=member, loss=rng.exponential(np.where(member, 0.2, 1.0)))
        left = leakbound("audit signals signals.npz --claim epsilon=0,adjacency=replace_one")
        assert left.code == 2
        assert Report.from_json("leakbound-report/report.json").about.releases[0].targets == 16

    @pytest.mark.slow
    def test_a_folder_of_signals(self, leakbound):
        rng = np.random.default_rng(0)
        member = rng.random((1200, 4)) < 0.5
        with ls.write_blocks("signals", n_models=4) as write:
            write(member, {"loss": rng.exponential(np.where(member, 0.2, 1.0))})
        left = leakbound("audit signals signals --attack loss --out out")
        assert left.code == 0, left.err
        report = Report.from_json("out/report.json")
        n_records = report.about.releases[0].target_points
        assert len(report.record_table["record"]) == 1000 < n_records
        assert len(pd.read_parquet("out/report-records.parquet")) == n_records
        for flag in ("--no-records", "--publish"):  # over the files of the audit before
            assert leakbound(f"audit signals signals --attack loss {flag} --out out").code == 0
            assert not Path("out/report-records.parquet").exists()
            assert leakbound("audit signals signals --attack loss --out out").code == 0
            assert Path("out/report-records.parquet").exists()
        assert leakbound("audit signals signals --attack loss --claim eta=0.4 --out claimed").code in (0, 2)

    def test_all_records_of_a_file_of_signals_go_to_a_table(self, leakbound):
        rng = np.random.default_rng(0)
        member = rng.random((4, 1300)) < 0.5
        np.savez("signals.npz", member=member, loss=rng.exponential(np.where(member, 0.2, 1.0)))
        assert leakbound("audit signals signals.npz --attack loss --out out").code == 0
        report, table = Report.from_json("out/report.json"), pd.read_parquet("out/report-records.parquet")
        assert len(table) == report.about.releases[0].target_points > 1000 == len(report.record_table["record"])
        assert table["won"].value_counts().to_dict() == {
            n_won: n for n_won, n in enumerate(report.about.releases[0].games.won) if n
        }


class TestTerminal:
    """The command as a process of its own, so that its streams are what they are for users."""

    words = (*shlex.split("audit --dataset wine --n-models 8 --attack gap --n-jobs 1"), *TREE.split())

    def run(self, folder: Path, **environment: str) -> tuple[str, str]:
        """Standard output through a pipe, standard error on a terminal."""
        ours, theirs = pty.openpty()
        done = subprocess.run(
            [sys.executable, "-m", "leakbound", *self.words],
            cwd=folder, stdout=subprocess.PIPE, stderr=theirs, env=os.environ | environment, text=True, check=True,
        )  # fmt: skip
        os.close(theirs)
        said = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            said += part
        os.close(ours)
        return done.stdout, said.decode()

    @pytest.mark.slow
    def test_progress_is_drawn_on_a_terminal_and_leaves_it(self, tmp_path):
        out, said = self.run(tmp_path, TERM="xterm-256color", COLUMNS="100")
        assert "models of DecisionTreeClassifier" in said
        assert "8/8" in said
        assert said.rstrip().endswith("leakbound-report/report.html")
        assert "models of" not in out
        assert "\x1b" not in out
        assert "\x1b[3" in said

    @pytest.mark.nightly
    def test_no_color(self, tmp_path):
        _, said = self.run(tmp_path, TERM="xterm-256color", COLUMNS="100", NO_COLOR="1")
        assert "models of DecisionTreeClassifier" in said
        assert re.findall(r"\x1b\[(?:[\d;]*;)?(?:3[0-7]|38;|9[0-7])[\d;]*m", said) == []

    def test_progress_is_silent_elsewhere_even_if_colours_are_forced(self, leakbound, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        left = leakbound(shlex.join(self.words))
        assert left.err == "leakbound: wrote leakbound-report/report.json and leakbound-report/report.html\n"

    @pytest.mark.nightly
    def test_so_it_is_in_a_process_of_its_own(self, tmp_path):
        done = subprocess.run(
            [sys.executable, "-m", "leakbound", *self.words],
            cwd=tmp_path, capture_output=True, text=True, check=True, env=os.environ | {"FORCE_COLOR": "1"},
        )  # fmt: skip
        assert done.stderr == "leakbound: wrote leakbound-report/report.json and leakbound-report/report.html\n"
