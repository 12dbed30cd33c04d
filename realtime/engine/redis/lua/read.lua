-- Read a stream and its position at one moment.
--
-- One step, because a publication between two readings would be in one of them only.
--
-- KEYS[1]  stream, KEYS[2] meta, KEYS[3] epoch of new streams: as in append.lua
-- ARGV[1]  offset of the first entry to return, "-" the oldest or "+" the newest; "": return none
-- ARGV[2]  seconds to keep the meta after its last use, or longer if append.lua said so; 0: forever
-- ARGV[3]  epoch of a stream that has none
-- ARGV[4]  "1": epochs end when Redis restarts, or becomes the master again
-- ARGV[5]  entries to return at most; "": all
-- ARGV[6]  "1": go back from the first entry to older ones
-- ARGV[7]  Unix ms by the clock of Redis; "": now. Another time: `offset` is that of the last
--          publication until then, and 0 where that is unknown
-- ARGV[8]  seconds to keep the meta after this read at most, where nothing was published
-- returns  {offset, epoch, entries, UID}: the top position, the entries as XRANGE or XREVRANGE gives
--          them, and the UID of the publication at the top, "" where it is unknown
--
-- Clients may read any channel name, so reading a stream without publications writes nothing.
-- Where metas expire it must write the epoch, for it has to expire with the meta. Such a meta lives
-- shortly: nodes that follow the stream read it more often.

-- Return the offset and the time in an entry ID; both nil if it is not one. Older versions write "7-0".
local function parts(id)
  local offset, time = string.match(id or '', '^(%d+)-(%d+)$')
  return tonumber(offset), tonumber(time)
end

-- Return the last offset whose publication was kept until a time in ms; 0 if that is unknown.
--
-- An unknown time counts as too late: subscribers then get more than they need, never less.
local function offset_at(top, at)
  local offset, time = parts(redis.call('HGET', KEYS[2], 't'))
  if offset ~= top then
    -- a node of an older version published it
    local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
    offset, time = parts(last and last[1])
  end
  if offset ~= top or time == 0 then
    -- from now on it is known to have been there
    local now = redis.call('TIME')
    local id = string.format('%.0f-%s%s', top, now[1], string.sub(now[2] + 1000000, 2, 4))
    redis.call('HSET', KEYS[2], 't', id)
    return 0
  end
  if time <= at then
    return top
  end
  local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  local low, oldest = parts(first and first[1])
  if not low or oldest == 0 or oldest > at then
    return 0
  end
  local function is_late(number)
    number = string.format('%.0f', number)
    local entry = redis.call('XRANGE', KEYS[1], number, number, 'COUNT', 1)[1]
    local _, kept = parts(entry and entry[1])
    return not kept or kept == 0 or kept > at
  end
  -- go back in growing steps, then halve: entries may be many, and large
  local high, step = top, 1
  while high - step > low and is_late(high - step) do
    high, step = high - step, step * 2
  end
  low = math.max(low, high - step)
  while high - low > 1 do
    local middle = math.floor((low + high) / 2)
    if is_late(middle) then
      high = middle
    else
      low = middle
    end
  end
  return low
end

local lifetime = tonumber(ARGV[2])
local left = redis.call('TTL', KEYS[2])
local meta = redis.call('HMGET', KEYS[2], 's', 'e', 'u')
local offset = tonumber(meta[1]) or 0
local epoch = meta[2]
if not epoch then
  if lifetime ~= 0 or redis.call('EXISTS', KEYS[1]) == 1 then
    -- also if only the meta was lost: such a stream does not continue
    epoch = ARGV[3]
    redis.call('HSET', KEYS[2], 'e', epoch)
  else
    -- only read, where possible: that works in a full Redis, too
    epoch = redis.call('GET', KEYS[3])
    if not epoch then
      epoch = ARGV[3]
      redis.call('SET', KEYS[3], epoch)
    end
  end
end
if lifetime == 0 then
  -- metas expired before the option was changed
  if left >= 0 then
    redis.call('PERSIST', KEYS[2])
  end
else
  if offset == 0 then
    lifetime = math.min(lifetime, tonumber(ARGV[8]))
  end
  -- -1 is forever, from before the option was changed: the next publication ends that
  if left ~= -1 and left < lifetime then
    redis.call('EXPIRE', KEYS[2], lifetime)
  end
end
if ARGV[4] == '1' then
  epoch = epoch .. '-' .. string.match(redis.call('INFO', 'replication'), 'master_replid:(%x%x%x%x%x%x%x%x)')
end
if ARGV[7] ~= '' and offset > 0 then
  return {offset_at(offset, tonumber(ARGV[7])), epoch, {}, ''}
end
local at, uid = string.match(meta[3] or '', '^(%d+):(.*)$')
if tonumber(at) ~= offset then
  uid = ''
end
if ARGV[1] == '' or offset == 0 then
  return {offset, epoch, {}, uid}
end
-- an offset alone stands for the lowest ID of its entry in XRANGE, and for the highest in XREVRANGE
local command, last = 'XRANGE', '+'
if ARGV[6] == '1' then
  command, last = 'XREVRANGE', '-'
end
if ARGV[5] == '' then
  return {offset, epoch, redis.call(command, KEYS[1], ARGV[1], last), uid}
end
return {offset, epoch, redis.call(command, KEYS[1], ARGV[1], last, 'COUNT', ARGV[5]), uid}
