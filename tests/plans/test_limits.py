"""Limits: one line for what is no limit."""

from __future__ import annotations

import pytest

from leakbound.plans.limits import Limit


class TestLimits:
    @pytest.mark.parametrize(
        ("text", "gate"),
        [
            ("tpr@0.01=0.05", Limit(quantity="tpr", fpr=0.01, limit=0.05)),
            ("auc=0.6", Limit(quantity="auc", limit=0.6)),
            ("exposed=3", Limit(quantity="exposed", limit=3)),
            ("tpr_these_models@1e-3=0.9", Limit(quantity="tpr_these_models", fpr=0.001, limit=0.9)),
        ],
    )
    def test_from_the_command_line(self, text, gate):
        assert Limit.parse(text) == gate

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "acu=0.6",
                "limits takes QUANTITY[@AT]=VALUE, as tpr@0.01=0.05, got 'acu=0.6' (did you mean 'auc'?); "
                "quantities: accuracy, advantage, auc, tpr, tpr_these_models",
            ),
            (
                "auc",
                "limits takes QUANTITY[@AT]=VALUE, as tpr@0.01=0.05, got 'auc' (did you mean 'auc'?); "
                "quantities: accuracy, advantage, auc, tpr, tpr_these_models",
            ),
            ("tpr=0.6", "tpr needs a false-alarm rate, as tpr@0.01=0.05; got 'tpr=0.6'"),
            ("auc@0.1=0.6", "auc is not taken at a rate; write auc=VALUE, got 'auc@0.1=0.6'"),
            ("auc=high", "limits takes numbers, as tpr@0.01=0.05, got 'auc=high': "),
            ("auc=", "limits takes numbers, as tpr@0.01=0.05, got 'auc=': "),
            ("tpr@x=0.1", "limits takes numbers, as tpr@0.01=0.05, got 'tpr@x=0.1': "),
            (
                "auc=nan",
                "limits takes numbers, as tpr@0.01=0.05, got 'auc=nan': the limit must be finite, got nan",
            ),
            (
                "tpr@5=0.1",
                "limits tpr@5=0.1: fpr is a fraction: 5 is out of range; did you mean 0.05? It must be > 0 and < 1",
            ),
            (
                "accuracy=60",
                "limits accuracy=60: accuracy is a fraction: 60 is out of range; did you mean 0.6? It must be",
            ),
            ("auc=70", "limits auc=70: auc is a fraction: 70 is out of range; did you mean 0.7?"),
            ("tpr@0.01=-0.1", "limits tpr@0.01=-0.1: tpr must be >= 0 and <= 1, got -0.1"),
            (
                "accuracy=1",
                "limits accuracy=1: a limit of 1 can never be exceeded, for accuracy is at most 1; give",
            ),
        ],
    )
    def test_the_line_that_a_bad_gate_gets(self, text, message):
        """A gate that could never fail (nan) is no gate."""
        with pytest.raises(ValueError) as caught:
            Limit.parse(text)
        assert str(caught.value).startswith(message)
