-- Claim a name for a node, renew the claim, or give it up.
--
-- One step, because two nodes may claim the same name at the same time.
--
-- KEYS[1]  owner of the name
-- ARGV[1]  ID of the node
-- ARGV[2]  lifetime of the claim, ms; 0: give it up
-- returns  ID of the owner, which may be another node
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
