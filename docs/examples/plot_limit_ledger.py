"""
How much of a budget is used after each release
===============================================

Four statistics of the same people, one after another. What they tell together grows more slowly than the sum of their
own limits; the dashed line is the budget, fixed before the first release.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from matplotlib import pyplot as plt

import leakbound as ls
from leakbound.protection.ledger.budget import BudgetLedger

names = ["mean", "quantiles", "second_moment", "sum"]
wages = np.random.default_rng(0).lognormal(3.2, 0.5, (1000, 1))
with TemporaryDirectory() as folder:
    ledger, spent = Path(folder) / "wages.ledger", []
    for name in names:
        first = {} if spent else {"budget": 0.06}
        ls.protect(name, wages, eta=0.02, promise=ls.File(games=0), ledger=ledger, **first)
        spent.append(100 * BudgetLedger.open(ledger, "leave-one-out").spent())
plt.step(names, spent, "o-", where="mid", label="all releases so far")
plt.axhline(6, color="black", linestyle="dashed", label="budget")
plt.ylabel("accuracy above guessing, percentage points")
plt.legend()
