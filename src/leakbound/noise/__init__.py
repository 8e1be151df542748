"""Noise that hides membership: families, couplings that turn noise into a promise, and the least scale for it."""

from leakbound.bounds.information import eta_of_information
from leakbound.noise.ball import BallNoise
from leakbound.noise.baselines import (
    dp_gaussian_scale,
    dp_laplace_scale,
)
from leakbound.noise.calibration import calibrate, pairs_needed
from leakbound.noise.choice import most_promising
from leakbound.noise.couplings import central_moment, complement, disjoint, independent, moment, swap
from leakbound.noise.discrete_gaussian import dp_discrete_scale
from leakbound.noise.exponential import LaplaceNoise, NormNoise
from leakbound.noise.gaussian import GaussianNoise
from leakbound.noise.information import information_of_eta, noise_of_information
from leakbound.noise.izzo_noise import izzo
from leakbound.noise.left_out import LeftOut, calibrate_left_out, least_left_out_noise
from leakbound.noise.left_out_joint import joint_advantage, largest_distance, largest_reserve
from leakbound.noise.left_out_tradeoff import left_out_curve
from leakbound.noise.linear import average_linear, swap_linear
from leakbound.noise.minimax import worst_case_covariance
from leakbound.noise.mixture import MixtureSwap
from leakbound.noise.norms import Lp, Mahalanobis
from leakbound.noise.pairs import AverageSwap, SampledCoupling, SampledDisjoint, SampledSwap
from leakbound.noise.shape import best_covariance
from leakbound.noise.shifts import Shifts, eta_bound, pmp_delta, worst_eta

__all__ = [
    "AverageSwap",
    "BallNoise",
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
    "dp_discrete_scale",
    "dp_gaussian_scale",
    "dp_laplace_scale",
    "eta_bound",
    "eta_of_information",
    "independent",
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
