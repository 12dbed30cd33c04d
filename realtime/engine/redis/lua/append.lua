-- Number a publication, keep it, trim the stream, and send it to the group.
--
-- One step, because two publishers must not get the same offset, a publication that is sent must be
-- in the stream already, and subscribers must get the offsets in order. Of two publishers with the
-- same idempotency key exactly one must publish, and so must of two that expect the same top; of two
-- versions the older one must not publish after the newer one. They are asked in this order.
--
-- The blocks "[=[map" are comments here. The script "put" has them as code: it makes a change of a
-- map in the same step. Expected offset and version are those of the entry there.
--
-- KEYS[1]  stream: entry ID is the offset and the time in Unix ms ("7-1763800000000"; "7-0" of older
--          versions), field "m" the message, field "p" the UID of the publication before it, where
--          that is known
-- KEYS[2]  meta of the stream, hash: "s" the top offset, "e" the epoch, "u" the top offset again and
--          the UID of its publication ("7:UID"), "t" the ID of its entry, which has the time;
--          older versions write neither "u" nor "t". "r": Unix seconds at which its expiry is due
--          for renewal; "0": it has none. With versions: "v" the last one, a number, and "ve" its
--          epoch
-- KEYS[3]  epoch of streams without publications, string
-- KEYS[4]  only with an idempotency key: remembers it, string: offset and epoch ("7:EPOCH")
-- the next  only with Sentinels: the seal, as in seal.lua
-- the next  only with ARGV[14]: remembers the key of the publication before this one
-- the last  only of a map, three. Entries, hash: key to "offset:time:end:bytes:version:length of its
--          epoch:epoch, message", time and end of its lifetime in Unix ms, end "0": never; "" to the
--          bytes of all entries. Keys, sorted set with the score 0. Lifetimes, sorted set: ARGV[18] of
--          entries of all maps to Unix ms, the end or earlier: a later end is not written there
-- ARGV[1]  message
-- ARGV[2]  number of publications to keep
-- ARGV[3]  seconds to keep them after the last one
-- ARGV[4]  seconds to keep the meta after its last use, at least twice ARGV[3], as a meta that expired
--          before the publications would end their epoch; 0: forever. That of a map lives longer, if
--          its entries do
-- ARGV[5]  epoch of a stream that has none
-- ARGV[6]  "1": epochs end when Redis restarts, or becomes the master again
-- ARGV[7]  Redis channel to publish to; "": do not send
-- ARGV[8]  UID of the publication
-- ARGV[9]  only with an idempotency key: seconds to remember it; "0": there is none
-- ARGV[10] only with a version: the number, decimal digits without leading zeros; "": there is none
-- ARGV[11] only with a version: its epoch; "": any
-- ARGV[12] only with an expected top: its offset, decimal digits; "": any top
-- ARGV[13] only with an expected top: its epoch, as this script returns it; "": any
-- ARGV[14] "1": publish only if the publication before this one was made
-- ARGV[15] only of a map: the key. Without history ARGV[2] is "0": there is no stream
-- ARGV[16] its mode, see `engine.maps.KeyMode`
-- ARGV[17] seconds for which the entry lives; "0": forever
-- ARGV[18] channel and key as a member of the lifetimes
-- ARGV[19] bytes of the entry; "": remove it
-- ARGV[20] keys that the map may have, and ARGV[21] bytes
-- returns  {offset, epoch, 1 if nothing was published because the key was used before, the top is
--          another, or the version is not newer, or 0}; READONLY where another server has become the
--          master; BEHIND where the publication before this one was not made. Of a refused change
--          of a map also the reason, and the entry, "" without one
-- every look-up and every conversion of a number counts: this runs for each publication
local call, keys, args, sub = redis.call, KEYS, ARGV, string.sub
-- so late in seconds may publications renew the expiry of the meta, and so much longer it lives
local RENEWAL_MAX = 100
--[=[map
local lifetimes, names, entries = table.remove(keys), table.remove(keys), table.remove(keys)
--]=]
local once = args[9] and args[9] ~= '0' and keys[4]
local seal = keys[once and 5 or 4]
if args[14] == '1' and not keys[6] then
  seal = nil
