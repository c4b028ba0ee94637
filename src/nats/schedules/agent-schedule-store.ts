import { TemperError } from '../../lib/errors.ts';
import { type Json, parseJsonBytes } from '../../lib/json.ts';
import {
  type AgentSchedules,
  noSchedules,
  parseAgentSchedules,
  type ScheduleOwner,
  storedSchedules,
} from '../../schedule/agent-schedules.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { createDocumentStore } from '../jetstream/document-store.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from '../jetstream/names.ts';
import { lastMessage, lastMessages, readMessages } from '../jetstream/stream-reader.ts';

/** The schedules that agents made, one document per agent, beside the states of all schedules. Methods throw TEMPER_BUS_*. */
export interface AgentScheduleStore {
  read(agent: ScheduleOwner): Promise<AgentSchedules>;
  /** Stores what `change` returns for the stored document, and calls it again when another writer came between. What it throws is thrown. */
  update(agent: ScheduleOwner, change: (before: AgentSchedules) => AgentSchedules): Promise<AgentSchedules>;
  /** Those of all agents of a namespace. */
  ofNamespace(namespace: string): Promise<AgentSchedules[]>;
  /** Documents written after this sequence, and the sequence to continue with. */
  changes(after: number): Promise<{ changed: AgentSchedules[]; sequence: number }>;
  /** Changes with every write; 0 while nothing was written. */
  revision(): Promise<number>;
}

const MAX_ATTEMPTS = 20;

export function createAgentScheduleStore(connection: JetStreamConnection): AgentScheduleStore {
  const documents = createDocumentStore(connection, BUCKETS.schedules);
  const stream = bucketStream(BUCKETS.schedules);
  const keyOf = ({ uid, namespace }: ScheduleOwner): string => `${token(uid)}.${token(namespace)}.own`;
  return {
    async read(agent) {
      return parseAgentSchedules((await documents.get(keyOf(agent)))?.value) ?? noSchedules(agent);
    },
    async update(agent, change) {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
        const stored = await documents.get(keyOf(agent));
        const before = parseAgentSchedules(stored?.value) ?? noSchedules(agent);
        const after = change(before);
        if (after === before) return before;
        const value = storedSchedules(after) as Json;
        if ((await documents.write(keyOf(agent), value, stored?.revision ?? 0)) !== undefined) return after;
      }
      throw new TemperError(
        'TEMPER_BUS_UNAVAILABLE',
        `the schedules of agent "${agent.name}" change all the time; retry`,
      );
    },
    async ofNamespace(namespace) {
      const filter = bucketSubject(BUCKETS.schedules, `*.${token(namespace)}.own`);
      const all: AgentSchedules[] = [];
      for await (const { data } of latest(connection, stream, filter)) {
        const found = parseAgentSchedules(parseJsonBytes(data));
        if (found !== undefined) all.push(found);
      }
      return all;
    },
    async changes(after) {
      const changed: AgentSchedules[] = [];
      let sequence = after;
      for await (const { data, seq } of readMessages(connection, stream, everyDocument(), after + 1)) {
        const found = parseAgentSchedules(parseJsonBytes(data));
        if (found !== undefined) changed.push(found);
        sequence = seq;
      }
      return { changed, sequence };
    },
    async revision() {
      return (await lastMessage(connection, stream, everyDocument()))?.seq ?? 0;
    },
  };
}

async function* latest(connection: JetStreamConnection, stream: string, filter: string) {
  const found = await lastMessages(connection, stream, [filter]);
  if (found === undefined) yield* readMessages(connection, stream, filter);
  else yield* found;
}

function everyDocument(): string {
  return bucketSubject(BUCKETS.schedules, '*.*.own');
}
