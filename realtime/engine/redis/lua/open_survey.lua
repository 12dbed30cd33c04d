-- Begin to take answers to a survey.
--
-- One step, because a list that does not expire would stay forever. Answers are only added to a list
-- that exists, so answers that come too late are dropped. Redis has no empty lists, so the first
-- entry is not an answer.
--
-- KEYS[1]  answers, list
-- ARGV[1]  time to take answers, ms
-- returns  nothing
redis.call('RPUSH', KEYS[1], '')
redis.call('PEXPIRE', KEYS[1], ARGV[1])
