-- Add channels to the list of a node, or remove some, and return those that no other node lists.
--
-- One step, because of two nodes that add a channel at the same time exactly one is the first,
-- and of two that remove it exactly one is the last.
--
-- KEYS[1]  channel list of this node, set
-- KEYS[2]  expiry of the nodes, as in add_presence.lua
-- ARGV[1]  ID of this node
-- ARGV[2]  prefix of the keys of all channel lists; those of other nodes are read
-- ARGV[3]  number of the following names to add; the others are removed
-- ARGV[4]  name, and so on
-- returns  {added names, removed names}, without those that another node lists
--
-- The list of a node whose heartbeats are overdue does not count.
local time = redis.call('TIME')
local now_ms = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local others = {}
for _, node in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. now_ms, '+inf')) do
  if node ~= ARGV[1] then
    table.insert(others, ARGV[2] .. node)
  end
end
local function listed_elsewhere(name)
  for _, key in ipairs(others) do
    if redis.call('SISMEMBER', key, name) == 1 then
      return true
    end
  end
  return false
end
local added, removed = {}, {}
local first_removed = 4 + ARGV[3]
for i = 4, #ARGV do
  local is_added = i < first_removed
  redis.call(is_added and 'SADD' or 'SREM', KEYS[1], ARGV[i])
  if not listed_elsewhere(ARGV[i]) then
    table.insert(is_added and added or removed, ARGV[i])
  end
end
return {added, removed}
