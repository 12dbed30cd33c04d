-- Return the entries that have not expired, and drop the others.
--
-- One step, because an entry that is refreshed meanwhile must not be dropped.
--
-- KEYS[1]  entries, KEYS[2] expiry: as in add_presence.lua
-- returns  {ID, value, ID, value, ...}
local time = redis.call('TIME')
local now_ms = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local gone = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now_ms)
for i = 1, #gone do
  redis.call('HDEL', KEYS[1], gone[i])
end
if #gone > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now_ms)
end
return redis.call('HGETALL', KEYS[1])
