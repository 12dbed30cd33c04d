-- Return the entries of maps whose lifetime is over, oldest first.
--
-- In Redis, because nodes have clocks of their own.
--
-- KEYS[1]  lifetimes, as in append.lua
-- ARGV[1]  entries to return at most
-- returns  {channel and key as one member, Unix ms, the next member, ...}
local time = redis.call('TIME')
local now_ms = time[1] .. string.sub('00000' .. time[2], -6, -4)
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now_ms, 'LIMIT', 0, ARGV[1], 'WITHSCORES')
