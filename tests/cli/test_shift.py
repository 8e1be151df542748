"""Members and others of two sources, on the command line: exit code 3, and --accept-shift."""

from __future__ import annotations

import numpy as np
import pytest

from leakbound.auditing import baseline
from tests.cli.calling import caller

N = 400
GATE = "--policy auc=0.99"


@pytest.fixture
def leakbound(tmp_path, monkeypatch, capfd, as_users_run_it, without_pages):
    """A command beside signals of two models that know nothing, records of one source, and with a row number."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(baseline, "PLANTED", 0)  # the smallest shift takes two thirds of the time
    rng = np.random.default_rng(0)
    member = np.tile(np.arange(N) < N // 2, (2, 1))
    np.savez("signals.npz", member=member, is_target_point=np.ones(N, dtype=bool), loss=rng.exponential(size=(2, N)))
    rows = rng.normal(size=(N, 2))
    for name, extra in (("same", rng.normal(size=N)), ("numbered", np.arange(N))):
        table = np.column_stack([rows, extra])
        np.savetxt(f"{name}.csv", table, delimiter=",", header="a,b,c", comments="")
    return caller(monkeypatch, capfd)


@pytest.mark.slow
def test_signals_with_their_records(leakbound):
    plain = f"audit signals signals.npz --attack loss --n-jobs 1 --full {GATE}"
    said = leakbound(plain)
    assert said.code == 0
    assert "was not tested: the records were not given" in " ".join(said.out.split())
    said = leakbound(f"{plain} --data same.csv --label c")
    assert said.code == 0
    assert "does not tell members from others" in " ".join(said.out.split())
    assert leakbound(f"{plain} --data numbered.csv").code == 3
    said = leakbound(f"{plain} --data numbered.csv --label c")
    assert said.code == 3
    assert "the policy says ask" in said.err
    said = leakbound(f"{plain} --data numbered.csv --label c --accept-shift")
    assert said.code == 0
    assert "This was accepted" in " ".join(said.out.split())


@pytest.mark.slow
def test_scores_with_their_records(leakbound):
    rng = np.random.default_rng(1)
    member = np.arange(N) < N // 2
    table = np.column_stack([member, rng.normal(size=N)])
    np.savetxt("scores.csv", table, delimiter=",", header="member,score", comments="")
    plain = f"audit scores scores.csv --n-jobs 1 --full {GATE}"
    said = leakbound(plain)
    assert said.code == 0
    assert "was not tested: the records were not given" in " ".join(said.out.split())
    said = leakbound(f"{plain} --data same.csv")
    assert said.code == 0
    assert "does not tell members from others" in " ".join(said.out.split())
    assert leakbound(f"{plain} --data numbered.csv").code == 3
    assert leakbound(f"{plain} --data numbered.csv --drop c").code == 0
    assert leakbound(f"{plain} --data numbered.csv --label c").code == 3  # the label is compared, too
    assert leakbound(f"{plain} --data numbered.csv --accept-shift").code == 0


def test_bad_words(leakbound):
    said = leakbound("audit --dataset wine --accept-shift")
    assert (said.code, said.out) == (1, "")
    assert "No such option: --accept-shift" in said.err
    np.savetxt("short.csv", np.zeros((5, 2)), delimiter=",", header="a,b", comments="")
    said = leakbound("audit signals signals.npz --data short.csv --label b")
    assert (said.code, said.out) == (1, "")
    assert "--data has 5 records, the signals have 400 points" in said.err
    np.savetxt("scores.csv", [[1, 1], [0, 0], [1, 1], [0, 0]], delimiter=",", header="score,member", comments="")
    said = leakbound("audit scores scores.csv --data short.csv --label b")
    assert (said.code, said.out) == (1, "")
    assert "--data has 5 records, the scores have 4 points; they must agree" in said.err
    for flag in ("label", "drop"):
        for kind, file in (("scores", "scores.csv"), ("signals", "signals.npz")):
            said = leakbound(f"audit {kind} {file} --{flag} b")
            assert (said.code, said.out) == (1, "")
            assert f"--{flag} is of the records behind the {kind}; name their file by --data" in said.err
