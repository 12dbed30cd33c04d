-- Remove entries.
--
-- One step, because an entry and its expiry belong together.
--
-- KEYS[1]  entries, KEYS[2] expiry: as in add_presence.lua
-- ARGV     IDs
-- returns  nothing
for i = 1, #ARGV do
  redis.call('HDEL', KEYS[1], ARGV[i])
  redis.call('ZREM', KEYS[2], ARGV[i])
end
