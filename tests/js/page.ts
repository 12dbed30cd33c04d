// A page in TypeScript, checked against the types of the client module by test_types.py.

import { ChannelHandle, Client, ErrorCode, RealtimeError, Subscription, tokensFrom } from "realtime";
import type {
  ClientInfo,
  LeftContext,
  Options,
  Position,
  Publication,
  StateContext,
  TransportName,
} from "realtime";
import { answer, answers } from "realtime/answers";
import { inspect } from "realtime/inspect";
import { liveClient, RealtimeLive } from "realtime/live";
import { map, MapHandle } from "realtime/maps";

const options: Options = {
  token: null,
  timeouts: { ping: 1000 },
  transports: ["websocket"],
  ...tokensFrom({ refresh: "/centrifuge/refresh", headers: { "X-CSRFToken": "x" } }),
};
const client = new Client("/connection/websocket", options);
Client.fromPage({ name: "page" }).connect();

const off: () => void = client.on("state", ({ delay }: StateContext) => delay?.toFixed());
client.on("publication", ({ channel, data }) => console.log(channel.length, data.anything));
client.on("disconnect", ({ code, reason, reconnect }) => console.log(code + 1, reason, !reconnect));
off();
const inspector: { close: () => void } = inspect(client);
client.on("frame", ({ sent, received }) => console.log(sent?.length, received?.length));
client.subscriptions.map(({ channel, position }) => [channel, position?.offset]);
inspector.close();

const room: Subscription = client.subscribe("$room", {
  since: { offset: 1, epoch: "e" },
  getToken: async ({ client, channel }) => client + channel,
});
room.on("subscribed", ({ publications }) => publications[0]?.offset?.toFixed());
room.on("join", ({ info }) => info.user.length);
room.on("error", ({ code, channel }) => console.log(code + 1, channel));

export async function use(): Promise<Position | null> {
  try {
    await client.ready();
    await room.publish({ text: "hi" });
  } catch (error) {
    if (error instanceof RealtimeError && error.code === ErrorCode.TIMEOUT) return null;
  }
  const present: Record<string, ClientInfo> = await room.presence();
  const kept: Publication[] = await client.history("$room");
  const { numUsers }: { numUsers: number } = await room.presenceStats();
  for await (const { data } of room) console.log(data, present, kept, numUsers);
  for await (const { recovered } of room.publications({ limit: 5 })) if (recovered) break;
  return room.position;
}

export async function parts(signal: AbortSignal): Promise<unknown> {
  const handle: ChannelHandle = client.channel("chat:lobby");
  handle.once("subscribed", ({ recovered }) => console.log(recovered), { signal });
  handle.on("unsubscribed", ({ code, reason }: LeftContext) => console.log(code + 1, reason));
  handle.on("publish", ({ data }) => console.log(data)); // the earlier name
  await handle.subscription.ready({ timeout: 1000, signal });
  handle.release();
  const since = room.position ?? { offset: 0, epoch: "" };
  const [first] = await room.history({ limit: 5, since, reverse: true });
  return client.rpc("add", first?.info?.connInfo, { timeout: 100, signal });
}

export async function blocks(): Promise<void> {
  const shared: Client = liveClient();
  shared.on("state", ({ state }) => console.log(state));
  const block = document.querySelector<RealtimeLive>("realtime-live");
  await block?.load();
}

export const transport: TransportName | null = client.transport;

// @ts-expect-error there is no such option
new Client("/connection/websocket", { tokn: "" });
// @ts-expect-error there is no such event
client.on("connected", () => {});
// @ts-expect-error contexts have the fields that they have
client.on("connect", ({ channel }) => channel);
// @ts-expect-error a channel has a name
client.subscribe(5);
// @ts-expect-error who is there is said by connection ID
(await room.presence()).length;

const handle = answer(client, "0190");
const stopped: Promise<string> = handle.stop();
for await (const { text, parts, status } of handle) console.log(text.length, parts.length, status);
for await (const { id, status } of answers(client, "chat:42")) console.log(id, status, stopped);

const lobby: MapHandle = map(client, "lobby:7", { since: { offset: 3, epoch: "e" }, entries: { a: 1 } });
lobby.on("sync", ({ entries }) => console.log(entries.size, lobby.get("a")));
const offUpdate: () => void = lobby.on("update", ({ key, removed }) => console.log(key.length, removed));
await lobby.put("a", 2).then(() => lobby.remove("a")).then(offUpdate);
// @ts-expect-error entries are changed by put
lobby.entries.set("a", 3);
