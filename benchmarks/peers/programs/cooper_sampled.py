"""Cooper (PyTorch): Lagrangian steps on sampled pairs and sampled constraints.

Cooper ships no sampler: constraints are drawn evenly, as its documentation of indexed multipliers
suggests.
"""

from __future__ import annotations

import cooper
import numpy as np
import torch
from exchange import Run


class Ranking(cooper.ConstrainedMinimizationProblem):
    """Mean hinge loss of pairs under w[lower] <= w[upper]."""

    def __init__(self, arrays: dict[str, np.ndarray], formulation: str, penalty: float) -> None:
        super().__init__()
        self.indices, self.values = (
            torch.from_numpy(arrays["indices"]).long(),
            torch.from_numpy(arrays["values"]).float(),
        )
        self.lower, self.upper = (
            torch.from_numpy(arrays["lower"]).long(),
            torch.from_numpy(arrays["upper"]).long(),
        )
        count = self.lower.numel()
        penalties = cooper.penalty_coefficients.IndexedPenaltyCoefficient(
            torch.full((count,), float(penalty))
        )
        self.rules = cooper.Constraint(
            cooper.ConstraintType.INEQUALITY,
            getattr(cooper.formulations, formulation),
            cooper.multipliers.IndexedMultiplier(count),
            penalties if formulation == "AugmentedLagrangian" else None,
        )

    def compute_cmp_state(
        self, w: torch.Tensor, pairs: torch.Tensor, chosen: torch.Tensor
    ) -> cooper.CMPState:
        scores = (self.values[pairs] * w[self.indices[pairs]]).sum(dim=1)
        violation = w[self.lower[chosen]] - w[self.upper[chosen]]
        state = cooper.ConstraintState(violation=violation, constraint_features=chosen)
        return cooper.CMPState(torch.relu(1.0 - scores).mean(), {self.rules: state})


def main() -> None:
    run = Run()
    torch.set_num_threads(1)  # as ours; on tensors this small a second one only waits
    torch.manual_seed(0)
    arrays, chosen = (
        {name: run.problem[name] for name in ("indices", "values", "lower", "upper")},
        run.settings,
    )
    problem = Ranking(arrays, chosen["formulation"], chosen["penalty"])
    w = torch.nn.Parameter(torch.zeros(int(run.problem["dimension"])))
    primal = getattr(torch.optim, chosen["optimizer"])([w], lr=chosen["step"])
    dual = torch.optim.SGD(problem.dual_parameters(), lr=chosen["dual_step"], maximize=True)
    optimizer = cooper.optim.SimultaneousOptimizer(problem, primal, dual)
    pairs, count, bound = (
        problem.values.shape[0],
        problem.lower.numel(),
        float(run.problem["bound"]),
    )
    run.start()
    while run.goes_on(lambda: w.detach().numpy().copy()):
        primal.param_groups[0]["lr"] = run.step()
        drawn = {
            "pairs": torch.randint(pairs, (chosen["batch"],)),
            "chosen": torch.randint(count, (chosen["constraints"],)),
        }
        optimizer.roll(compute_cmp_state_kwargs={"w": w, **drawn})
        with torch.no_grad():
            w.clamp_(-bound, bound)
    run.finish(version=cooper.__version__, threads=torch.get_num_threads())


if __name__ == "__main__":
    main()
