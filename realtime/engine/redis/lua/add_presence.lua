-- Add entries, or refresh them. Entries expire unless they are refreshed.
--
-- One step, because an entry without its expiry would stay forever.
--
-- KEYS[1]  entries, hash: ID to value
-- KEYS[2]  expiry, sorted set: ID scored by its end in ms
-- ARGV[1]  lifetime of the entries, ms
-- ARGV[2], ARGV[3]  ID and value, and so on
-- returns  nothing
local time = redis.call('TIME')
local until_ms = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[1]
for i = 2, #ARGV, 2 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
  redis.call('ZADD', KEYS[2], string.format('%.0f', until_ms), ARGV[i])
end
for i = 1, 2 do
  -- another entry may live longer
  if redis.call('PTTL', KEYS[i]) < tonumber(ARGV[1]) then
    redis.call('PEXPIRE', KEYS[i], ARGV[1])
  end
end
