import { TemperError } from '../../lib/errors.ts';
import type { CountedStore, StoredBytes } from './resident.ts';

export interface StorageLimits {
  /** Bytes of the history of one session. */
  sessionBytes: number;
  /** Bytes of one agent. */
  agentBytes: StoredBytes;
  /** Share of what other namespaces leave free of each stream and bucket, for the agents of one namespace together, in percent. */
  namespacePercent: number;
}

const MIB = 1_024 * 1_024;

export const DEFAULT_STORAGE_LIMITS: StorageLimits = {
  sessionBytes: 16 * MIB,
  agentBytes: {
    sessions: 64 * MIB,
    sessionTools: 16 * MIB,
    sources: 8 * MIB,
    memory: 16 * MIB,
    evidence: 16 * MIB,
    inbox: 32 * MIB,
    tasks: 2 * MIB,
    requests: 16 * MIB,
  },
  namespacePercent: 50,
};

export const STORE_NAMES: Record<CountedStore, string> = {
  sessions: 'conversations',
  sessionTools: 'session tools',
  sources: 'withheld sources',
  memory: 'memory',
  evidence: 'recorded inputs',
  inbox: 'waiting messages',
  tasks: 'records of tasks',
  requests: 'requests for approvals, children and promotions',
};

/** `what` is the subject of the sentence, `fix` the next step. */
export function storageLimitExceeded(what: string, bytes: number, limit: number, fix: string): TemperError {
  return new TemperError(
    'TEMPER_STORAGE_LIMIT_EXCEEDED',
    `${what} would have ${bytes} bytes, more than the limit of ${limit}; ${fix}`,
  );
}
