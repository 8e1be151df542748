"""Noise that hides membership: families, couplings that turn noise into a promise, and the least scale for it."""

from leakscope.noise.ball import BallNoise
from leakscope.noise.calibration import calibrate
from leakscope.noise.couplings import central_moment, complement, disjoint, independent, moment, swap, swap_linear
from leakscope.noise.exponential import LaplaceNoise, NormNoise
from leakscope.noise.gaussian import GaussianNoise
from leakscope.noise.izzo import izzo
from leakscope.noise.norms import Lp, Mahalanobis
from leakscope.noise.shape import best_covariance, best_covariance_of_lengths
from leakscope.noise.shifts import Shifts, eta_bound, pmp_delta

__all__ = [
    "BallNoise",
    "GaussianNoise",
    "LaplaceNoise",
    "Lp",
    "Mahalanobis",
    "NormNoise",
    "Shifts",
    "best_covariance",
    "best_covariance_of_lengths",
    "calibrate",
    "central_moment",
    "complement",
    "disjoint",
    "eta_bound",
    "independent",
    "izzo",
    "moment",
    "pmp_delta",
    "swap",
    "swap_linear",
]
