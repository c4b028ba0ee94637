import { API_VERSION } from '../api/names.ts';
import { sha256 } from '../lib/canonical.ts';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { IdGenerator } from '../lib/ids.ts';
import { isJsonObject, type Json, type JsonObject, member, textAt } from '../lib/json.ts';
import { remainingMs, type CallOptions } from '../lib/call-options.ts';
import type { RecordStore } from '../lib/record-store.ts';
import type { ApprovalDecision, Approvals, ApprovalInput } from '../tools/approvals.ts';
import { shownArguments } from '../tools/shown-arguments.ts';
import type { UserDecision } from './decision-files.ts';

const REQUESTS = 'approvalrequests';
const APPROVALS = 'approvals';
const MAX_PENDING = 5;

export interface ApprovalRules {
  /** Time limit for a decision; without it only the deadline of the caller applies. */
  timeoutMs?: number;
  onTimeout: 'Wait' | 'Deny';
}

export interface FileApprovals extends Approvals {
  /** Records a decision and resolves the calls that await it. Idempotent: the first decision is final. */
  decide(decision: UserDecision): Promise<void>;
}

/** Approvals stored as ApprovalRequest and Approval objects in the state folder. */
export function createFileApprovals(deps: {
  records: RecordStore;
  clock: Clock;
  ids: IdGenerator;
  rules: ApprovalRules;
  /** Removes secrets from the arguments that an approver reads. */
  redact: (text: string) => string;
}): FileApprovals {
  const waiters = new Map<string, PromiseWithResolvers<ApprovalDecision>>();
  const waiterOf = (id: string): PromiseWithResolvers<ApprovalDecision> => {
    const found = waiters.get(id) ?? Promise.withResolvers<ApprovalDecision>();
    waiters.set(id, found);
    return found;
  };
  return {
    async request(ask) {
      const id = requestName(ask);
      const existing = await deps.records.get(REQUESTS, id);
      if (existing !== undefined) return id;
      await assertCapacity(deps.records, ask);
      await deps.records.put(REQUESTS, id, requestObject(id, ask, deps));
      return id;
    },
    async waitForDecision(id, op) {
      const decided = await recordedDecision(deps.records, id);
      if (decided !== undefined) return decided;
      try {
        return await waitForDecision(waiterOf(id).promise, id, deps, op);
      } catch (error) {
        waiters.delete(id);
        await expire(deps.records, id);
        throw error;
      }
    },
    async decide(decision) {
      const request = await deps.records.get(REQUESTS, decision.target);
      if (request === undefined) return;
      const recorded = await recordedDecision(deps.records, decision.target);
      if (recorded === undefined) {
        await deps.records.put(APPROVALS, decision.target, approvalObject(decision, request));
        await deps.records.put(REQUESTS, decision.target, withDecision(request, decision));
      }
      const result = recorded ?? toApprovalDecision(decision);
      waiterOf(decision.target).resolve(result);
      waiters.delete(decision.target);
    },
  };
}

/** Expires the tool-call requests of an ended process. Promotion requests stay pending across restarts. */
export async function expireToolCallRequests(records: RecordStore): Promise<void> {
  for (const { name } of await records.list(REQUESTS)) await expire(records, name);
}

async function expire(records: RecordStore, id: string): Promise<void> {
  const request = await records.get(REQUESTS, id);
  const undecided = textAt(request, ['status', 'decision']) === '';
  if (!isJsonObject(request) || !undecided || textAt(request, ['spec', 'type']) !== 'ToolCall') return;
  await records.put(REQUESTS, id, { ...request, status: { decision: 'Expired' } });
}

/** Equal asks have equal names, so a repeated request is idempotent. */
function requestName(ask: ApprovalInput): string {
  const short = sha256(`${ask.type}\n${ask.agent}\n${ask.subject}`).slice('sha256:'.length, 'sha256:'.length + 12);
  return `${ask.tool.toLowerCase().replaceAll(/[^a-z0-9]/g, '-')}-${short}`;
}

