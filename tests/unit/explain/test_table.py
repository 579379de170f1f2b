"""The table of messages: distinct names, rules that exist, sentences a person can read."""

from __future__ import annotations

import re

import pytest

from tests.unit.explain.rule_names import NAMES
from unstuck.explain import MESSAGES, message_named, messages_of
from unstuck.explain.message import Message
from unstuck.rules import RULES

each = pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)


def test_names_are_distinct_and_found() -> None:
    names = [message.name for message in MESSAGES]
    assert len(set(names)) == len(names)
    assert all(message_named(name) is not None for name in names)
    assert message_named("no-such-message") is None


def test_no_message_has_the_name_of_a_rule() -> None:
    assert not NAMES & {message.name for message in MESSAGES}


@each
def test_it_names_rules_that_exist_each_with_what_tells_it(message: Message) -> None:
    assert message.can_be
    assert {rule for rule, _ in message.can_be} <= NAMES | {rule.name for rule in RULES}
    assert len(dict(message.can_be)) == len(message.can_be)
    assert all(tell for _, tell in message.can_be)
    assert all(message in messages_of(rule) for rule, _ in message.can_be)


@each
def test_it_says_two_sentences_and_what_to_run(message: Message) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", message.name)
    assert len(re.findall(r"[.;:](?= |$)", message.means)) in (2, 3, 4)
    assert message.means.endswith(".")
    assert len(message.means) < 250
    assert any("unstuck run" in command for command in message.run) or message.name == "no-such-device"


@each
def test_patterns_are_in_lower_case_as_the_text_will_be(message: Message) -> None:
    for pattern in message.patterns:
        bare = re.sub(r"\\.", "", pattern.pattern)
        assert bare == bare.lower()


def test_one_last_resort_at_the_end() -> None:
    assert [message.name for message in MESSAGES if message.last_resort] == [MESSAGES[-1].name]
