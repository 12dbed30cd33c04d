"""What a node remembers of users who went, and of what was refused to them."""

from __future__ import annotations

from realtime.operators.user_log import MAX_LENGTH, MAX_REFUSALS, MAX_USERS, UserLog


def test_last_end_and_refusals_of_a_user_are_remembered() -> None:
    log = UserLog("N1", "one")
    log.closed("17", 3012, "force disconnect")
    log.closed("17", 3005, "expired")
    log.refused("17", "publish", "news", 103, "permission denied")
    answer = log.answer("17")
    assert (answer.node, answer.name) == ("N1", "one")
    assert (answer.code, answer.reason) == (3005, "expired")
    [refusal] = answer.refusals
    assert (refusal.command, refusal.channel, refusal.code) == ("publish", "news", 103)
    assert answer.ended_at > 0


def test_unknown_user_has_no_past() -> None:
    answer = UserLog("N1", "one").answer("17")
    assert (answer.ended_at, answer.code, answer.refusals) == (0, 0, [])


def test_newest_refusals_are_kept() -> None:
    log = UserLog("N1", "one")
    for number in range(MAX_REFUSALS + 2):
        log.refused("17", "publish", f"c{number}", 103, "permission denied")
    channels = [refusal.channel for refusal in log.answer("17").refusals]
    assert channels == [f"c{number}" for number in range(2, MAX_REFUSALS + 2)]


def test_user_of_whom_nothing_was_written_for_longest_is_forgotten() -> None:
    log = UserLog("N1", "one")
    log.closed("first", 3005, "expired")
    log.closed("second", 3005, "expired")
    log.refused("first", "publish", "news", 103, "permission denied")
    for number in range(MAX_USERS - 1):
        log.closed(f"u{number}", 0, "")
    assert log.answer("second").ended_at == 0
    assert log.answer("first").code == 3005


def test_anonymous_clients_and_long_names_are_not_remembered() -> None:
    log = UserLog("N1", "one")
    log.closed("", 3005, "expired")
    log.closed("u" * (MAX_LENGTH + 1), 3005, "expired")
    log.refused("17", "publish", "c" * 1000, 103, "m" * 1000)
    assert log.answer("").ended_at == 0
    assert log.answer("u" * (MAX_LENGTH + 1)).ended_at == 0
    [refusal] = log.answer("17").refusals
    assert (len(refusal.channel), len(refusal.message)) == (MAX_LENGTH, MAX_LENGTH)
