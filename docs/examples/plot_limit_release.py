"""
A released mean: what attackers reach, and the ceiling
======================================================

Half of 1,000 people are drawn in secret, and their mean wage is released with the noise that keeps every attacker at
60 of 100 cases. The owner's page draws the attacks that were tried on simulated releases.
"""

import numpy as np

import leakbound as ls

wages = np.random.default_rng(0).lognormal(3.2, 0.5, (1000, 1))
released = ls.protect("mean", wages, eta=0.1, promise="drawn", page=ls.Page(unit="person"))
released.owner.plot()
