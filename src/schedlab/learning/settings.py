"""Settings that learners have in common, without torch, so that a configuration can be checked without importing
torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any, TypeVar

from schedlab.config.contract import Phase, PolicySpec
from schedlab.config.errors import UserError
from schedlab.config.schema import Settings, setting, validate
from schedlab.config.settings import LONGEST, PhaseSettings


class ValidationSettings(Settings):
    """Validation during learning, which selects the parameters of the policy."""

    validate_every: int = setting(
        0,
        doc="steps between validations; the policy keeps the best parameters of the last phase. 0: no "
        "validation, the final parameters are kept",
        unit="steps",
        ge=0,
        le=LONGEST,
    )
    validation_units: int = setting(
        0, doc="number of validation units scored per scenario, evenly spaced; 0: all", ge=0, le=LONGEST
    )


def fixed_mistakes(fixed: Set[str], phases: Sequence[Phase | PhaseSettings]) -> Iterator[UserError]:
    """Yield a mistake for each value of a phase that would change the policy itself, with its key; a study's
    `check_policy` reports them before a run.
    """
    for number, phase in enumerate(phases):
        for key in sorted(phase.params.keys() & fixed):
            where, remedy = f"train_on.{number}.params.{key}", "set it for the whole policy, under learner"
            yield UserError(f"'{key}' cannot change between phases", where=where, remedy=remedy)


S = TypeVar("S", bound=Settings)


def phase_settings(
    kind: type[S], spec: PolicySpec, mistakes: Callable[[S, Sequence[Phase]], Iterator[UserError]]
) -> list[S]:
    """Return the values of each phase of a policy. Raises UserError for the first of `mistakes` in its phases."""

    def locate(path: tuple[Any, ...]) -> str:
        return f"{spec.name}.yaml: learner.{'.'.join(map(str, path))}"

    for error in mistakes(validate(kind, spec.params, locate), spec.train_on):
        raise UserError(error.what, where=f"{spec.name}.yaml: {error.where}", remedy=error.remedy)
    return [validate(kind, {**spec.params, **phase.params}, locate) for phase in spec.train_on]
