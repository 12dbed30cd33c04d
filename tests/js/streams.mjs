// Runs today's published client over one HTTP transport, for tests/live/streaming/test_stream_js.py.
//
// The only argument is a JSON object: transport, down (URL of the stream), up (URL of /emulation),
// token, channel. It connects and subscribes. Each line of stdin is data to publish; each line of
// stdout is a JSON array: name of an event, and its context. The process ends with its stdin.

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const require = createRequire(import.meta.url);
const { Centrifuge } = require('centrifuge-5');
const EventSource = require('eventsource');

const { transport, down, up, token, channel } = JSON.parse(process.argv[2]);

function write(name, context) {
  process.stdout.write(`${JSON.stringify([name, context])}\n`);
}

function tell(emitter, prefix, names) {
  for (const name of names) {
    emitter.on(name, (context) => write(prefix + name, context));
  }
}

const client = new Centrifuge([{ transport, endpoint: down }], {
  emulationEndpoint: up,
  eventsource: EventSource,
  token,
  minReconnectDelay: 20,
  maxReconnectDelay: 100,
});
tell(client, '', ['connected', 'connecting', 'disconnected']);
const subscription = client.newSubscription(channel);
tell(subscription, 'channel ', ['subscribed', 'publication', 'error', 'unsubscribed']);
subscription.subscribe();
client.connect();

createInterface({ input: process.stdin })
  .on('line', (line) => {
    // a connection that is cut takes the reply along, not the publication
    client.publish(channel, JSON.parse(line)).catch((error) => write('no reply', error));
  })
  .on('close', () => process.exit(0));
