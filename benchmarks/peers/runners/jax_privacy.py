"""jax-privacy: lower bounds of epsilon from scores, and epsilon of DP-SGD, add/remove."""

from jax_privacy.accounting import accountants, analysis
from jax_privacy.auditing import CanaryScoreAuditor, MultiSplit

PACKAGES = ["jax-privacy", "dp-accounting", "jax"]
SIGNIFICANCE = 0.05


def bound(method, **keywords):
    def measured(timed, members, others, delta):
        # With the auditor: it counts the scores when it is made.
        return timed(
            lambda: getattr(CanaryScoreAuditor(members, others), method)(
                significance=SIGNIFICANCE, delta=delta, **keywords
            )
        )

    return measured


def epsilon_of_dpsgd(timed, noise, sample_rate, steps, delta):
    accountant = analysis.DpsgdTrainingAccountant(dp_accountant_config=accountants.PldAccountantConfig())
    n_samples = 1_000_000
    parameters = analysis.DpParams(
        noise_multipliers=noise, num_samples=n_samples, delta=delta, batch_size=round(sample_rate * n_samples)
    )
    return timed(accountant.compute_epsilon, steps, parameters)


ROWS = [
    ("epsilon, one run", "epsilon_one_run", bound("epsilon_one_run"), ""),
    ("epsilon, one run", "epsilon_one_run_fdp", bound("epsilon_one_run_fdp"), "assumes a Gaussian mechanism"),
    ("epsilon, many runs", "epsilon_clopper_pearson", bound("epsilon_clopper_pearson"), ""),
    (
        "epsilon, many runs",
        "epsilon_clopper_pearson, two-sided",
        bound("epsilon_clopper_pearson", one_sided=False),
        "",
    ),
    (
        "epsilon, many runs",
        "epsilon_clopper_pearson, MultiSplit",
        bound("epsilon_clopper_pearson", threshold_strategy=MultiSplit(seed=0)),
        "",
    ),
    ("epsilon, many runs", "epsilon_from_gdp", bound("epsilon_from_gdp"), "assumes a Gaussian mechanism"),
    ("epsilon of DP-SGD", "DpsgdTrainingAccountant, PLD", epsilon_of_dpsgd, ""),
]
