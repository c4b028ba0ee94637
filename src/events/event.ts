import type { Json } from '../lib/json.ts';

/** What published an event. */
type PublisherKind = 'Agent' | 'Platform' | 'Webhook';

/** An event that was accepted in a namespace. */
export interface PublishedEvent {
  readonly id: string;
  readonly subject: string;
  readonly data: Json;
  readonly source: PublisherKind;
  /** The agent that published it, that it is about, or whose webhook got it. */
  readonly agent: string;
  /** RFC 3339. */
  readonly time: string;
  /** It came from outside of the namespace, or from a session with untrusted content. */
  readonly tainted: boolean;
  /** The chain of messages that the event continues. Without one, each message that it causes starts a chain. */
  readonly chain?: EventChain;
}

export interface EventChain {
  readonly root: string;
  /** Of the messages that the event causes. */
  readonly depth: number;
  /** RFC 3339. */
  readonly deadline: string;
  /** UIDs of the agents that the chain passed, the publisher last. */
  readonly ancestors: readonly string[];
}
