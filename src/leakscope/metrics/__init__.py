"""What scores are worth to an attacker: rates and areas, accuracy, correct guesses per record, epsilon."""

from leakscope.metrics.best_guess import accuracy, advantage
from leakscope.metrics.curve import auc, average_precision, roc
from leakscope.metrics.epsilon import claim_p_value, epsilon_lower, evidence, family_lower
from leakscope.metrics.paired import difference
from leakscope.metrics.rates import fpr_at_tpr, ppv, precision_at_recall, roc_band, tpr_at_fpr
from leakscope.metrics.records import RecordGames, games_won, models_needed
from leakscope.metrics.thresholds import accuracy_at, hindsight_thresholds

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
