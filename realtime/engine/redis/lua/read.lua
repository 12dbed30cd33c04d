-- Read a stream and its position at one moment.
--
-- One step, because a publication between two readings would be in one and not in the other.
--
-- KEYS[1]  stream, KEYS[2] meta, KEYS[3] epoch of new streams: as in append.lua
-- ARGV[1]  first offset to return; "": return no publications
-- ARGV[2]  seconds to keep the meta after its last use; 0: for ever
-- ARGV[3]  epoch to begin with, where none is known
-- ARGV[4]  "1": epochs end with the run of the server
-- returns  {offset, epoch, entries}: the top position, and the entries as XRANGE gives them
--
-- Looking at a stream that nothing was published into keeps nothing, because clients may look
-- at any name; unless the meta would expire, for then the epoch must be remembered with it.
local meta = redis.call('HMGET', KEYS[2], 's', 'e')
local offset = tonumber(meta[1]) or 0
local epoch = meta[2]
if not epoch then
  if ARGV[2] ~= '0' or redis.call('EXISTS', KEYS[1]) == 1 then
    -- also for publications of which the meta was lost: they do not go on
    epoch = ARGV[3]
    redis.call('HSET', KEYS[2], 'e', epoch)
  else
    -- a full Redis can still be read
    epoch = redis.call('GET', KEYS[3])
    if not epoch then
      epoch = ARGV[3]
      redis.call('SET', KEYS[3], epoch)
    end
  end
end
if ARGV[2] ~= '0' then
  redis.call('EXPIRE', KEYS[2], ARGV[2])
end
if ARGV[4] == '1' then
  epoch = epoch .. '-' .. string.match(redis.call('INFO', 'server'), 'run_id:(%x%x%x%x%x%x%x%x)')
end
if ARGV[1] == '' or offset == 0 then
  return {offset, epoch, {}}
end
return {offset, epoch, redis.call('XRANGE', KEYS[1], ARGV[1] .. '-0', '+')}
