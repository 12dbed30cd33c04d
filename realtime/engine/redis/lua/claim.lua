-- Make a node the owner of a name, renew that, or end it.
--
-- One step, because two nodes may claim the same name at the same time.
--
-- KEYS[1]  owner of the name
-- ARGV[1]  the node
-- ARGV[2]  for how long, ms; 0: it owns the name no longer
-- returns  the owner, which may be another node
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then
  return owner
end
if tonumber(ARGV[2]) == 0 then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return ARGV[1]
