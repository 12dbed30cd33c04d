-- Read entries of a map, in the order of their keys, and the position of its stream at one moment.
--
-- One step, because a change between two readings would be in one of them only. The text of read.lua
-- stands before this one, as the function `read`: it has the first keys and arguments, as they are.
--
-- KEYS[4]  entries, KEYS[5] keys: as in append.lua
-- ARGV[9]  least key to return, as ZRANGEBYLEX takes it; ARGV[10] the greatest one
-- ARGV[11] entries to return at most
-- returns  {offset, epoch, number of keys in the map, keys, entries, 1 if there are more keys or 0}

-- more values than Lua can take off a table at once are more than this
local STEP = 1000
local call = redis.call
local offset, epoch = unpack(read())
if offset == 0 then
  local name = call('ZRANGE', KEYS[5], 0, 0)[1]
  local first = name and call('HGET', KEYS[4], name)
  if first and string.sub(first, 1, 2) ~= '0:' then
    -- the stream that made them was lost
    return {offset, epoch, 0, {}, {}, 0}
  end
end
local limit = tonumber(ARGV[11])
local names = call('ZRANGEBYLEX', KEYS[5], ARGV[9], ARGV[10], 'LIMIT', 0, limit + 1)
local more = 0
if #names > limit then
  names[#names] = nil
  more = 1
end
local entries = {}
for first = 1, #names, STEP do
  local values = call('HMGET', KEYS[4], unpack(names, first, math.min(first + STEP - 1, #names)))
  for i = 1, #values do
    entries[#entries + 1] = values[i]
  end
end
return {offset, epoch, call('ZCARD', KEYS[5]), names, entries, more}
