"""Rules and learners that a study gets beside its own."""

from __future__ import annotations

import pytest

from schedlab.config.schema import NoSettings
from schedlab.doors import Door, with_doors
from schedlab.studies.hetero.study import STUDY

FAST = Door("toy.rules:fast", kind="oracle", settings="schedlab.config.schema:NoSettings", term="oracle: is fast")


def test_a_door_has_its_place_in_every_table_of_the_study():
    more = with_doors(STUDY, rules={"fast": FAST, "plain": Door("toy.rules:plain")}, learners={"slow": Door("a:b")})
    assert more.rules == {**STUDY.rules, "fast": "toy.rules:fast", "plain": "toy.rules:plain"}
    assert more.learners == {**STUDY.learners, "slow": "a:b"}
    assert more.kinds == {**STUDY.kinds, "fast": "oracle"} and more.terms == {**STUDY.terms, "fast": "oracle: is fast"}
    assert more.rule_settings == {**STUDY.rule_settings, "fast": NoSettings}
    assert more.learner_settings == STUDY.learner_settings


@pytest.mark.parametrize("more", [{"rules": {"easy": FAST}}, {"learners": {"trials": FAST}}])
def test_a_name_that_is_taken_is_refused(more):
    with pytest.raises(ValueError, match="already"):
        with_doors(STUDY, **more)
