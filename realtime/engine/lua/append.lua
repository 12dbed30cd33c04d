-- Number a publication, keep it, trim the stream, and publish it to the group.
--
-- One step, because two publishers must not take the same number, what is published must be
-- in the stream already, and subscribers must see the numbers in order.
--
-- KEYS[1]  stream: entry ID is the offset ("7-0"), field "m" the message
-- KEYS[2]  meta of the stream, hash: "s" the top offset, "e" the epoch
-- KEYS[3]  epoch of streams that nothing was published into yet, string
-- ARGV[1]  message
-- ARGV[2]  publications to keep
-- ARGV[3]  seconds to keep them after the last one
-- ARGV[4]  seconds to keep the meta after its last use; 0: for ever
-- ARGV[5]  epoch to begin with, where none is known
-- ARGV[6]  "1": epochs end with the run of the server
-- ARGV[7]  Redis channel to publish to; "": none
-- returns  {offset, epoch}
local epoch = redis.call('HGET', KEYS[2], 'e')
if not epoch then
  -- a stream whose meta was lost does not continue
  redis.call('DEL', KEYS[1], KEYS[2])
  if ARGV[4] == '0' then
    epoch = redis.call('GET', KEYS[3])
    if not epoch then
      epoch = ARGV[5]
      redis.call('SET', KEYS[3], epoch)
    end
  else
    epoch = ARGV[5]
  end
  redis.call('HSET', KEYS[2], 'e', epoch)
end
local offset = redis.call('HINCRBY', KEYS[2], 's', 1)
redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[2], string.format('%.0f-0', offset), 'm', ARGV[1])
redis.call('EXPIRE', KEYS[1], ARGV[3])
if ARGV[4] ~= '0' then
  redis.call('EXPIRE', KEYS[2], ARGV[4])
end
if ARGV[6] == '1' then
  epoch = epoch .. '-' .. string.match(redis.call('INFO', 'server'), 'run_id:(%x%x%x%x%x%x%x%x)')
end
if ARGV[7] ~= '' then
  redis.call('PUBLISH', ARGV[7], string.format('\193%.0f:%s:', offset, epoch) .. ARGV[1])
end
return {offset, epoch}
