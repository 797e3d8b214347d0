"""How strongly to smooth each term, on the loss that is trained: no data are held out.

Roughness is a sum of squares ||D w||^2 / 2; its rows D are differences of neighbouring parameters,
and every term has a strength of its own (`penalties`). Strengths maximise the marginal likelihood
(`marginal_likelihood`); where labels are determined, less is tried by cross-validation
(`loosening`). Models too large to factor have two strengths (`large_models`).
"""

from lighttouch.estimators.smoothing.costs import PULL
from lighttouch.estimators.smoothing.large_models import SampledErrors, choose, most_judged
from lighttouch.estimators.smoothing.left_out import fit_without
from lighttouch.estimators.smoothing.loosening import determined, loosened
from lighttouch.estimators.smoothing.marginal_likelihood import Smoothed, smooth
from lighttouch.estimators.smoothing.penalties import (
    Key,
    Pair,
    Roughness,
    read_strengths,
    roughness_of,
)
from lighttouch.estimators.smoothing.problem import Examples

__all__ = [
    "PULL",
    "Examples",
    "Key",
    "Pair",
    "Roughness",
    "SampledErrors",
    "Smoothed",
    "choose",
    "determined",
    "fit_without",
    "loosened",
    "most_judged",
    "read_strengths",
    "roughness_of",
    "smooth",
]
