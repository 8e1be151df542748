"""
The ceiling of Gaussian differential privacy
============================================

``report.plot()`` draws a bound on the axes on which an audit draws attacks. No attacker is in the hatched region.
"""

import leakbound as ls

report = ls.bound("gaussian", mu=1.0)
report.plot()
