import { API_VERSION } from '../api/names.ts';
import { sha256 } from '../lib/canonical.ts';
import type { Clock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Ids } from '../lib/ids.ts';
import { isJsonObject, type Json, type JsonObject, member, textAt } from '../lib/json.ts';
import { remainingMilliseconds, type Op } from '../lib/operation.ts';
import type { RecordStore } from '../lib/records.ts';
import type { ApprovalDecision, Approvals, Ask } from '../tools/approvals.ts';
import type { PersonDecision } from './decisions.ts';

const REQUESTS = 'approvalrequests';
const APPROVALS = 'approvals';
const MAXIMUM_PENDING = 5;

export interface ApprovalRules {
  /** How long to wait for a person; absent waits as long as the caller does. */
  timeoutMilliseconds?: number;
  onTimeout: 'Wait' | 'Deny';
}

export interface FileApprovals extends Approvals {
  /** Records what a person said and wakes who waits for it. */
  decide(decision: PersonDecision): Promise<void>;
}

/** Consent kept as ApprovalRequest and Approval objects in the state folder. */
export function createFileApprovals(deps: {
  records: RecordStore;
  clock: Clock;
  ids: Ids;
  rules: ApprovalRules;
}): FileApprovals {
  const waiting = new Map<string, PromiseWithResolvers<ApprovalDecision>>();
  const waiterOf = (id: string): PromiseWithResolvers<ApprovalDecision> => {
    const found = waiting.get(id) ?? Promise.withResolvers<ApprovalDecision>();
    waiting.set(id, found);
    return found;
  };
  return {
    async request(ask) {
      const id = requestName(ask);
      const existing = await deps.records.get(REQUESTS, id);
      if (existing !== undefined) return id;
      await assertRoom(deps.records, ask);
      await deps.records.put(REQUESTS, id, requestObject(id, ask, deps));
      return id;
    },
    async decided(id, op) {
      const decided = await recordedDecision(deps.records, id);
      if (decided !== undefined) return decided;
      try {
        return await waitFor(waiterOf(id).promise, id, deps, op);
      } catch (error) {
        waiting.delete(id);
        await expire(deps.records, id);
        throw error;
      }
    },
    async decide(decision) {
      const request = await deps.records.get(REQUESTS, decision.target);
      if (request === undefined) return;
      const known = await recordedDecision(deps.records, decision.target);
      if (known === undefined) {
        await deps.records.put(APPROVALS, decision.target, approvalObject(decision, request));
        await deps.records.put(REQUESTS, decision.target, decidedRequest(request, decision));
      }
      const answer = known ?? toAnswer(decision);
      waiterOf(decision.target).resolve(answer);
      waiting.delete(decision.target);
    },
  };
}

/** Requests of calls whose process is gone wait for nobody; a promotion waits across restarts. */
export async function expireAbandoned(records: RecordStore): Promise<void> {
  for (const { name } of await records.list(REQUESTS)) await expire(records, name);
}

async function expire(records: RecordStore, id: string): Promise<void> {
  const request = await records.get(REQUESTS, id);
  const undecided = textAt(request, ['status', 'decision']) === '';
  if (!isJsonObject(request) || !undecided || textAt(request, ['spec', 'type']) !== 'ToolCall') return;
  await records.put(REQUESTS, id, { ...request, status: { decision: 'Expired' } });
}

/** The same ask has the same name, so asking twice is one request. */
function requestName(ask: Ask): string {
  const short = sha256(`${ask.type}\n${ask.agent}\n${ask.subject}`).slice('sha256:'.length, 'sha256:'.length + 12);
  return `${ask.tool.toLowerCase().replaceAll(/[^a-z0-9]/g, '-')}-${short}`;
}

async function assertRoom(records: RecordStore, ask: Ask): Promise<void> {
  const all = await records.list(REQUESTS);
  const pending = all.filter(({ value }) => {
    const spec = member(value, 'spec');
    return textAt(spec, ['agent', 'name']) === ask.agent && textAt(value, ['status', 'decision']) === '';
  });
  if (pending.length < MAXIMUM_PENDING) return;
  throw new TemperError(
    'TEMPER_QUOTA_EXCEEDED',
    `${MAXIMUM_PENDING} requests of agent "${ask.agent}" already wait for a person; decide those first (temper get approvalrequests)`,
  );
}

function requestObject(id: string, ask: Ask, deps: { clock: Clock; ids: Ids }): JsonObject {
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
      subject: subjectOf(ask),
    },
    status: {},
  };
}

/** Where no API server gives one, an agent is told from others by its name. */
function uidOf(agent: string): string {
  return `local-${sha256(agent).slice('sha256:'.length, 'sha256:'.length + 32)}`;
}

function subjectOf({ agent, binding }: Ask): JsonObject {
  if ('promotion' in binding) return { promotion: { ...binding.promotion } };
  return { call: { agent, agentUid: uidOf(agent), ...binding.call } };
}

function approvalObject(decision: PersonDecision, request: Json): JsonObject {
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

function decidedRequest(request: Json, decision: PersonDecision): JsonObject {
  if (!isJsonObject(request))
    throw new TemperError('TEMPER_STATE_CORRUPT', `approvalrequests/${decision.target}.json is no object`);
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

function toAnswer(decision: PersonDecision): ApprovalDecision {
  return { decision: decision.verb === 'Approve' ? 'Approve' : 'Deny', by: decision.by, reason: decision.reason };
}

async function waitFor(
  answer: Promise<ApprovalDecision>,
  id: string,
  deps: { clock: Clock; rules: ApprovalRules },
  op: Op,
): Promise<ApprovalDecision> {
  const limit =
    deps.rules.onTimeout === 'Deny'
      ? (deps.rules.timeoutMilliseconds ?? Number.POSITIVE_INFINITY)
      : Number.POSITIVE_INFINITY;
  const patience = new AbortController();
  const silence = async (): Promise<never> => {
    await deps.clock.sleep(
      Math.min(limit, remainingMilliseconds(op, deps.clock)),
      AbortSignal.any([op.signal, patience.signal]),
    );
    throw new TemperError(
      'TEMPER_APPROVAL_TIMEOUT',
      `nobody decided ${id} in time; approve it and ask again (temper approve ${id})`,
    );
  };
  try {
    return await Promise.race([answer, silence()]);
  } finally {
    patience.abort();
  }
}