end
local sealed = seal and call('GET', seal)
if sealed and string.find(call('INFO', 'replication'), 'master_replid:' .. sealed, 1, true) then
  return redis.error_reply('READONLY another server has become the master')
end
if once then
  local first = call('GET', once)
  if first then
    local offset, epoch = string.match(first, '^(%d+):(.*)$')
    return {tonumber(offset or 0), epoch or '', 1
    --[=[map
      , 'idempotency', call('HGET', entries, args[15]) or ''
    --]=]
    }
  end
end
local meta = call('HMGET', keys[2], 's', 'e', 'u', 'r')
local offset = tonumber(meta[1] or 0)
if not offset then
  return redis.error_reply('ERR the top offset of the stream is not a number')
end
-- below this line are writes: a full Redis may refuse one publication, and have room for the next
if args[14] == '1' and not call('GET', keys[#keys]) then
  return redis.error_reply('BEHIND the publication before this one was not made')
end
local run = ''
if args[6] == '1' then
  local info = call('INFO', 'replication')
  local at = string.find(info, 'master_replid:', 1, true) + 14
  run = '-' .. sub(info, at, at + 7)
end
local epoch = meta[2]
-- a stream whose meta was lost does not continue: publications and epoch are dropped
local lost = offset == 0 and call('DEL', keys[1]) == 1
--[=[map
if offset == 0 and args[2] ~= '0' and call('DEL', entries, names) > 0 then
  lost = true
end
--]=]
if not epoch then
  if lost or args[4] ~= '0' then
    epoch = args[5]
  else
    epoch = call('GET', keys[3])
    if not epoch then
      epoch = args[5]
      call('SET', keys[3], epoch)
    end
  end
end
local top
-- seconds, and six digits of microseconds
local time = call('TIME')
--[=[map
local found = call('HMGET', entries, args[15], '')
local former, mode, reason = found[1], args[16], nil
-- most changes need no more of it
local last, bytes = string.match(former or '', '^%d+:%d+:(%d+):(%d+)')
local at, number, length, rest
if args[10] ~= '' or args[12] ~= '' then
  at, number, length, rest = string.match(former or '', '^(%d+):%d+:%d+:%d+:(%d*):(%d+):()')
end
local total = (found[2] or 0) - (bytes or 0)
local now = time[1] .. sub('00000' .. time[2], -6, -4)
local ends = args[17] == '0' and '0' or time[1] + args[17] .. sub(now, -3)
local lives = former and (not last or last == '0' or tonumber(last) > tonumber(now))
if args[4] ~= '0' and args[19] ~= '' then
  args[4] = args[17] == '0' and '0' or math.max(args[4], 2 * args[17])
end
if meta[4] == '0' and (args[19] ~= '' or total > 0) then
  -- an entry may live forever
  args[4] = '0'
end
if args[12] ~= '' and (args[12] ~= (at or '0') or (args[13] ~= '' and args[13] ~= epoch .. run)) then
  reason = 'position_mismatch'
elseif args[10] ~= '' and number and number ~= ''
  and (args[11] == '' or args[11] == sub(former, rest, rest + length - 1))
  and (#args[10] < #number or (#args[10] == #number and args[10] <= number)) then
  reason = 'version'
elseif lives and (mode == 'if_new' or mode == 'if_expired' or mode == 'renew') then
  reason = 'key_exists'
elseif (mode == 'if_exists' and not lives) or (args[19] == '' and not former) then
  reason, former = 'key_not_found', nil
elseif args[19] ~= '' and (total + args[19] > tonumber(args[21])
  or (not former and call('ZCARD', names) >= tonumber(args[20]))) then
  reason = 'full'
end
if mode == 'if_expired' and reason == 'key_not_found' then
  call('ZREM', lifetimes, args[18])
end
if not reason or (mode == 'renew' and reason == 'key_exists' and last) then
  if ends ~= '0' and args[19] ~= '' then
    if not last or last == '0' or tonumber(ends) < tonumber(last) then
      call('ZADD', lifetimes, ends, args[18])
    end
  elseif last and last ~= '0' then
    call('ZREM', lifetimes, args[18])
  end
  if reason then
    local kept = string.match(former, '^%d+:%d+:')
    call('HSET', entries, args[15], kept .. ends .. sub(former, #kept + #last + 1))
    if args[4] ~= '0' then
      call('EXPIRE', keys[2], math.max(args[4], call('TTL', keys[2])))
    elseif args[2] ~= '0' and meta[4] ~= '0' then
      call('PERSIST', keys[2])
      call('HSET', keys[2], 'r', '0')
    end
  end
end
local version = args[10] == '' and ':0:' or args[10] .. ':' .. #args[11] .. ':' .. args[11]
-- no top is expected, or none that there is
args[10], args[12], args[13] = '', reason or '', ''
if args[2] == '0' then
  if reason then
    return {0, '', 1, reason, former or ''}
  end
else
--]=]
-- as text, because Lua's numbers have 53 bits
if args[12] and args[12] ~= ''
  and (args[12] ~= (meta[1] or '0') or (args[13] ~= '' and args[13] ~= epoch .. run)) then
  if not meta[2] and (lost or args[4] ~= '0') then
    call('HSET', keys[2], 'e', epoch)
    if args[4] ~= '0' then
      call('EXPIRE', keys[2], args[4])
    end
  end
  return {offset, epoch .. run, 1
  --[=[map
    , reason, former or ''
  --]=]
  }
end
if args[10] and args[10] ~= '' then
  local last = call('HMGET', keys[2], 'v', 've')
  if meta[2] and last[1] and (args[11] == '' or args[11] == last[2])
    and (#args[10] < #last[1] or (#args[10] == #last[1] and args[10] <= last[1])) then
    return {offset, epoch .. run, 1}
  end
  call('HSET', keys[2], 'v', args[10], 've', args[11])
end
if not meta[2] then
  call('HSET', keys[2], 'e', epoch)
end
offset = offset + 1
top = string.format('%.0f', offset)
local id = top .. '-' .. time[1] .. sub('00000' .. time[2], -6, -4)
local newest, before = meta[3] or '', (meta[1] or '') .. ':'
if #newest > #before and sub(newest, 1, #before) == before then
  call('XADD', keys[1], 'MAXLEN', args[2], id, 'm', args[1], 'p', sub(newest, #before + 1))
else
  call('XADD', keys[1], 'MAXLEN', args[2], id, 'm', args[1])
end
call('HSET', keys[2], 's', top, 'u', top .. ':' .. args[8], 't', id)
call('EXPIRE', keys[1], args[3])
local due = meta[4]
if args[4] == '0' then
  if due ~= '0' then
    -- metas expired before the option was changed
    call('PERSIST', keys[2])
    call('HSET', keys[2], 'r', '0')
  end
elseif not due or due <= time[1] then
  -- not by each publication: it would cost as much as a tenth of the rest
  local renewal = math.min(RENEWAL_MAX, math.floor(args[4] / 100))
  --[=[map
  -- another entry may live longer
  args[4] = math.max(args[4], call('TTL', keys[2]))
  --]=]
  call('EXPIRE', keys[2], args[4] + renewal)
  call('HSET', keys[2], 'r', time[1] + renewal)
end
--[=[map
end
if args[19] == '' then
  call('ZREM', names, args[15])
  if total > 0 then
    call('HDEL', entries, args[15])
    call('HSET', entries, '', total)
  else
    call('DEL', entries)
  end
else
  local value = (top or '0') .. ':' .. now .. ':' .. ends .. ':' .. args[19] .. ':' .. version .. args[1]
  if bytes == args[19] then
    call('HSET', entries, args[15], value)
  else
    call('HSET', entries, args[15], value, '', total + args[19])
  end
  if not former then
    call('ZADD', names, 0, args[15])
  end
end
if args[2] == '0' then
  if args[7] ~= '' then
    call('PUBLISH', args[7], args[1])
  end
  if once then
    call('SET', once, '', 'EX', args[9])
  end
  return {0, '', 0}
end
--]=]
epoch = epoch .. run
if args[7] ~= '' then
  call('PUBLISH', args[7], '\193' .. top .. ':' .. epoch .. ':' .. args[1])
end
if once then
  call('SET', once, top .. ':' .. epoch, 'EX', args[9])
end
return {offset, epoch, 0}
