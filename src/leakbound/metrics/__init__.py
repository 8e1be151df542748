"""What scores are worth to an attacker: rates and areas, accuracy, correct guesses per record, epsilon."""

from leakbound.metrics.best_guess import accuracy, advantage
from leakbound.metrics.curve import auc, average_precision, roc
from leakbound.metrics.epsilon import claim_p_value, epsilon_lower, evidence, family_lower
from leakbound.metrics.paired import difference
from leakbound.metrics.rates import fpr_at_tpr, ppv, precision_at_recall, roc_band, tpr_at_fpr
from leakbound.metrics.records import RecordGames, games_won, models_needed
from leakbound.metrics.thresholds import accuracy_at, hindsight_thresholds

__all__ = [
    "RecordGames",
    "accuracy",
    "accuracy_at",
    "advantage",
    "auc",
    "average_precision",
    "claim_p_value",
    "difference",
    "epsilon_lower",
    "evidence",
    "family_lower",
    "fpr_at_tpr",
    "games_won",
    "hindsight_thresholds",
    "models_needed",
    "ppv",
    "precision_at_recall",
    "roc",
    "roc_band",
    "tpr_at_fpr",
]
