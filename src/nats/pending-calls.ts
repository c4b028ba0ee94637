import { TemperError } from '../lib/errors.ts';
import { isJsonObject, type Json } from '../lib/json.ts';
import type { Risk } from '../policy/types.ts';
import type { JetStreamConnection } from './connection/connection.ts';
import { createDocumentStore } from './jetstream/document-store.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from './jetstream/names.ts';
import { lastMessage, messageCounts } from './jetstream/stream-reader.ts';

/** A call of an agent that needs an approval, from its request until its message has ended. */
export interface PendingCall {
  /** The name of the ApprovalRequest. */
  request: string;
  /** A random string, which the Approval must have. */
  nonce: string;
  agent: string;
  agentUid: string;
  namespace: string;
  tool: string;
  argumentsDigest: string;
  callId: string;
  session: string;
  /** The message of the call and its stream sequence. */
  message: string;
  sequence: number;
  risk: Risk;
  rule: string;
  /** Patterns for the hosts that the tool declares. */
  hosts?: string[];
  /** Why the call needs an approval. */
  summary: string;
  /** The arguments for approvers, without secrets. */
  arguments: string;
  /** RFC 3339. */
  createdAt: string;
  expiresAt?: string;
  onTimeout?: 'Wait' | 'Deny' | 'Approve';
  escalation?: { at: string; to: string[] }[];
  decision?: CallDecision;
  /** The approval was used, by the call with this key. */
  used?: { key: string; at: string };
  /** The key of the one request with which the gateway made the call, for a tool that it brokers. */
  brokered?: string;
}

export interface CallDecision {
  decision: 'Approve' | 'Deny' | 'Expired';
  /** The approver; the policy after a timeout; the system when the message of the call has ended. */
  by: string;
  /** The policy decided, because no approver did in time. */
  timedOut?: true;
  /** Text of a user: print it sanitized. */
  reason: string;
}

/** The calls of all agents that need an approval. Methods throw TEMPER_BUS_*. */
export interface PendingCalls {
  of(agentUid: string): Promise<readonly PendingCall[]>;
  /**
   * Changes the calls of an agent by compare-and-swap and returns the stored ones. `change` is pure and may be called several times;
   * when it returns the same list, nothing is written. Throws what `change` throws.
   */
  update(
    agentUid: string,
    change: (calls: readonly PendingCall[]) => readonly PendingCall[],
  ): Promise<readonly PendingCall[]>;
  /** Changes with every write of any agent; 0 while nothing was written. */
  revision(): Promise<number>;
  /** UIDs of the agents with a document. */
  agents(): Promise<string[]>;
}

/** Each conflict means that another write succeeded; gateways, the operator and few calls write for one agent. */
const MAX_ATTEMPTS = 20;

/** One document per agent, so that its calls are counted and changed together. */
export function createPendingCalls(connection: JetStreamConnection): PendingCalls {
  const documents = createDocumentStore(connection, BUCKETS.pendingCalls);
  const stream = bucketStream(BUCKETS.pendingCalls);
  return {
    async of(agentUid) {
      return parseCalls((await documents.get(token(agentUid)))?.value);
    },
    async update(agentUid, change) {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
        const found = await documents.get(token(agentUid));
        const calls = parseCalls(found?.value);
        const next = change(calls);
        if (next === calls) return calls;
        const value = { calls: next } as unknown as Json;
        if ((await documents.write(token(agentUid), value, found?.revision ?? 0)) !== undefined) return next;
      }
      throw new TemperError('TEMPER_BUS_UNAVAILABLE', 'the pending calls of the agent changed too often; try again', {
        retry: 'backoff',
      });
    },
    async revision() {
      return (await lastMessage(connection, stream, bucketSubject(BUCKETS.pendingCalls, '>')))?.seq ?? 0;
    },
    async agents() {
      const prefix = bucketSubject(BUCKETS.pendingCalls, '');
      const counts = await messageCounts(connection, stream, bucketSubject(BUCKETS.pendingCalls, '>'));
      return Object.keys(counts).map((subject) => subject.slice(prefix.length));
    },
  };
}

/** The call with this request, changed; the same list when it is missing or `change` returns the call itself. */
export function withCall(
  calls: readonly PendingCall[],
  request: string,
  change: (call: PendingCall) => PendingCall,
): readonly PendingCall[] {
  const found = calls.find((call) => call.request === request);
  const next = found === undefined ? undefined : change(found);
  return next === undefined || next === found ? calls : calls.map((call) => (call === found ? next : call));
}

/** Only gateways and the operator write documents, so their form is checked as far as it decides. */
function parseCalls(value: Json | undefined): readonly PendingCall[] {
  if (!isJsonObject(value) || !Array.isArray(value.calls)) return [];
  return value.calls.filter(
    (call) => isJsonObject(call) && REQUIRED.every((name) => typeof call[name] === 'string'),
  ) as unknown as readonly PendingCall[];
}

const REQUIRED = ['request', 'nonce', 'agent', 'agentUid', 'namespace', 'tool', 'argumentsDigest', 'callId', 'message'];
