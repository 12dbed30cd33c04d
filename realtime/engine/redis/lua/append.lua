-- Number a publication, keep it, trim the stream, and send it to the group.
--
-- One step, because two publishers must not get the same offset, a publication that is sent must be
-- in the stream already, and subscribers must get the offsets in order. Of two publishers with the
-- same idempotency key exactly one must publish, and of two versions the older one must not publish
-- after the newer one.
--
-- KEYS[1]  stream: entry ID is the offset and the time in Unix ms ("7-1763800000000"; "7-0" of older
--          versions), field "m" the message, field "p" the UID of the publication before it, where
--          that is known
-- KEYS[2]  meta of the stream, hash: "s" the top offset, "e" the epoch, "u" the top offset again and
--          the UID of its publication ("7:UID"), "t" the ID of its entry, which has the time;
--          older versions write neither "u" nor "t". With versions: "v" the last one, a number,
--          and "ve" its epoch
-- KEYS[3]  epoch of streams without publications, string
-- KEYS[4]  only with an idempotency key: remembers it, string: offset and epoch ("7:EPOCH")
-- ARGV[1]  message
-- ARGV[2]  number of publications to keep
-- ARGV[3]  seconds to keep them after the last one
-- ARGV[4]  seconds to keep the meta after its last use, at least twice ARGV[3], as a meta that expired
--          before the publications would end their epoch; 0: forever
-- ARGV[5]  epoch of a stream that has none
-- ARGV[6]  "1": epochs end when Redis restarts, or becomes the master again
-- ARGV[7]  Redis channel to publish to; "": do not send
-- ARGV[8]  UID of the publication
-- ARGV[9]  only with KEYS[4]: seconds to remember the idempotency key
-- ARGV[10] only with a version: the number, decimal digits without leading zeros
-- ARGV[11] only with a version: its epoch; "": any
-- returns  {offset, epoch, 1 if nothing was published because the key was used before, or the version
--          is not newer, or 0}
-- every look-up and every conversion of a number counts: this runs for each publication
local call = redis.call
if KEYS[4] then
  local first = call('GET', KEYS[4])
  if first then
    local offset, epoch = string.match(first, '^(%d+):(.*)$')
    return {tonumber(offset or 0), epoch or '', 1}
  end
end
local meta = call('HMGET', KEYS[2], 's', 'e', 'u')
local offset = tonumber(meta[1] or 0)
if not offset then
  return redis.error_reply('ERR the top offset of the stream is not a number')
end
local run = ''
if ARGV[6] == '1' then
  run = '-' .. string.match(call('INFO', 'replication'), 'master_replid:(%x%x%x%x%x%x%x%x)')
end
local epoch = meta[2]
if ARGV[10] then
  local last = call('HMGET', KEYS[2], 'v', 've')
  -- as text, because Lua's numbers have 53 bits
  if epoch and last[1] and (ARGV[11] == '' or ARGV[11] == last[2])
    and (#ARGV[10] < #last[1] or (#ARGV[10] == #last[1] and ARGV[10] <= last[1])) then
    return {offset, epoch .. run, 1}
  end
  call('HSET', KEYS[2], 'v', ARGV[10], 've', ARGV[11])
end
offset = offset + 1
-- a stream whose meta was lost does not continue: publications and epoch are dropped
local lost = offset == 1 and call('DEL', KEYS[1]) == 1
if not epoch then
  if lost or ARGV[4] ~= '0' then
    epoch = ARGV[5]
  else
    epoch = call('GET', KEYS[3])
    if not epoch then
      epoch = ARGV[5]
      call('SET', KEYS[3], epoch)
    end
  end
  call('HSET', KEYS[2], 'e', epoch)
end
local top = string.format('%.0f', offset)
-- seconds, and the first three of six digits of microseconds
local time = call('TIME')
local id = top .. '-' .. time[1] .. string.sub('00000' .. time[2], -6, -4)
local newest = meta[3] or ''
local colon = string.find(newest, ':', 1, true)
if colon and colon < #newest and string.sub(newest, 1, colon - 1) == meta[1] then
  call('XADD', KEYS[1], 'MAXLEN', ARGV[2], id, 'm', ARGV[1], 'p', string.sub(newest, colon + 1))
else
  call('XADD', KEYS[1], 'MAXLEN', ARGV[2], id, 'm', ARGV[1])
end
call('HSET', KEYS[2], 's', top, 'u', top .. ':' .. ARGV[8], 't', id)
call('EXPIRE', KEYS[1], ARGV[3])
if ARGV[4] ~= '0' then
  call('EXPIRE', KEYS[2], ARGV[4])
else
  -- metas expired before the option was changed
  call('PERSIST', KEYS[2])
end
epoch = epoch .. run
if ARGV[7] ~= '' then
  call('PUBLISH', ARGV[7], '\193' .. top .. ':' .. epoch .. ':' .. ARGV[1])
end
if KEYS[4] then
  call('SET', KEYS[4], top .. ':' .. epoch, 'EX', ARGV[9])
end
return {offset, epoch, 0}
