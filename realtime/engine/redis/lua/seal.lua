-- Have this server refuse publications with history, because Sentinels have another master in its place.
--
-- One step, because what it accepts afterwards is lost: no publication may come in between.
--
-- A server is sealed only where one of the two was a replica of the other: a name that Sentinels give
-- by mistake must not stop a service.
--
-- KEYS[1]  the seal: the replication ID of the server that refuses, string. At another server it means
--          nothing. When this one becomes a replica, the data of its master replace it
-- ARGV[1]  the replication ID of the new master
-- ARGV[2]  the one that it had before: that of its master, if it was a replica
-- ARGV[3]  seconds to keep the seal
-- ARGV[4]  the same where the new master is the one before this server: Sentinels that contradict
--          themselves may name this one again, to processes that have never heard of the other
-- returns  1 if this server refuses from now on; 0 if it is a replica, or has nothing to do with the
--          new master
local info = redis.call('INFO', 'replication')
local id, before = string.match(info, 'role:master.*master_replid:(%w+)%s+master_replid2:(%w+)')
if not id or (id ~= ARGV[2] and before ~= ARGV[1]) then
  return 0
end
redis.call('SET', KEYS[1], id, 'EX', id == ARGV[2] and ARGV[3] or ARGV[4])
return 1
