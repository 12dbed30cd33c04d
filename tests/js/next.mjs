// Clients of the second generation for driver.mjs: the builds from version 3 on.
//
// Events of a subscription, and of a server-side one, are told with their channel. A token that the
// client wants is asked for by a question, "refresh" or "private"; a position by "state".

const CLIENT_EVENTS = [
  'connecting', 'connected', 'disconnected', 'subscribed', 'unsubscribed', 'subscribing',
  'publication', 'join', 'leave', 'error',
];
const SUBSCRIPTION_EVENTS = [
  'subscribing', 'subscribed', 'unsubscribed', 'publication', 'join', 'leave', 'error',
];

const withBytes = (value, encode) => (value === undefined ? undefined : encode(value));

export class Driven {
  constructor(name, { write, plain, require, websocket }, { module, url, token, options }) {
    this.name = name;
    this.write = write;
    this.plain = plain;
    this.binary = module.endsWith('/protobuf');
    this.questions = new Map();
    this.socket = websocket.counts;
    const { Centrifuge } = require(module);
    const { sockjs, stream, ...rest } = options;
    const transport = stream ?? (sockjs && 'sockjs');
    this.centrifuge = new Centrifuge(transport ? [{ transport, endpoint: url }] : url, {
      ...rest,
      ...(token === null ? {} : { token }),
      ...(sockjs ? {
        sockjs: require('sockjs-client'),
        sockjsOptions: { transports: [sockjs], timeout: 10_000 },
      } : {
        websocket: websocket.made,
      }),
      ...(stream ? {
        fetch, readableStream: ReadableStream, eventsource: require('eventsource'),
      } : {}),
      getToken: () => this.askToken('refresh', {}),
    });
    for (const event of CLIENT_EVENTS) {
      this.centrifuge.on(event, (context) => this.report(event, context.channel, context));
    }
  }

  report(event, channel, context) {
    const { error, ...rest } = context;
    this.write({
      client: this.name,
      event,
      channel,
      context: { ...this.plain(rest), ...(error && { error: { code: error.code, message: error.message } }) },
    });
  }

  ask(question, data) {
    const number = this.questions.size + 1;
    this.write({ client: this.name, question, number, data });
    return new Promise((resolve) => {
      this.questions.set(number, (response) => resolve(response.data));
    });
  }

  async askToken(question, data) {
    return (await this.ask(question, data)).token;
  }

  payload(data) {
    return withBytes(data, (value) => (
      this.binary ? new TextEncoder().encode(JSON.stringify(value)) : value
    ));
  }

  subscribe(channel, { asksToken, asksState, data, ...options }) {
    let subscription = this.centrifuge.getSubscription(channel);
    if (subscription === null) {
      subscription = this.centrifuge.newSubscription(channel, {
        ...options,
        ...(asksToken && { getToken: () => this.askToken('private', { channel, client: this.id() }) }),
        ...(asksState && { getState: () => this.ask('state', { channel }) }),
      });
      for (const event of SUBSCRIPTION_EVENTS) {
        subscription.on(event, (context) => this.report(event, channel, context));
      }
    }
    subscription.subscribe();
  }

  subscribeMap(channel, options) {
    const { kind = 'Map', ...rest } = options;
    const subscription = this.centrifuge[`new${kind}Subscription`](channel, rest);
    for (const event of [...SUBSCRIPTION_EVENTS, 'sync', 'update']) {
      subscription.on(event, (context) => this.report(event, channel, context));
    }
    subscription.subscribe();
  }

  id() {
    return this.centrifuge._client;
  }

  of(channel) {
    return this.centrifuge.getSubscription(channel);
  }
}

export const ACTIONS = {
  connect: (client) => client.centrifuge.connect(),
  disconnect: (client) => client.centrifuge.disconnect(),
  subscribe: (client, { channel, options = {} }) => client.subscribe(channel, options),
  unsubscribe: (client, { channel }) => client.of(channel).unsubscribe(),
  subscribeMap: (client, { channel, options }) => client.subscribeMap(channel, options),
  subscribeAgain: (client, { channel }) => client.of(channel).subscribe(),
  setTagsFilter: (client, { channel, filter }) => client.of(channel).setTagsFilter(filter),
  put: (client, { channel, key, data }) => client.of(channel).publish(key, client.payload(data)),
  removeKey: (client, { channel, key }) => client.of(channel).remove(key),
  publish: (client, { channel, data }) => client.centrifuge.publish(channel, client.payload(data)),
  presence: (client, { channel }) => client.centrifuge.presence(channel),
  presenceStats: (client, { channel }) => client.centrifuge.presenceStats(channel),
  history: (client, { channel, options }) => client.centrifuge.history(channel, options),
  rpc: (client, { method, data }) => client.centrifuge.rpc(method, client.payload(data)),
  send: (client, { data }) => client.centrifuge.send(client.payload(data)),
  deltaStats: (client, { channel }) => client.of(channel).deltaStats(),
  socket: (client) => client.socket,
  answer: (client, { number, response }) => client.questions.get(number)(response),
};
