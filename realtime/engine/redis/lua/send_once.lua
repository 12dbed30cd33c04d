-- Send a message without history to its group, unless its idempotency key was used.
--
-- One step, because of two publishers with the same key exactly one must send.
--
-- KEYS[1]  remembers the idempotency key, string, as in append.lua; empty without history
-- KEYS[2]  only after another publication: remembers its key
-- ARGV[1]  message
-- ARGV[2]  Redis channel to publish to; "": do not send
-- ARGV[3]  seconds to remember the idempotency key
-- returns  {0, "", 1 if the key was used before or 0}; BEHIND where the publication before this one
--          was not made
if KEYS[2] and not redis.call('GET', KEYS[2]) then
  return redis.error_reply('BEHIND the publication before this one was not made')
end
if not redis.call('SET', KEYS[1], '', 'NX', 'EX', ARGV[3]) then
  return {0, '', 1}
end
if ARGV[2] ~= '' then
  redis.call('PUBLISH', ARGV[2], ARGV[1])
end
return {0, '', 0}
