"""What scores are worth to an attacker: rates and areas, accuracy, games won per record, epsilon."""

from leakscope.metrics.best_guess import accuracy, advantage
from leakscope.metrics.curve import auc, average_precision, roc
from leakscope.metrics.epsilon import claim_p_value, epsilon_lower, evidence, family_lower
from leakscope.metrics.rates import ppv, roc_band, tpr_at_fpr
from leakscope.metrics.records import RecordGames, games_won, models_needed

__all__ = [
    "RecordGames",
    "accuracy",
    "advantage",
    "auc",
    "average_precision",
    "claim_p_value",
    "epsilon_lower",
    "evidence",
    "family_lower",
    "games_won",
    "models_needed",
    "ppv",
    "roc",
    "roc_band",
    "tpr_at_fpr",
]
