import { type Digest, isDigest } from '../../lib/canonical.ts';
import { isJsonObject, type Json, type JsonObject, textAt, parseJsonBytes } from '../../lib/json.ts';
import type { AuditedRun, AuditedTask } from '../../tool-audit/report.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { createDocumentStore } from '../jetstream/document-store.ts';
import { BUCKETS, bucketStream, bucketSubject, subjects, token } from '../jetstream/names.ts';
import { readMessages } from '../jetstream/stream-reader.ts';
import { notify } from '../notify/notifications.ts';

/** An audit of a tool of one agent by fresh agents. A gateway creates it, and the operator writes every further state. */
export interface ToolAudit {
  /** Unique; the attempt of its verifier pod. */
  readonly id: string;
  readonly agent: { readonly uid: string; readonly name: string; readonly namespace: string };
  readonly tool: string;
  readonly digest: Digest;
  readonly tasks: readonly string[];
  /** Of all sessions together. */
  readonly maxTokens: number;
  /** RFC 3339. */
  readonly requestedAt: string;
  readonly state: 'Requested' | 'Running' | 'Completed' | 'Failed';
  readonly pod?: { readonly name: string; readonly uid: string };
  /** RFC 3339: its last progress, or its end. */
  readonly since: string;
  /** Of the sessions that have ended: each task with the tool, then without it. */
  readonly runs: readonly AuditedRun[];
  /** `provider/model`. */
  readonly model?: string;
  readonly problem?: string;
}

export interface StoredToolAudit {
  readonly audit: ToolAudit;
  readonly revision: number;
}

/** The last audit of each tool of each agent. Methods throw TEMPER_BUS_*. */
export interface ToolAuditStore {
  get(agentUid: string, digest: Digest): Promise<StoredToolAudit | undefined>;
  /** Returns the new revision; undefined when another writer was faster. `revision` 0: only if there is none. */
  write(audit: ToolAudit, revision: number): Promise<number | undefined>;
  /** Those that were written after the sequence, oldest first. Entries that are not valid are omitted. */
  changed(after: number): AsyncIterable<StoredToolAudit>;
}

const BUCKET = BUCKETS.promotionStates;

export function createToolAuditStore(connection: JetStreamConnection): ToolAuditStore {
  const documents = createDocumentStore(connection, BUCKET);
  return {
    async get(agentUid, digest) {
      const found = await documents.get(keyOf(agentUid, digest));
      const audit = parseToolAudit(found?.value);
      return audit === undefined ? undefined : { audit, revision: found?.revision ?? 0 };
    },
    async write(audit, revision) {
      const written = await documents.write(keyOf(audit.agent.uid, audit.digest), audit as unknown as Json, revision);
      if (written !== undefined) notify(connection, subjects.notifyPromotions());
      return written;
    },
    async *changed(after) {
      const filter = bucketSubject(BUCKET, '*.audit.*');
      for await (const { seq, data } of readMessages(connection, bucketStream(BUCKET), filter, after + 1)) {
        const audit = parseToolAudit(parseJsonBytes(data));
        if (audit !== undefined) yield { audit, revision: seq };
      }
    },
  };
}

/** The tasks of which both sessions have ended. */
export function auditedTasks({ tasks, runs }: Pick<ToolAudit, 'tasks' | 'runs'>): AuditedTask[] {
  return tasks.flatMap((task, index): AuditedTask[] => {
    const [withTool, withoutTool] = runs.slice(2 * index, 2 * index + 2);
    return withTool === undefined || withoutTool === undefined ? [] : [{ task, withTool, withoutTool }];
  });
}

export function hasEnded({ state }: Pick<ToolAudit, 'state'>): boolean {
  return state === 'Completed' || state === 'Failed';
}

/** Three tokens, so that no reader of promotions takes it for one. */
function keyOf(agentUid: string, digest: Digest): string {
  return `${token(agentUid)}.audit.${digest.slice('sha256:'.length)}`;
}

const STATES: readonly string[] = ['Requested', 'Running', 'Completed', 'Failed'] satisfies ToolAudit['state'][];
const COUNTS = ['uses', 'toolCalls', 'turns', 'tokens'] as const;

/** Gateways and the operator write it. */
function parseToolAudit(value: Json | undefined): ToolAudit | undefined {
  if (!isJsonObject(value)) return undefined;
  const { digest, state, tasks, runs, maxTokens, agent } = value;
  const texts = [
    ['id'],
    ['tool'],
    ['requestedAt'],
    ['since'],
    ['agent', 'uid'],
    ['agent', 'name'],
    ['agent', 'namespace'],
  ];
  const isValid =
    isJsonObject(agent) &&
    texts.every((path) => textAt(value, path) !== '') &&
    isDigest(digest) &&
    typeof state === 'string' &&
    STATES.includes(state) &&
    typeof maxTokens === 'number' &&
    Array.isArray(tasks) &&
    tasks.every((task) => typeof task === 'string') &&
    Array.isArray(runs) &&
    runs.every(isRun);
  return isValid ? (value as unknown as ToolAudit) : undefined;
}

function isRun(value: Json): boolean {
  return isJsonObject(value) && typeof value.outcome === 'string' && hasCounts(value);
}

function hasCounts(value: JsonObject): boolean {
  return COUNTS.every((name) => typeof value[name] === 'number');
}
