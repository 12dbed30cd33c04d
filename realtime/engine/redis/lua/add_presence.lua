-- Record, or renew, entries that vanish when they are not renewed.
--
-- One step, because an entry without its expiry would stay for ever.
--
-- KEYS[1]  entries, hash: ID to value
-- KEYS[2]  expiry, sorted set: ID scored by the millisecond of its end
-- ARGV[1]  milliseconds to keep the entries
-- ARGV[2], ARGV[3]  ID and value, and so on
-- returns  nothing
local time = redis.call('TIME')
local until_ms = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1]
for i = 2, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  redis.call('ZADD', KEYS[2], string.format('%.0f', until_ms), ARGV[i])
end
for i = 1, 2 do
  -- another entry may have been given longer
  if redis.call('PTTL', KEYS[i]) < tonumber(ARGV[1]) then
    redis.call('PEXPIRE', KEYS[i], ARGV[1])
  end
end
