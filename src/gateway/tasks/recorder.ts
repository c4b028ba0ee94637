import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import type { ToolCategoryName } from '../../api/v1alpha1/actions.ts';
import type { FinishReason } from '../../bus/port.ts';
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import type { StoredDeadLetter } from '../../nats/dead-letters/dead-letter-writer.ts';
import { outcomeOf } from '../../policy/trust/task-outcome.ts';
import type { PeerOutcome } from '../../bus/peer-task.ts';
import type { PeerTasks } from '../../nats/tasks/peer-tasks.ts';
import type { TaskEnd } from '../../nats/tasks/task-record.ts';
import type { TaskRecords } from '../../nats/tasks/task-records.ts';
import type { ToolCalls } from '../../tempering/hygiene/tool-calls.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { DeliveryTokenClaims } from '../delivery/token.ts';

/**
 * Records the tasks and the runs of schedules that this gateway sees, and the ends of the tasks of peers. A task is a message of a user; a
 * call of a program of a user is none. A record that cannot be stored is logged and lost.
 */
export interface TaskRecorder {
  answered(claims: DeliveryTokenClaims, finishReason: FinishReason): Promise<void>;
  deadLettered(letter: StoredDeadLetter): Promise<void>;
  /** The pod of the agent states which forged tools it called for this delivery. */
  called(claims: DeliveryTokenClaims, tools: readonly ToolCalls[]): Promise<void>;
  /** The gateway carried a call of a tool of this category, and the call succeeded. Never rejects. */
  used(claims: Pick<DeliveryTokenClaims, TaskClaim>, category: ToolCategoryName): Promise<void>;
}

type TaskClaim = 'agentUid' | 'message' | 'depth' | 'source' | 'isCall';

/** Categories of tasks that this process has stored and need not store again: further calls of a task cost nothing. */
const MAX_KNOWN_USES = 20_000;

/** A message of an older release without a source is of a user when it starts a chain. Replies and the like have no record. */
function isRecorded(source: string | undefined): boolean {
  return source === undefined || source === 'User' || source === 'Schedule';
}

/** A message of a user that is no call of a program. */
function isTask({ depth, source, isCall }: Pick<DeliveryTokenClaims, TaskClaim>): boolean {
  return depth === 0 && isRecorded(source) && source !== 'Schedule' && isCall !== true;
}

function scheduled(source: string | undefined): Pick<TaskEnd, 'source'> {
  return source === 'Schedule' ? { source } : {};
}

const PEER_OUTCOMES: Readonly<Record<FinishReason, PeerOutcome>> = {
  complete: 'Completed',
  truncated: 'Completed',
  refusal: 'Rejected',
};

export interface TaskRecorderDeps {
  readonly records: Pick<TaskRecords, 'end' | 'use' | 'called'>;
  readonly peers: Pick<PeerTasks, 'ended'>;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createTaskRecorder({ records, peers, clock, log }: TaskRecorderDeps): TaskRecorder {
  const known = new LRUCache<string, true>(entries(MAX_KNOWN_USES));
  const stored = async (agentUid: string, write: () => Promise<void>): Promise<boolean> => {
    try {
      await write();
      return true;
    } catch (error) {
      log.warn(
        { agentUid, error: messageOf(error, 200) },
        'a task was not recorded; it does not count for the trust of its agent or for its tools',
      );
      return false;
    }
  };
  return {
    async answered({ agentUid, message, session, depth, source, isCall, at }, finishReason) {
      if (source === 'Peer') {
        const end = { outcome: PEER_OUTCOMES[finishReason], at: clock.now().toISOString() };
        await stored(agentUid, () => peers.ended(agentUid, { session, message }, end));
      }
      if (depth > 0 || !isRecorded(source) || isCall === true) return;
      // An answer that was cut or refused is what the pod reports against itself; that it is complete stays the word of the pod.
      const outcome = finishReason === 'complete' ? 'completed' : 'failed';
      const { deliveries } = at;
      const ended = { deliveries, endedAt: clock.now().getTime(), ...scheduled(source) };
      const end = { message, session, outcome, ...ended } as const;
      await stored(agentUid, () => records.end(agentUid, end));
    },
    async deadLettered({ agentUid, message, deliveries, code }) {
      if (message?.source === 'Peer') {
        const { id, session } = message;
        const end = { outcome: 'Failed', code, at: clock.now().toISOString() } as const;
        await stored(agentUid, () => peers.ended(agentUid, { session, message: id }, end));
      }
      if (message === undefined || message.depth > 0 || !isRecorded(message.source)) return;
      if (message.call !== undefined) return;
      const { id, session, source } = message;
      const ended = { deliveries, endedAt: clock.now().getTime(), ...scheduled(source) };
      const end = { message: id, session, outcome: outcomeOf(code), ...ended };
      await stored(agentUid, () => records.end(agentUid, end));
    },
    async called({ agentUid, message, at }, tools) {
      const of = { message, deliveries: at.deliveries, endedAt: clock.now().getTime() };
      if (tools.length > 0) await stored(agentUid, () => records.called(agentUid, of, tools));
    },
    async used(claims, category) {
      const { agentUid, message } = claims;
      const use = `${agentUid}/${message}/${category}`;
      if (!isTask(claims) || known.has(use)) return;
      known.set(use, true);
      // The next call of the task stores what this one could not.
      if (!(await stored(agentUid, () => records.use(agentUid, message, category)))) known.delete(use);
    },
  };
}
