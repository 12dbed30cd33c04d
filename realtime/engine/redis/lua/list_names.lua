-- Add names to a list of a node, or remove some, and return those that no other node lists.
--
-- One step, because of two nodes that add a name at the same time exactly one is the first,
-- and of two that remove it exactly one is the last.
--
-- KEYS[1]  list of this node, set
-- KEYS[2]  expiry of the nodes, as in add_presence.lua
-- KEYS[3]  nodes with lists: sorted set, ID scored by the ms from which others sweep them
-- KEYS[4]  nodes that were swept: sorted set, the same
-- KEYS[5]  when users were seen last: hash, user to ms
-- ARGV[1]  ID of this node
-- ARGV[2]  prefix of the keys of all lists of this kind; those of other nodes are read
-- ARGV[3]  1: note when users were seen last, who are removed from the last list
-- ARGV[4]  number of the following names to add; the others are removed
-- ARGV[5]  name, and so on
-- returns  {added names, removed names}, without those that another node lists; nothing if this
--          node was swept: it must know that before it changes its lists
--
-- The list of a node whose heartbeats are overdue counts until it is swept, which tells of the end
-- of its names. Nodes of older versions are not swept: they count as long as they are alive.
if redis.call('ZSCORE', KEYS[4], ARGV[1]) then
  return false
end
local time = redis.call('TIME')
local now_ms = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local is_known, others = { [ARGV[1]] = true }, {}
local function know(nodes)
  for _, node in ipairs(nodes) do
    if not is_known[node] then
      is_known[node] = true
      table.insert(others, ARGV[2] .. node)
    end
  end
end
know(redis.call('ZRANGE', KEYS[3], 0, -1))
know(redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. now_ms, '+inf'))
local function listed_elsewhere(name)
  for _, key in ipairs(others) do
    if redis.call('SISMEMBER', key, name) == 1 then
      return true
    end
  end
  return false
end
local added, removed = {}, {}
local first_removed = 5 + ARGV[4]
for i = 5, #ARGV do
  local is_added = i < first_removed
  redis.call(is_added and 'SADD' or 'SREM', KEYS[1], ARGV[i])
  if not listed_elsewhere(ARGV[i]) then
    table.insert(is_added and added or removed, ARGV[i])
  end
end
if first_removed > 5 and redis.call('PTTL', KEYS[1]) == -1 then
  -- a new one: as renew_lists.lua keeps it, or longer than until the first heartbeat
  local from_ms = redis.call('ZSCORE', KEYS[3], ARGV[1]) or now_ms
  redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(from_ms - now_ms, 10000) + 300000))
end
if ARGV[3] == '1' and #removed > 0 and redis.call('HLEN', KEYS[5]) < 1000000 then
  for i = 1, #removed do
    redis.call('HSET', KEYS[5], removed[i], now_ms)
  end
end
return {added, removed}
