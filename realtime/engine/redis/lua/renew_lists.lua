-- Keep the lists of a node for a time, and say whether they were swept.
--
-- One step, because a node that is swept after it was asked would not know it.
--
-- KEYS[1]  nodes with lists, KEYS[2] nodes that were swept: as in list_names.lua
-- KEYS[3]  list of this node, and so on
-- ARGV[1]  ID of this node
-- ARGV[2]  ms after which others sweep the lists
-- ARGV[3]  ms for which they are kept
-- returns  1 if they were swept, or 0
local time = redis.call('TIME')
local from_ms = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[2]
redis.call('ZADD', KEYS[1], string.format('%.0f', from_ms), ARGV[1])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
end
for i = 3, #KEYS do
  redis.call('PEXPIRE', KEYS[i], ARGV[3])
end
return redis.call('ZSCORE', KEYS[2], ARGV[1]) and 1 or 0
