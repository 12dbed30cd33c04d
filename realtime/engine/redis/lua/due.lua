-- Return the entries of maps whose lifetime is over, oldest first.
--
-- One step, because what is noted of a lifetime may be too early, and is corrected here: a put that
-- makes it longer writes only the entry.
--
-- KEYS[1]  lifetimes, as in append.lua
-- ARGV[1]  entries to return at most
-- ARGV[2]  what the keys of entries begin with; the channel follows
-- returns  {channel and key as one member, Unix ms, the next member, ...}

-- so many are looked at: Redis runs nothing else meanwhile
local LOOKS = 1000
local call, limit = redis.call, tonumber(ARGV[1])
local time = call('TIME')
local now_ms = time[1] .. string.sub('00000' .. time[2], -6, -4)
local noted = call('ZRANGEBYSCORE', KEYS[1], '-inf', now_ms, 'LIMIT', 0, LOOKS + limit, 'WITHSCORES')
local due = {}
for i = 1, #noted, 2 do
  if #due >= 2 * limit then
    break
  end
  local length, first = string.match(noted[i], '^(%d+):()')
  local ends
  if length then
    local key = first + length
    local entries = ARGV[2] .. string.sub(noted[i], first, key - 1)
    local entry = call('HGET', entries, string.sub(noted[i], key))
    ends = entry and string.match(entry, '^%d+:%d+:(%d+):')
    if not entry and call('EXISTS', entries) == 0 then
      -- the map was lost, or its slot moves: append.lua knows; others are not kept waiting
      ends = now_ms
      call('ZADD', KEYS[1], ends + 1000, noted[i])
    end
  end
  if not ends or ends == '0' then
    call('ZREM', KEYS[1], noted[i])
  elseif tonumber(ends) > tonumber(now_ms) then
    call('ZADD', KEYS[1], ends, noted[i])
  else
    due[#due + 1], due[#due + 2] = noted[i], noted[i + 1]
  end
end
return due
