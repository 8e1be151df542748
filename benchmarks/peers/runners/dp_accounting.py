"""dp-accounting: epsilon of DP-SGD, add/remove."""

import dp_accounting
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

PACKAGES = ["dp-accounting"]


def epsilon(accountant, noise, sample_rate, steps, delta):
    event = dp_accounting.PoissonSampledDpEvent(sample_rate, dp_accounting.GaussianDpEvent(noise))
    return accountant().compose(event, steps).get_epsilon(delta)


def by_pld(timed, noise, sample_rate, steps, delta):
    return timed(epsilon, PLDAccountant, noise, sample_rate, steps, delta)


def by_rdp(timed, noise, sample_rate, steps, delta):
    return timed(epsilon, RdpAccountant, noise, sample_rate, steps, delta)


ROWS = [
    ("epsilon of DP-SGD", "PLDAccountant", by_pld, ""),
    ("epsilon of DP-SGD", "RdpAccountant", by_rdp, ""),
]
