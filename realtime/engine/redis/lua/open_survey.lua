-- Begin to take answers to a question.
--
-- One step, because a list without an end would stay for ever. Answers are added to a list that
-- is there, so those that come after its end are dropped; an empty list cannot be, hence an entry
-- that is no answer.
--
-- KEYS[1]  answers, list
-- ARGV[1]  milliseconds to take them
-- returns  nothing
redis.call('RPUSH', KEYS[1], '')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
