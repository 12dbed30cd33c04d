-- Take names out of the lists of a node that died, and return those that no other node lists.
--
-- One step, because each name must be taken once, and because a node that lists it meanwhile must
-- either see the list of the dead node or be told of as the first.
--
-- KEYS[1]  expiry of the nodes, as in add_presence.lua
-- KEYS[2]  nodes with lists, KEYS[3] nodes that were swept, KEYS[4] when users were seen last: as in
--          list_names.lua
-- KEYS[5]  the last reply: hash of the attempt, the kind and the names
-- ARGV[1]  what the attempt is called: the same one returns the same again
-- ARGV[2]  how many names to take at most
-- ARGV[3]  1: note when users were seen last, which is as long as the node was not overdue
-- ARGV[4]  ms for which it is remembered that a node was swept
-- ARGV[5]  kind of the lists of users
-- ARGV[6], ARGV[7]  kind, prefix of the keys of its lists, and so on
-- returns  {kind, name, ...}; nothing if there is nothing left
--
-- The lists of another node that died count until they are swept, too: the last of them tells.
if redis.call('HGET', KEYS[5], 'attempt') == ARGV[1] then
  local last = cmsgpack.unpack(redis.call('HGET', KEYS[5], 'reply'))
  return last
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local now_ms = string.format('%.0f', now)
local function others_of(node)
  local is_known, others = { [node] = true }, {}
  for _, nodes in ipairs({
    redis.call('ZRANGE', KEYS[2], 0, -1),
    redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now_ms, '+inf'),
  }) do
    for _, other in ipairs(nodes) do
      if not is_known[other] then
        is_known[other] = true
        table.insert(others, other)
      end
    end
  end
  return others
end
local function unlisted(names, prefix, others)
  local found = {}
  for _, name in ipairs(names) do
    local is_listed = false
    for _, other in ipairs(others) do
      if redis.call('SISMEMBER', prefix .. other, name) == 1 then
        is_listed = true
        break
      end
    end
    if not is_listed then
      table.insert(found, name)
    end
  end
  return found
end
local function mark(node)
  redis.call('ZADD', KEYS[3], now_ms, node)
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', string.format('%.0f', now - ARGV[4]))
  redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -1001)
  redis.call('PEXPIRE', KEYS[3], ARGV[4])
end
local dead = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now_ms, 'WITHSCORES')
for d = 1, #dead, 2 do
  local node, until_ms = dead[d], string.format('%.0f', dead[d + 1])
  for i = 6, #ARGV, 2 do
    local kind, prefix = ARGV[i], ARGV[i + 1]
    local names = redis.call('SPOP', prefix .. node, ARGV[2])
    if #names > 0 then
      mark(node)
      local reply = unlisted(names, prefix, others_of(node))
      if kind == ARGV[5] and ARGV[3] == '1' and redis.call('HLEN', KEYS[4]) < 1000000 then
        for _, user in ipairs(reply) do
          redis.call('HSET', KEYS[4], user, until_ms)
        end
      end
      table.insert(reply, 1, kind)
      redis.call('HSET', KEYS[5], 'attempt', ARGV[1], 'reply', cmsgpack.pack(reply))
      redis.call('PEXPIRE', KEYS[5], 60000)
      return reply
    end
  end
  mark(node)
  redis.call('ZREM', KEYS[2], node)
end
return false
