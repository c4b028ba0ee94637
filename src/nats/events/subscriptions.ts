import { MAX_AGENT_SUBSCRIPTIONS } from '../../events/limits.ts';
import {
  assertSubscriptionLimits,
  isLive,
  type NewSubscription,
  type Subscription,
} from '../../events/subscription.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, parseJsonBytes } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { createDocumentStore } from '../jetstream/document-store.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from '../jetstream/names.ts';
import { lastMessage, readMessages } from '../jetstream/stream-reader.ts';
import { createTriggerFires, type TriggerFireStore } from './trigger-fires.ts';

/** Methods throw TEMPER_BUS_*. */
export interface SubscriptionStore {
  /** Idempotent per key. Throws TEMPER_QUOTA_EXCEEDED beyond the limits of an agent and of its namespace. */
  add(owner: Owner, key: string, subscription: NewSubscription): Promise<Subscription>;
  /** False when the agent has no such subscription. */
  end(owner: Owner, id: string): Promise<boolean>;
  /** All that have not ended or expired. Reads again only what changed. */
  of(namespace: string): Promise<readonly Subscription[]>;
}

interface Owner {
  readonly uid: string;
  readonly namespace: string;
}

const MAX_ATTEMPTS = 5;
/** Namespaces whose subscriptions one process remembers. */
const MAX_CACHED = 1_000;

interface Cached {
  readonly revision: number;
  readonly all: readonly Subscription[];
}

export function createSubscriptions(connection: JetStreamConnection): SubscriptionStore {
  const documents = createDocumentStore(connection, BUCKETS.triggers);
  const stream = bucketStream(BUCKETS.triggers);
  const fires: Pick<TriggerFireStore, 'remove'> = createTriggerFires(connection);
  const cache = new Map<string, Cached>();
  const live = (all: readonly Subscription[]): Subscription[] =>
    all.filter((one) => isLive(one, connection.clock.now().getTime()));
  const of = async (namespace: string): Promise<readonly Subscription[]> => {
    const filter = bucketSubject(BUCKETS.triggers, `*.subscription.${token(namespace)}.*`);
    const revision = (await lastMessage(connection, stream, filter))?.seq ?? 0;
    const known = cache.get(namespace);
    if (known?.revision === revision) return live(known.all);
    const all: Subscription[] = [];
    for await (const { data } of readMessages(connection, stream, filter)) {
      const found = parseSubscription(parseJsonBytes(data));
      if (found !== undefined) all.push(found);
    }
    cache.delete(namespace);
    cache.set(namespace, { revision, all });
    if (cache.size > MAX_CACHED) cache.delete(cache.keys().next().value ?? '');
    return live(all);
  };
  return {
    of,
    async add(owner, key, subscription) {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
        const all = await of(owner.namespace);
        const own = all.filter(({ agentUid }) => agentUid === owner.uid);
        const repeated = own.find(({ id }) => id.endsWith(`-${key}`));
        if (repeated !== undefined) return repeated;
        assertSubscriptionLimits(own.length, all.length);
        const slot = freeSlot(own);
        const stored = await documents.get(keyOf(owner, slot));
        const before = parseSubscription(stored?.value);
        // Another process took the slot meanwhile.
        if (before !== undefined && live([before]).length > 0) continue;
        const gone = before?.id ?? endedId(stored?.value);
        if (gone !== undefined) await fires.remove(owner.uid, gone);
        const added: Subscription = { ...subscription, id: `${slot}-${key}`, agentUid: owner.uid };
        const value = added as unknown as Json;
        if ((await documents.write(keyOf(owner, slot), value, stored?.revision ?? 0)) !== undefined) return added;
      }
      throw new TemperError('TEMPER_BUS_UNAVAILABLE', 'the subscriptions changed too often; try again', {
        retry: 'backoff',
      });
    },
    async end(owner, id) {
      const slot = id.split('-', 1)[0] ?? '';
      if (!/^[0-9]{1,2}$/.test(slot)) return false;
      const stored = await documents.get(keyOf(owner, Number(slot)));
      if (parseSubscription(stored?.value)?.id !== id) return false;
      // Names what to forget for the case that this process ends now: the next subscription with the slot does it.
      if ((await documents.write(keyOf(owner, Number(slot)), { ended: id }, stored?.revision ?? 0)) === undefined)
        return false;
      await fires.remove(owner.uid, id);
      return true;
    },
  };
}

/** So the keys of an agent are as many as its limit. */
function freeSlot(own: readonly Subscription[]): number {
  const used = new Set(own.map(({ id }) => Number(id.split('-', 1)[0])));
  for (let slot = 0; slot < MAX_AGENT_SUBSCRIPTIONS; slot += 1) if (!used.has(slot)) return slot;
  return MAX_AGENT_SUBSCRIPTIONS - 1;
}

function keyOf({ uid, namespace }: Owner, slot: number): string {
  return `${token(uid)}.subscription.${token(namespace)}.${slot}`;
}

/** A subscription that its agent ended; readers of subscriptions see none. */
function endedId(value: Json | undefined): string | undefined {
  return isJsonObject(value) && typeof value.ended === 'string' ? value.ended : undefined;
}

const TEXTS = ['id', 'agentUid', 'subject', 'message', 'session', 'expiresAt'];

/** Only gateways write these documents, so their form is checked as far as it decides. */
function parseSubscription(value: Json | undefined): Subscription | undefined {
  if (!isJsonObject(value) || !TEXTS.every((name) => typeof value[name] === 'string')) return undefined;
  if (value.maxFires !== undefined && !Number.isSafeInteger(value.maxFires)) return undefined;
  return value as unknown as Subscription;
}
