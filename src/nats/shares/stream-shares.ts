import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import { SerialQueue } from '../../lib/async/serial-queue.ts';
import { SingleFlight } from '../../lib/async/single-flight.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { Reconnects } from '../connection/reconnects.ts';
import { BUCKETS, bucketStream, bucketSubject, STREAMS, token } from '../jetstream/names.ts';
import { purge, streamMaxBytes } from '../jetstream/stream-reader.ts';
import { type Cut, Generations } from './generations.ts';

/** A stream that removes its oldest messages when it is full, and in which agents therefore have shares. */
interface SharedStream {
  stream: string;
  /** Begins the subjects of the stream, and ends with a dot. */
  prefix: string;
  /** Position of the agent's UID among the tokens after the prefix. */
  uidAt: number;
  /** The subjects of one agent. */
  subjectsOf: (agentUid: string) => string;
}

const SHARED_STREAMS: readonly SharedStream[] = [
  agentStream(STREAMS.events, 'temper.events.'),
  agentStream(STREAMS.replies, 'temper.replies.'),
  agentStream(STREAMS.deadLetters, 'temper.deadletters.'),
  agentStream(bucketStream(BUCKETS.acked), bucketSubject(BUCKETS.acked, '')),
  evidenceStream(STREAMS.reports, 'temper.reports.'),
  evidenceStream(STREAMS.activity, 'temper.activity.'),
];

/** Streams in which a gateway removes messages of agents that exceed their share. */
export const TRIMMED_STREAMS: readonly string[] = SHARED_STREAMS.map(({ stream }) => stream);

function agentStream(stream: string, prefix: string): SharedStream {
  return { stream, prefix, uidAt: 0, subjectsOf: (agentUid) => `${prefix}${token(agentUid)}.>` };
}

/** The namespace comes before the UID in the subjects of evidence. */
function evidenceStream(stream: string, prefix: string): SharedStream {
  return { stream, prefix, uidAt: 1, subjectsOf: (agentUid) => `${prefix}*.${token(agentUid)}` };
}

/** Messages that were removed because an agent or a namespace stored more than its share of a stream. */
export interface Trimmed {
  stream: string;
  scope: 'agent' | 'namespace';
  /** Undefined for an agent that does not exist any more. */
  namespace: string | undefined;
  /** The agent whose message exceeded the share. */
  agentUid: string;
}

export interface StreamSharesDeps {
  connection: JetStreamConnection;
  /** Share of each stream for the agents of one namespace together, in percent. */
  namespacePercent: number;
  /** The namespace of an agent; undefined when it does not exist. */
  namespaceOf: (agentUid: string) => string | undefined;
  onTrimmed: (trimmed: Trimmed) => void;
  /** Called when messages could not be removed. The next message beyond the share removes them. */
  onError: (error: unknown) => void;
}

/** Share of one agent, in percent of the stream. */
const AGENT_PERCENT = 10;
/** An agent reaches several gateways, each of which counts only what it stores itself. */
const GATEWAYS = 4;
const SIZE_TTL_MS = 300_000;
const MAX_COUNTED = 20_000;

/**
 * Shares of agents and namespaces in the streams that remove their oldest messages when they are full. What one agent or namespace stores
 * beyond its share removes its own oldest messages, so that it never removes those of others. Counts only what one process publishes.
 */
export class StreamShares {
  readonly #deps: StreamSharesDeps;
  readonly #generations = new LRUCache<string, Generations>(entries(MAX_COUNTED));
  readonly #sizes = new Map<string, { bytes: number; readAt: number }>();
  readonly #sizeReads = new SingleFlight<void>();
  readonly #trims = new SerialQueue();
  readonly #reconnects: Reconnects;

  constructor(deps: StreamSharesDeps) {
    this.#deps = deps;
    this.#reconnects = new Reconnects(deps.connection);
  }

  /** Resolves when everything that was found to be beyond a share is removed. */
  idle(): Promise<void> {
    return this.#trims.idle();
  }

  /** Counts a message of any subject that this process has published. */
  count(subject: string, bytes: number, sequence: number): void {
    const shared = SHARED_STREAMS.find(({ prefix }) => subject.startsWith(prefix));
    const agentUid = shared === undefined ? undefined : subject.slice(shared.prefix.length).split('.')[shared.uidAt];
    if (shared === undefined || agentUid === undefined) return;
    if (this.#reconnects.happened()) this.#generations.clear();
    const size = this.#sizeOf(shared.stream);
    if (size === undefined) return;
    const namespace = this.#deps.namespaceOf(agentUid);
    const scopes = [
      { scope: 'agent', key: `${shared.stream}/agent/${agentUid}`, percent: AGENT_PERCENT },
      { scope: 'namespace', key: `${shared.stream}/namespace/${namespace}`, percent: this.#deps.namespacePercent },
    ] as const;
    for (const { scope, key, percent } of scopes) {
      if (scope === 'namespace' && namespace === undefined) continue;
      const share = (size * percent) / 100 / GATEWAYS;
      const cut = this.#generationsOf(key).add(agentUid, bytes, sequence, share);
      if (cut !== undefined) this.#remove(shared, cut, { stream: shared.stream, scope, namespace, agentUid });
    }
  }

  #generationsOf(key: string): Generations {
    const known = this.#generations.get(key) ?? new Generations();
    this.#generations.set(key, known);
    return known;
  }

  #remove({ stream, subjectsOf }: SharedStream, { before, agents }: Cut, trimmed: Trimmed): void {
    const { connection, onTrimmed, onError } = this.#deps;
    const since = connection.state().since.getTime();
    this.#trims
      .run(async () => {
        for (const agentUid of agents) {
          // After a reconnect the store may be another one, in which the sequence means other messages.
          if (connection.state().since.getTime() !== since) return;
          await purge(connection, stream, subjectsOf(agentUid), before);
        }
        onTrimmed(trimmed);
      })
      .catch(onError);
  }

  /** The last known size, which is read again in the background. */
  #sizeOf(stream: string): number | undefined {
    const { connection, onError } = this.#deps;
    const now = connection.clock.monotonic();
    const known = this.#sizes.get(stream);
    if (known === undefined || now - known.readAt >= SIZE_TTL_MS) {
      const read = async (): Promise<void> => {
        this.#sizes.set(stream, { bytes: await streamMaxBytes(connection, stream), readAt: now });
      };
      this.#sizeReads.run(stream, read).catch(onError);
    }
    return known?.bytes;
  }
}
