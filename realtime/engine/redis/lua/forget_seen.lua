-- Forget when users were seen last, unless that has changed.
--
-- One step, because a user may go offline meanwhile.
--
-- KEYS[1]  when users were seen last: hash, user to ms
-- ARGV[1], ARGV[2]  user and ms, and so on
-- returns  nothing
for i = 1, #ARGV, 2 do
  if redis.call('HGET', KEYS[1], ARGV[i]) == ARGV[i + 1] then
    redis.call('HDEL', KEYS[1], ARGV[i])
  end
end
