import { type Json, parseJsonBytes } from '../../lib/json.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { createDocumentStore } from '../jetstream/document-store.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from '../jetstream/names.ts';
import { purge, readMessages } from '../jetstream/stream-reader.ts';
import { newResident, parseResident, type Resident, type ResidentAgent } from './resident.ts';

export interface StoredResident {
  resident: Resident;
  revision: number;
}

/**
 * One entry per agent with stored data, key `agent.<namespace>.<uid>`. Reading all of them costs as much as there are agents, however
 * many messages and sessions they have. Methods throw TEMPER_BUS_*.
 */
export interface Residents {
  /** Entries of a namespace, or of all namespaces. */
  list(namespace?: string): AsyncGenerator<StoredResident>;
  /** Writes the entry of an agent that has none. */
  ensure(agent: ResidentAgent, release: string): Promise<void>;
  /**
   * Reads the entry, changes it and writes it unless another writer changed it meanwhile; then it starts again. `change` returns
   * undefined to keep the entry. Returns the entry that is stored afterwards; undefined when there is none.
   */
  update(agent: ResidentAgent, change: (current: Resident) => Resident | undefined): Promise<Resident | undefined>;
  /** Deletes the entry. Idempotent. */
  remove(agent: ResidentAgent): Promise<void>;
}

const STREAM = bucketStream(BUCKETS.residents);
const MAX_ATTEMPTS = 8;

export function createResidents(connection: JetStreamConnection): Residents {
  const documents = createDocumentStore(connection, BUCKETS.residents);
  const read = async (agent: ResidentAgent) => {
    const found = await documents.get(keyOf(agent));
    return { resident: parseResident(found?.value), revision: found?.revision ?? 0 };
  };
  return {
    async *list(namespace) {
      const filter = bucketSubject(BUCKETS.residents, `agent.${namespace === undefined ? '*' : token(namespace)}.*`);
      for await (const { data, seq } of readMessages(connection, STREAM, filter)) {
        const resident = parseResident(parseJsonBytes(data));
        if (resident !== undefined) yield { resident, revision: seq };
      }
    },
    async ensure(agent, release) {
      const { resident, revision } = await read(agent);
      if (resident !== undefined) return;
      const entry = newResident(agent, release, connection.clock.now());
      // Undefined: another process wrote it first.
      await documents.write(keyOf(agent), entry as unknown as Json, revision);
    },
    async update(agent, change) {
      for (let attempt = 1; ; attempt += 1) {
        const { resident, revision } = await read(agent);
        if (resident === undefined) return undefined;
        const next = change(resident);
        if (next === undefined) return resident;
        if ((await documents.write(keyOf(agent), next as unknown as Json, revision)) !== undefined) return next;
        // The next look at this agent repeats the change.
        if (attempt === MAX_ATTEMPTS) return resident;
      }
    },
    remove: (agent) => purge(connection, STREAM, bucketSubject(BUCKETS.residents, keyOf(agent))),
  };
}

function keyOf({ namespace, uid }: ResidentAgent): string {
  return `agent.${token(namespace)}.${token(uid)}`;
}
