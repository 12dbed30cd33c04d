// Types of the channels of this site, by `manage.py realtime types`. Do not edit: make it anew.

import type {
  ChannelHandle,
  HandlerOptions,
  HistoryOptions,
  Publication,
  SubscribeContext,
  Subscription,
  SubscriptionEvents,
  SubscriptionOptions,
  WaitOptions,
} from "realtime";

/* The types of the site stand here. */

export type Pattern = keyof Channels;

/** What subscribers get. */
export type Received<P extends Pattern> = Channels[P]["receives"];

export type TypedPublication<P extends Pattern> = Omit<Publication, "data"> & { data: Received<P> };

export type TypedEvents<P extends Pattern> = Omit<
  SubscriptionEvents,
  "publication" | "publish" | "subscribed" | "subscribe"
> & {
  publication: TypedPublication<P>;
  subscribed: Omit<SubscribeContext, "publications"> & { publications: TypedPublication<P>[] };
};

interface Typed<P extends Pattern> {
  on<Name extends keyof TypedEvents<P>>(
    name: Name,
    handler: (context: TypedEvents<P>[Name]) => void,
    options?: HandlerOptions,
  ): () => void;
  once<Name extends keyof TypedEvents<P>>(
    name: Name,
    handler: (context: TypedEvents<P>[Name]) => void,
    options?: HandlerOptions,
  ): () => void;
  off<Name extends keyof TypedEvents<P>>(
    name: Name,
    handler: (context: TypedEvents<P>[Name]) => void,
  ): void;
  publish(data: Channels[P]["accepts"]): Promise<void>;
}

export type TypedSubscription<P extends Pattern> = Omit<
  Subscription,
  keyof Typed<P> | "history" | "publications" | typeof Symbol.asyncIterator
> &
  Typed<P> & {
    history(options?: HistoryOptions & WaitOptions): Promise<TypedPublication<P>[]>;
    publications(options?: { limit?: number }): AsyncGenerator<TypedPublication<P>, void, unknown>;
    [Symbol.asyncIterator](): AsyncGenerator<TypedPublication<P>, void, unknown>;
  };

export type TypedHandle<P extends Pattern> = Omit<ChannelHandle, keyof Typed<P> | "subscription"> &
  Typed<P> & { subscription: TypedSubscription<P> };

declare module "realtime" {
  interface Client {
    subscribe<P extends Pattern>(
      channel: Channels[P]["name"],
      options?: SubscriptionOptions,
    ): TypedSubscription<P>;
    channel<P extends Pattern>(
      channel: Channels[P]["name"],
      options?: SubscriptionOptions,
    ): TypedHandle<P>;
    publish<P extends Pattern>(
      channel: Channels[P]["name"],
      data: Channels[P]["accepts"],
    ): Promise<void>;
    history<P extends Pattern>(
      channel: Channels[P]["name"],
      options?: HistoryOptions & WaitOptions,
    ): Promise<TypedPublication<P>[]>;
  }
}
