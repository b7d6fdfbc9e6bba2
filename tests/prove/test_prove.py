"""A short campaign: no violations under load, and planted bugs are found. The long ones are commands."""

import pytest

from tools.prove.mutants import MUTANTS, hunt

PLANTED = ["completion event not emitted", "result not stored", "a frame is lost"]


@pytest.mark.slow("long run")
def test_the_engine_is_sound_under_load_and_planted_bugs_are_noticed():
    caught = {catch.mutant and catch.mutant.name: catch for catch in hunt(2, PLANTED, clients=3)}
    assert caught.pop(None).evidence == ""
    assert {name for name, catch in caught.items() if catch.evidence} == set(PLANTED)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_planted_bug_changes_the_code_as_it_is(mutant):
    assert mutant.source() != mutant.path().read_text()
