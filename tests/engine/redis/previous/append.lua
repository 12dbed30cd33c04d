-- Number a publication, keep it, trim the stream, and send it to the group.
--
-- One step, because two publishers must not get the same offset, a publication that is sent must be
-- in the stream already, and subscribers must get the offsets in order.
--
-- KEYS[1]  stream: entry ID is the offset ("7-0"), field "m" the message, field "p" the UID of the
--          publication before it, where that is known
-- KEYS[2]  meta of the stream, hash: "s" the top offset, "e" the epoch, "u" the top offset again and
--          the UID of its publication ("7:UID"); older versions do not write it
-- KEYS[3]  epoch of streams without publications, string
-- ARGV[1]  message
-- ARGV[2]  number of publications to keep
-- ARGV[3]  seconds to keep them after the last one
-- ARGV[4]  seconds to keep the meta after its last use; 0: forever
-- ARGV[5]  epoch of a stream that has none
-- ARGV[6]  "1": epochs end when Redis restarts
-- ARGV[7]  Redis channel to publish to; "": do not send
-- ARGV[8]  UID of the publication
-- returns  {offset, epoch}
local meta = redis.call('HMGET', KEYS[2], 's', 'e', 'u')
local offset = tonumber(meta[1] or 0)
if not offset then
  return redis.error_reply('ERR the top offset of the stream is not a number')
end
offset = offset + 1
local epoch = meta[2]
-- a stream whose meta was lost does not continue: publications and epoch are dropped
local lost = offset == 1 and redis.call('DEL', KEYS[1]) == 1
if not epoch then
  if lost or ARGV[4] ~= '0' then
    epoch = ARGV[5]
  else
    epoch = redis.call('GET', KEYS[3])
    if not epoch then
      epoch = ARGV[5]
      redis.call('SET', KEYS[3], epoch)
    end
  end
end
local top = string.format('%.0f', offset)
local id = top .. '-0'
local before, previous = string.match(meta[3] or '', '^(%d+):(.+)$')
if tonumber(before) == offset - 1 then
  redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[2], id, 'm', ARGV[1], 'p', previous)
else
  redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[2], id, 'm', ARGV[1])
end
redis.call('HSET', KEYS[2], 's', top, 'e', epoch, 'u', top .. ':' .. ARGV[8])
redis.call('EXPIRE', KEYS[1], ARGV[3])
if ARGV[4] ~= '0' then
  redis.call('EXPIRE', KEYS[2], ARGV[4])
else
  -- metas expired before the option was changed
  redis.call('PERSIST', KEYS[2])
end
if ARGV[6] == '1' then
  epoch = epoch .. '-' .. string.match(redis.call('INFO', 'server'), 'run_id:(%x%x%x%x%x%x%x%x)')
end
if ARGV[7] ~= '' then
  redis.call('PUBLISH', ARGV[7], string.format('\193%s:%s:', top, epoch) .. ARGV[1])
end
return {offset, epoch}
