"""
One training run with canaries
==============================

Each canary, a record with a wrong label, is in the data by a fair coin. The coins that are guessed right prove a
lower bound of ε from a single model. Neither model has a finite ε, and more canaries prove more.
"""

from matplotlib import pyplot as plt
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

import leakbound as ls

X, y = load_digits(return_X_y=True)
numbers = (25, 50, 100, 200, 400)
for n_neighbors, style in ((3, "o-"), (9, "s--")):
    model = KNeighborsClassifier(n_neighbors)
    games = [ls.Canaries("mislabelled", n=number) for number in numbers]
    reports = [ls.audit(model, X, y, attacks=["loss"], game=game) for game in games]
    epsilons = [ls.metrics.epsilon_lower(report.scores("loss"), method="coins").value for report in reports]
    plt.plot(numbers, epsilons, style, label=f"{n_neighbors} nearest neighbours")
plt.xlabel("canaries in the model")
plt.ylabel("ε is at least (95 %)")
plt.legend()