async function assertCapacity(records: RecordStore, ask: ApprovalInput): Promise<void> {
  const all = await records.list(REQUESTS);
  const pending = all.filter(({ value }) => {
    const spec = member(value, 'spec');
    return textAt(spec, ['agent', 'name']) === ask.agent && textAt(value, ['status', 'decision']) === '';
  });
  if (pending.length < MAX_PENDING) return;
  throw new TemperError(
    'TEMPER_QUOTA_EXCEEDED',
    `${MAX_PENDING} requests of agent "${ask.agent}" already await a decision; decide those first (temper get approvalrequests)`,
  );
}

interface RequestDeps {
  clock: Clock;
  ids: IdGenerator;
  redact: (text: string) => string;
}

function requestObject(id: string, ask: ApprovalInput, deps: RequestDeps): JsonObject {
  return {
    apiVersion: API_VERSION,
    kind: 'ApprovalRequest',
    metadata: { name: id, creationTimestamp: deps.clock.now().toISOString() },
    spec: {
      type: ask.type,
      agent: { name: ask.agent, uid: uidOf(ask.agent) },
      nonce: deps.ids.next('nonce'),
      summary: ask.reason.slice(0, 1_024),
      risk: ask.risk,
      tool: ask.tool,
      ...(ask.arguments === undefined ? {} : { arguments: shownArguments(ask.arguments, deps.redact) }),
      subject: subjectOf(ask),
    },
    status: {},
  };
}

/** Derives the uid from the agent's name, because no API server assigns one. */
function uidOf(agent: string): string {
  return `local-${sha256(agent).slice('sha256:'.length, 'sha256:'.length + 32)}`;
}

function subjectOf({ agent, binding }: ApprovalInput): JsonObject {
  if ('promotion' in binding) return { promotion: { ...binding.promotion } };
  return { call: { agent, agentUid: uidOf(agent), ...binding.call } };
}

function approvalObject(decision: UserDecision, request: Json): JsonObject {
  const spec = member(request, 'spec');
  return {
    apiVersion: API_VERSION,
    kind: 'Approval',
    metadata: { name: decision.target, creationTimestamp: decision.time },
    spec: {
      decision: decision.verb,
      nonce: member(spec, 'nonce') ?? null,
      request: decision.target,
      reason: decision.reason,
      approvedBy: { username: decision.by },
      subject: member(spec, 'subject') ?? null,
    },
  };
}

function withDecision(request: Json, decision: UserDecision): JsonObject {
  if (!isJsonObject(request))
    throw new TemperError('TEMPER_STATE_CORRUPT', `approvalrequests/${decision.target}.json is not an object`);
  return { ...request, status: { decision: decision.verb, decidedBy: decision.by } };
}

async function recordedDecision(records: RecordStore, id: string): Promise<ApprovalDecision | undefined> {
  const spec = member(await records.get(APPROVALS, id), 'spec');
  const decision = member(spec, 'decision');
  if (decision !== 'Approve' && decision !== 'Deny') return undefined;
  return {
    decision,
    by: textAt(spec, ['approvedBy', 'username'], 'unknown'),
    reason: textAt(spec, ['reason']),
  };
}

function toApprovalDecision(decision: UserDecision): ApprovalDecision {
  return { decision: decision.verb === 'Approve' ? 'Approve' : 'Deny', by: decision.by, reason: decision.reason };
}

async function waitForDecision(
  decision: Promise<ApprovalDecision>,
  id: string,
  deps: { clock: Clock; rules: ApprovalRules },
  op: CallOptions,
): Promise<ApprovalDecision> {
  const limitMs =
    deps.rules.onTimeout === 'Deny' ? (deps.rules.timeoutMs ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
  const timer = new AbortController();
  const timeout = async (): Promise<never> => {
    await deps.clock.sleep(Math.min(limitMs, remainingMs(op, deps.clock)), AbortSignal.any([op.signal, timer.signal]));
    throw new TemperError(
      'TEMPER_APPROVAL_TIMEOUT',
      `${id} was not decided in time; approve it and request it again (temper approve ${id})`,
    );
  };
  try {
    return await Promise.race([decision, timeout()]);
  } finally {
    timer.abort();
  }
}
