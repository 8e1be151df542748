"""The bar of a notebook: one output of the cell, removed at the end, and only where somebody waits."""

import sys
from functools import partial
from types import SimpleNamespace

import pytest

import leakbound as ls
from leakbound.runtime import notebook
from leakbound.runtime import progress as progress_room
from leakbound.runtime.progress import Work, progress


class Cell:
    """What a front end would show of one output."""

    def __init__(self):
        self.shown = []

    def display(self, html, display_id):
        assert display_id
        self.shown.append(html)
        return SimpleNamespace(update=self.shown.append)


def shell(name="ZMQInteractiveShell", **kernel):
    return type(name, (), {"kernel": SimpleNamespace(**kernel)})()


@pytest.fixture
def cell(monkeypatch):
    """A notebook that somebody is at, without a kernel."""
    made = Cell()
    ipython = SimpleNamespace(get_ipython=lambda: shell(_allow_stdin=True))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=made.display, HTML=str))
    return made


@pytest.mark.parametrize(
    ("made", "watched"),
    [
        (None, False),  # IPython is imported, and this is no shell of it
        (shell("TerminalInteractiveShell"), False),
        (shell(_allow_stdin=True), True),
        (shell(_allow_stdin=False), False),  # nbconvert, papermill
        (shell(), True),
    ],
)
def test_a_bar_is_for_a_notebook_that_somebody_is_at(monkeypatch, made, watched):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: made))
    assert notebook.is_watched() is watched


def test_without_ipython_there_is_no_notebook(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not notebook.is_watched()


@pytest.fixture
def clock(monkeypatch):
    """The clock of the cell, in seconds, which stands still unless it is moved."""
    now = SimpleNamespace(seconds=100.0)
    monkeypatch.setattr(notebook.time, "monotonic", lambda: now.seconds)
    monkeypatch.setattr(progress_room, "Work", partial(Work, clock=lambda: now.seconds))
    return now


def test_the_bar_estimates_the_rest_and_goes(cell, clock):
    with progress("models of <b>", 8) as advance:
        clock.seconds += 10
        advance(2, stored=True)  # from a store: no pace
        clock.seconds += 10
        advance(2)
    assert [html.partition("</progress> ")[2] for html in cell.shown] == [
        "0/8, 0:00</div>",
        "2/8, 0:10</div>",
        "4/8, 0:20, 0:20 left</div>",
        "",
    ]
    assert "models of &lt;b&gt;" in cell.shown[0]
    assert cell.shown[-1] == ""


def test_it_is_not_drawn_more_than_four_times_a_second(cell, clock):
    with progress("models", 100) as advance:
        for _ in range(100):
            clock.seconds += 0.01
            advance()
    # the first one, the removal, and at most one each quarter of a second
    assert 2 + 3 <= len(cell.shown) <= 2 + 4


def test_an_error_removes_it_too(cell):
    def fails():
        with progress("models", 3):
            raise KeyError("x")

    with pytest.raises(KeyError):
        fails()
    assert cell.shown[-1] == ""


def test_work_without_a_number_of_parts_shows_the_time(cell):
    with progress("attacks"):
        pass
    assert "attacks, 0:00" in cell.shown[0]


def test_work_within_other_work_is_shown_below_it(cell):
    with progress("experiments", 2), progress("models", 3):
        pass
    assert cell.shown[1].index("experiments") < cell.shown[1].index("models")
    assert "models" not in cell.shown[2]


def test_an_audit_shows_it_and_prints_nothing(cell, capsys):
    from sklearn.datasets import load_wine
    from sklearn.tree import DecisionTreeClassifier

    X, y = load_wine(return_X_y=True)
    report = ls.audit(DecisionTreeClassifier(), X, y, n_models=8, n_jobs=1, attacks=["loss"])
    assert any("models of DecisionTreeClassifier" in html for html in cell.shown)
    assert cell.shown[-1] == ""
    assert capsys.readouterr() == ("", "")
    assert "progress" not in report.to_json()


def test_elsewhere_nothing_is_drawn(cell, monkeypatch):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    with progress("models", 3) as advance:
        advance(1)
    assert cell.shown == []
