import type { AuditRecord } from '../../audit/port.ts';
import type { ForgeCaller, RefusedTool, RejectionClass } from '../../forge/types.ts';
import type { Clock } from '../../lib/clock.ts';
import { printable } from '../../lib/printable.ts';
import { type JsonObject, member } from '../../lib/json.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { pathSegment } from './object-name.ts';
import { verdictFacts } from './verdict-facts.ts';

/** Attempts stored per agent; a new one overwrites the oldest. */
const MAX_ATTEMPTS = 100;
const MAX_DETAIL_CHARACTERS = 8_192;

/** A rejected forge attempt, stored as evidence. */
export interface RejectedAttempt {
  seq: number;
  time: string;
  tool: string;
  digest?: string;
  session: string;
  gate: string;
  code: string;
  class: RejectionClass;
  message: string;
}

/** The audit record of a refused tool. `reported`: a pod states that it refused the tool; this process did not run the gate. */
export function rejectionRecord(
  refused: RefusedTool,
  caller: ForgeCaller,
  evidence: AuditRecord['evidence'],
): AuditRecord {
  const tool = printable(refused.name, 80);
  return {
    action: 'tool.refused',
    actor: `agent/${caller.agent}`,
    evidence,
    subject: refused.digest ?? tool,
    facts: {
      tool,
      gate: refused.gate,
      code: refused.code,
      class: refused.class,
      session: printable(caller.session, 100),
      rootMessage: printable(caller.rootMessage, 100),
      authorModel: printable(caller.authorModel, 128),
      message: printable(refused.message, 1_000),
      ...(refused.verdict === undefined ? {} : { verdicts: [verdictFacts(refused.verdict)] }),
    },
  };
}

export interface RejectedAttemptStore {
  add(refused: RefusedTool, caller: ForgeCaller): Promise<void>;
  /** The last 100 of the agent, oldest first. */
  list(agent: string, namespace: string): Promise<RejectedAttempt[]>;
}

/** Stores rejected attempts as documents `rejected/<namespace>/<agent>/attempt-00…99`. */
export function createRejectedAttemptStore(records: RecordStore, clock: Clock): RejectedAttemptStore {
  const last = new Map<string, Promise<number>>();
  const nextSeq = async (collection: string): Promise<number> => {
    const next = (last.get(collection) ?? lastSeq(records, collection)).then((seq) => seq + 1);
    last.set(collection, next);
    return next;
  };
  return {
    async add(refused, caller) {
      const collection = collectionOf(caller.agent, caller.namespace);
      const seq = await nextSeq(collection);
      const details = JSON.stringify(refused.details);
      const attempt = {
        seq,
        time: clock.now().toISOString(),
        tool: printable(refused.name, 80),
        ...(refused.digest === undefined ? {} : { digest: refused.digest }),
        session: printable(caller.session, 100),
        rootMessage: printable(caller.rootMessage, 100),
        authorModel: printable(caller.authorModel, 128),
        gate: refused.gate,
        code: refused.code,
        class: refused.class,
        message: printable(refused.message, 4_096),
        details: details.length > MAX_DETAIL_CHARACTERS ? { truncated: true } : refused.details,
        gates: refused.gates.map(({ gate, passed, note }) => ({ gate, passed, note: printable(note, 200) })),
      };
      await records.put(
        collection,
        `attempt-${String(seq % MAX_ATTEMPTS).padStart(2, '0')}`,
        attempt as unknown as JsonObject,
      );
    },
    async list(agent, namespace) {
      const found = await records.list(collectionOf(agent, namespace));
      return found.map(({ value }) => value as unknown as RejectedAttempt).sort((a, b) => a.seq - b.seq);
    },
  };
}

async function lastSeq(records: RecordStore, collection: string): Promise<number> {
  let last = 0;
  for (const { value } of await records.list(collection)) {
    const seq = member(value, 'seq');
    if (typeof seq === 'number' && seq > last) last = seq;
  }
  return last;
}

function collectionOf(agent: string, namespace: string): string {
  return `rejected/${pathSegment(namespace)}/${pathSegment(agent)}`;
}
