"""
Least total error: which design?
================================

The error of a mean wage, sampling included, under each design that keeps every attacker at 55 of 100 cases. Grey:
methods of two papers, for comparison.
"""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

import leakbound as ls
from leakbound.protection import design_table

people = pd.DataFrame({"wage": np.minimum(80, np.random.default_rng(0).lognormal(3.2, 0.5, 1000))})
table = design_table("mean", people, eta=0.05, compare=ls.Anyone(ranges={"wage": (0, 80)}))
papers = {"pac_least_noise": "half,\nPAC privacy", "izzo_gamma": "half,\nIzzo et al."}
rows = [row for row in reversed(table.facts.designs) if row.errors is not None]
errors = [row.errors[0] / table.facts.standard_errors[0] for row in rows]
names = [papers.get(row.method, row.name) for row in rows]
plt.barh(names, errors, color=["0.7" if row.method else "C0" for row in rows])
plt.axvline(1, color="black", linestyle="dashed", label="the mean of all, without noise")
plt.xscale("log")
plt.xlabel("total error, in standard errors of the mean of all")
plt.legend()
plt.tight_layout()
