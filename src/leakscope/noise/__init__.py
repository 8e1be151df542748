"""Noise that hides membership: families, couplings that turn noise into a promise, and the least scale for it."""

from leakscope.core.information import eta_of_information
from leakscope.noise.ball import BallNoise
from leakscope.noise.baselines import (
    Baseline,
    dp_baselines,
    dp_gaussian_scale,
    dp_laplace_scale,
    information_baselines,
)
from leakscope.noise.calibration import calibrate, pairs_needed
from leakscope.noise.choice import most_promising
from leakscope.noise.couplings import central_moment, complement, disjoint, independent, moment, swap
from leakscope.noise.discrete_gaussian import dp_discrete_scale
from leakscope.noise.exponential import LaplaceNoise, NormNoise
from leakscope.noise.gaussian import GaussianNoise
from leakscope.noise.information import information_of_eta, noise_of_information
from leakscope.noise.izzo_noise import izzo
from leakscope.noise.left_out import LeftOut, calibrate_left_out, least_left_out_noise
from leakscope.noise.left_out_joint import joint_advantage, largest_distance, largest_reserve
from leakscope.noise.left_out_tradeoff import left_out_curve
from leakscope.noise.linear import average_linear, swap_linear
from leakscope.noise.minimax import worst_case_covariance
from leakscope.noise.mixture import MixtureSwap
from leakscope.noise.norms import Lp, Mahalanobis
from leakscope.noise.pairs import AverageSwap, SampledCoupling, SampledDisjoint, SampledSwap
from leakscope.noise.shape import best_covariance
from leakscope.noise.shifts import Shifts, eta_bound, pmp_delta, worst_eta

__all__ = [
    "AverageSwap",
    "BallNoise",
    "Baseline",
    "GaussianNoise",
    "LaplaceNoise",
    "LeftOut",
    "Lp",
    "Mahalanobis",
    "MixtureSwap",
    "NormNoise",
    "SampledCoupling",
    "SampledDisjoint",
    "SampledSwap",
    "Shifts",
    "average_linear",
    "best_covariance",
    "calibrate",
    "calibrate_left_out",
    "central_moment",
    "complement",
    "disjoint",
    "dp_baselines",
    "dp_discrete_scale",
    "dp_gaussian_scale",
    "dp_laplace_scale",
    "eta_bound",
    "eta_of_information",
    "independent",
    "information_baselines",
    "information_of_eta",
    "izzo",
    "joint_advantage",
    "largest_distance",
    "largest_reserve",
    "least_left_out_noise",
    "left_out_curve",
    "moment",
    "most_promising",
    "noise_of_information",
    "pairs_needed",
    "pmp_delta",
    "swap",
    "swap_linear",
    "worst_case_covariance",
    "worst_eta",
]
