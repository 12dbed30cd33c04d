-- Give connections of users at one node a place, as far as a limit for all nodes leaves room.
--
-- One step, because of two nodes that ask for the last place of a user one gets it. A node keeps the
-- places that it has, and they end when its heartbeats are overdue, by the same clock: others may
-- have got them by then.
--
-- KEYS[1]  places of this node, hash: digest of a user → number
-- KEYS[2]  expiry of the nodes, as in add_presence.lua
-- ARGV[1]  ID of this node
-- ARGV[2]  prefix of the keys of the places of all nodes; those of other nodes are read
-- ARGV[3]  places of a user at all nodes
-- ARGV[4]  1 to give up all places of this node before
-- ARGV[5], ARGV[6]  digest, and connections at this node; and so on
-- returns  {users with places here, places here, places elsewhere, and so on}; empty if the
--          heartbeats of this node are overdue, so that other nodes would not count its places
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local alive_until_ms = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[1]) or 0)
if ARGV[4] == '1' or alive_until_ms <= now_ms then
  redis.call('DEL', KEYS[1])
end
if alive_until_ms <= now_ms then
  return {}
end
local users, elsewhere = {}, {}
for i = 5, #ARGV, 2 do
  users[#users + 1], elsewhere[#elsewhere + 1] = ARGV[i], 0
end
if #users > 0 then
  local alive = redis.call('ZRANGEBYSCORE', KEYS[2], string.format('(%.0f', now_ms), '+inf')
  for _, node in ipairs(alive) do
    if node ~= ARGV[1] then
      for i, places in ipairs(redis.call('HMGET', ARGV[2] .. node, unpack(users))) do
        elsewhere[i] = elsewhere[i] + (tonumber(places) or 0)
      end
    end
  end
end
local reply = {0}
for i, user in ipairs(users) do
  local connections = tonumber(ARGV[4 + 2 * i])
  local before = tonumber(redis.call('HGET', KEYS[1], user) or 0)
  local places = math.min(connections, math.max(0, before, ARGV[3] - elsewhere[i]))
  if places > 0 then
    redis.call('HSET', KEYS[1], user, places)
  else
    redis.call('HDEL', KEYS[1], user)
  end
  reply[2 * i], reply[2 * i + 1] = places, elsewhere[i]
end
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', alive_until_ms))
reply[1] = redis.call('HLEN', KEYS[1])
return reply
