-- Unblock a user.
--
-- One step, because an entry and its expiry belong together, and because nodes look at the version
-- to learn that the list has changed.
--
-- KEYS[1]  entries, KEYS[2] expiry, KEYS[3] version: as in block.lua
-- ARGV[1]  ID
-- returns  nothing
local time = redis.call('TIME')
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
local now_us = time[1] * 1000000 + time[2]
local made, changed = string.match(redis.call('GET', KEYS[3]) or '', '^(%d+):(%d+)$')
made = made or string.format('%.0f', now_us)
changed = string.format('%.0f', math.max(now_us, tonumber(changed or 0) + 1))
redis.call('SET', KEYS[3], made .. ':' .. changed)
