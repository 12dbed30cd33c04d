"""What a node remembers of users who went, and of what was refused to them."""

from __future__ import annotations

from realtime.node.recent import MAX_LENGTH, MAX_REFUSALS, MAX_USERS, Recent


def test_last_end_and_refusals_of_a_user_are_remembered() -> None:
    recent = Recent("N1", "one")

    recent.ended("17", 3012, "force disconnect")
    recent.ended("17", 3005, "expired")
    recent.refused("17", "publish", "news", 103, "permission denied")

    answer = recent.answer("17")
    assert (answer.node, answer.name) == ("N1", "one")
    assert (answer.code, answer.reason) == (3005, "expired")
    [refusal] = answer.refusals
    assert (refusal.command, refusal.channel, refusal.code) == ("publish", "news", 103)
    assert answer.ended_at > 0


def test_unknown_user_has_no_past() -> None:
    answer = Recent("N1", "one").answer("17")

    assert (answer.ended_at, answer.code, answer.refusals) == (0, 0, [])


def test_newest_refusals_are_kept() -> None:
    recent = Recent("N1", "one")

    for number in range(MAX_REFUSALS + 2):
        recent.refused("17", "publish", f"c{number}", 103, "permission denied")

    channels = [refusal.channel for refusal in recent.answer("17").refusals]
    assert channels == [f"c{number}" for number in range(2, MAX_REFUSALS + 2)]


def test_user_of_whom_nothing_was_written_for_longest_is_forgotten() -> None:
    recent = Recent("N1", "one")
    recent.ended("first", 3005, "expired")
    recent.ended("second", 3005, "expired")
    recent.refused("first", "publish", "news", 103, "permission denied")

    for number in range(MAX_USERS - 1):
        recent.ended(f"u{number}", 0, "")

    assert recent.answer("second").ended_at == 0
    assert recent.answer("first").code == 3005


def test_anonymous_clients_and_long_names_are_not_remembered() -> None:
    recent = Recent("N1", "one")

    recent.ended("", 3005, "expired")
    recent.ended("u" * (MAX_LENGTH + 1), 3005, "expired")
    recent.refused("17", "publish", "c" * 1000, 103, "m" * 1000)

    assert recent.answer("").ended_at == 0
    assert recent.answer("u" * (MAX_LENGTH + 1)).ended_at == 0
    [refusal] = recent.answer("17").refusals
    assert (len(refusal.channel), len(refusal.message)) == (MAX_LENGTH, MAX_LENGTH)
