-- Return the blocked users, and the version of the list.
--
-- One step, because a change in between would belong to another version.
--
-- KEYS[1]  entries, KEYS[2] expiry, KEYS[3] version: as in block.lua
-- returns  {version, ID, value, ID, value, ...}; the version is empty if there was never a list
local time = redis.call('TIME')
local now_ms = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local result = { redis.call('GET', KEYS[3]) or '' }
local ids = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. now_ms, '+inf')
for i = 1, #ids do
  result[#result + 1] = ids[i]
  result[#result + 1] = redis.call('HGET', KEYS[1], ids[i]) or ''
end
return result
