-- Read a stream and its position at one moment.
--
-- One step, because a publication between two readings would be in one of them only.
--
-- KEYS[1]  stream, KEYS[2] meta, KEYS[3] epoch of new streams: as in append.lua
-- ARGV[1]  first offset to return; "": return no entries
-- ARGV[2]  seconds to keep the meta after its last use; 0: forever
-- ARGV[3]  epoch of a stream that has none
-- ARGV[4]  "1": epochs end when Redis restarts
-- returns  {offset, epoch, entries, UID}: the top position, the entries as XRANGE gives them, and the
--          UID of the publication at the top, "" where it is unknown
--
-- Clients may read any channel name, so reading a stream without publications writes nothing.
-- Where metas expire it must write the epoch, for it has to expire with the meta.
local meta = redis.call('HMGET', KEYS[2], 's', 'e', 'u')
local offset = tonumber(meta[1]) or 0
local epoch = meta[2]
if not epoch then
  if ARGV[2] ~= '0' or redis.call('EXISTS', KEYS[1]) == 1 then
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
if ARGV[2] ~= '0' then
  redis.call('EXPIRE', KEYS[2], ARGV[2])
elseif redis.call('PTTL', KEYS[2]) >= 0 then
  -- metas expired before the option was changed
  redis.call('PERSIST', KEYS[2])
end
if ARGV[4] == '1' then
  epoch = epoch .. '-' .. string.match(redis.call('INFO', 'server'), 'run_id:(%x%x%x%x%x%x%x%x)')
end
local at, uid = string.match(meta[3] or '', '^(%d+):(.*)$')
if tonumber(at) ~= offset then
  uid = ''
end
if ARGV[1] == '' or offset == 0 then
  return {offset, epoch, {}, uid}
end
return {offset, epoch, redis.call('XRANGE', KEYS[1], ARGV[1] .. '-0', '+'), uid}
