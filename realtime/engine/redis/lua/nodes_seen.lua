-- Return the nodes that are alive or died a short time ago, and drop those that expired.
--
-- One step, because a node that is announced meanwhile must not be dropped. The clock of Redis
-- counts, because the clocks of nodes differ.
--
-- KEYS[1]  nodes, KEYS[2] their expiry: as in add_presence.lua
-- KEYS[3]  expiry of the nodes that are alive, the same
-- returns  {ID, value, ms until it expires, 1 if it is alive or 0, ID, ...}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local found = {}
for _, node in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  local left = tonumber(redis.call('ZSCORE', KEYS[2], node)) - now
  local value = redis.call('HGET', KEYS[1], node)
  if left <= 0 or not value then
    redis.call('HDEL', KEYS[1], node)
    redis.call('ZREM', KEYS[2], node)
  else
    local alive_until = redis.call('ZSCORE', KEYS[3], node)
    local alive = alive_until and tonumber(alive_until) > now
    table.insert(found, node)
    table.insert(found, value)
    table.insert(found, left)
    table.insert(found, alive and 1 or 0)
  end
end
return found
