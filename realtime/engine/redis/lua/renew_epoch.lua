-- Begin a new epoch of a stream that lost publications.
--
-- One step, because several nodes notice at the same time, and only the first may renew.
--
-- KEYS[1]  meta of the stream, as in append.lua
-- KEYS[2]  epoch of new streams
-- ARGV[1]  the epoch in which publications were lost
-- ARGV[2]  the new epoch
-- returns  1 if renewed, 0 if the stream has another epoch already
local epoch = redis.call('HGET', KEYS[1], 'e')
if epoch then
  if epoch ~= ARGV[1] then
    return 0
  end
  redis.call('HSET', KEYS[1], 'e', ARGV[2])
  return 1
end
if redis.call('GET', KEYS[2]) == ARGV[1] then
  redis.call('SET', KEYS[2], ARGV[2])
  return 1
end
return 0
