-- Block users until a time, unless too many are blocked; or unblock them.
--
-- One step, because two callers must not both take the last place, and because nodes look at the
-- version to learn that the list has changed.
--
-- KEYS[1]  entries, hash: ID to value
-- KEYS[2]  expiry, sorted set: ID scored by its end in ms
-- KEYS[3]  version of the list: when it was made and when it was changed, in us. A change has a
--          higher number than the one before, also where the clock of another server is behind.
-- ARGV[1]  how many users may be blocked
-- ARGV[2], ARGV[3], ARGV[4]  ID, value and end in ms, and so on; an end of 0 unblocks
-- returns  how many of them are blocked, and the version
local time = redis.call('TIME')
local now_ms = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local gone = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now_ms)
for i = 1, #gone do
  redis.call('HDEL', KEYS[1], gone[i])
end
if #gone > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now_ms)
end
local count = redis.call('HLEN', KEYS[1])
local blocked, has_changed = 0, false
for i = 2, #ARGV, 3 do
  local is_new = redis.call('HEXISTS', KEYS[1], ARGV[i]) == 0
  if ARGV[i + 2] == '0' then
    count = count - redis.call('HDEL', KEYS[1], ARGV[i])
    redis.call('ZREM', KEYS[2], ARGV[i])
    has_changed = true
  elseif not is_new or count < tonumber(ARGV[1]) then
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
    redis.call('ZADD', KEYS[2], ARGV[i + 2], ARGV[i])
    blocked = blocked + 1
    if is_new then
      count = count + 1
    end
  end
end
if blocked > 0 or has_changed then
  local now_us = time[1] * 1000000 + time[2]
  local made, changed = string.match(redis.call('GET', KEYS[3]) or '', '^(%d+):(%d+)$')
  made = made or string.format('%.0f', now_us)
  changed = string.format('%.0f', math.max(now_us, tonumber(changed or 0) + 1))
  redis.call('SET', KEYS[3], made .. ':' .. changed)
  local last = redis.call('ZREVRANGE', KEYS[2], 0, 0, 'WITHSCORES')
  for i = 1, last[2] and 2 or 0 do
    redis.call('PEXPIREAT', KEYS[i], string.format('%.0f', last[2]))
  end
end
return {blocked, redis.call('GET', KEYS[3]) or ''}
