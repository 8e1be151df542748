"""
A table of counts, before and after its release
===============================================

The bars are the counts of the file, the dots what is published, with 95 % intervals of the noise. Small cells stay
hidden in the noise, large ones hardly change.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from matplotlib import pyplot as plt

import leakbound as ls

counts = {"care": 300, "trade": 220, "industry": 90, "mining": 8, "fishing": 3}
people = pd.DataFrame({"sector": [sector for sector, count in counts.items() for _ in range(count)]})
with TemporaryDirectory() as folder:
    table = ls.Table("sector", levels={"sector": list(counts)})
    released = ls.protect(table, people, eta=0.05, promise="anyone", ledger=Path(folder) / "people.ledger")
plt.bar(list(counts), list(counts.values()), color="0.8", label="in the file")
plt.errorbar(list(counts), released.value, yerr=1.96 * released.noise.scale, fmt="o", capsize=4, label="published")
plt.ylabel("people")
plt.legend()
