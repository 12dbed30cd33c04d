-- Add what users took at one node to what they took at all of them.
--
-- One step, because two nodes may add to the debt of one user at the same time. A debt is the time
-- until a user could take a whole burst again.
--
-- KEYS[1]  ends of debts, sorted set: ID scored by ms
-- ARGV[1]  ms since which it was taken
-- ARGV[2], ARGV[3], ARGV[4]  ID, ms to add, and how many ms a debt may last; and so on
-- returns  how many ms each debt lasts now
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local start = now - ARGV[1]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.3f', start))
local left = {}
for i = 2, #ARGV, 3 do
  local debt_end = tonumber(redis.call('ZSCORE', KEYS[1], ARGV[i]) or start)
  debt_end = math.min(debt_end + ARGV[i + 1], now + ARGV[i + 2])
  redis.call('ZADD', KEYS[1], string.format('%.3f', debt_end), ARGV[i])
  left[#left + 1] = math.max(0, math.floor(debt_end - now))
end
local last = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', last[2] + 1))
return left
