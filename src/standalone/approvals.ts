import type { Clock } from '../lib/clock.ts';
import { isTemperError, TemperError } from '../lib/errors.ts';
import type { IdGenerator } from '../lib/ids.ts';
import { type Json, member, textAt } from '../lib/json.ts';
import { remainingMs, type CallOptions } from '../lib/call-options.ts';
import type { RecordStore } from '../lib/record-store.ts';
import { type ApprovalRules, decidedByTimeout, type TimeoutDecision } from '../policy/approval-rules.ts';
import type { Risk } from '../policy/types.ts';
import type { ApprovalDecision, ApprovalInput, Approvals } from '../tools/approvals.ts';
import {
  decisionIn,
  policyActor,
  requestName,
  requestObject,
  statusOf,
  timesOf,
  withStatus,
} from './approval-objects.ts';
import type { UserDecision } from './decision-files.ts';
import { APPROVALS, REQUESTS, storeDecision, timeOutRequest } from './stored-decision.ts';

const MAX_PENDING = 5;

export interface FileApprovalsDeps {
  records: RecordStore;
  clock: Clock;
  ids: IdGenerator;
  /** Namespace of the agent. */
  namespace: string;
  policy: {
    name: string;
    /** The settings for a call of this risk; without a risk, those for a promotion. */
    rules: (risk?: Risk) => ApprovalRules;
  };
  /** Removes secrets from the arguments that an approver reads. */
  redact: (text: string) => string;
  /** Whether a user is there to decide. Otherwise a call that can be parked does not wait. */
  hasApprover: boolean;
}

export interface FileApprovals extends Approvals {
  /** Records a decision and resolves the calls that await it. Idempotent: the first decision is final. */
  decide(decision: UserDecision): Promise<void>;
}

/** Approvals stored as ApprovalRequest and Approval objects in the state folder. */
export function createFileApprovals(deps: FileApprovalsDeps): FileApprovals {
  return new StoredApprovals(deps);
}

class StoredApprovals implements FileApprovals {
  readonly #deps: FileApprovalsDeps;
  readonly #waiters = new Map<string, PromiseWithResolvers<ApprovalDecision>>();
  /** The key of the call that used an approval in this process. */
  readonly #uses = new Map<string, string>();

  constructor(deps: FileApprovalsDeps) {
    this.#deps = deps;
  }

  async request(ask: ApprovalInput): Promise<string> {
    const { records, namespace, policy } = this.#deps;
    const id = requestName(ask, namespace);
    const existing = await records.get(REQUESTS, id);
    // The subject of a promotion has the nonce of its attempt: one that timed out is not asked again.
    if (existing !== undefined && (statusOf(existing) !== 'Expired' || ask.type === 'PromoteTool')) return id;
    await assertCapacity(records, ask);
    const rules = policy.rules(ask.type === 'ToolCall' ? ask.risk : undefined);
    await records.put(REQUESTS, id, requestObject(id, ask, { ...this.#deps, rules }));
    return id;
  }

  /** The decision of an approver, or of the policy after the timeout. Throws TEMPER_APPROVAL_TIMEOUT for a call that the timeout denies. */
  async decisionNow(id: string): Promise<ApprovalDecision | undefined> {
    const { records, clock, policy } = this.#deps;
    const recorded = decisionIn(await records.get(APPROVALS, id));
    if (recorded !== undefined) return recorded;
    const request = await records.get(REQUESTS, id);
    const outcome = this.#outcome(request);
    if (outcome === 'Pending') return undefined;
    const by = policyActor(policy.name);
    if (outcome === 'Deny') {
      if (isPromotion(request)) {
        await timeOutRequest(records, id, by);
        return { decision: 'Deny', by, reason: 'no approver decided before the timeout' };
      }
      await this.#expire(id, by);
      throw new TemperError(
        'TEMPER_APPROVAL_TIMEOUT',
        `${id} was not decided in time; make the call again when an approver is available`,
      );
    }
    const time = clock.now().toISOString();
    await this.decide({ id, verb: 'Approve', target: id, reason: 'no approver decided before the timeout', by, time });
    return decisionIn(await records.get(APPROVALS, id));
  }

  async waitForDecision(id: string, op: CallOptions): Promise<ApprovalDecision> {
    try {
      return (await this.decisionNow(id)) ?? (await this.#wait(id, op));
    } catch (error) {
      await this.#expire(id);
      throw error;
    }
  }

  async decisionOrPark(id: string, op: CallOptions): ReturnType<Approvals['decisionOrPark']> {
    const decided = await this.decisionNow(id);
    if (decided !== undefined) return decided;
    if (!this.#deps.hasApprover) return { decision: 'Parked' };
    try {
      return await this.#wait(id, op);
    } catch (error) {
      const isUndecided = isTemperError(error, 'TEMPER_APPROVAL_TIMEOUT') && error.details['request'] !== undefined;
      if (isUndecided) return { decision: 'Parked' };
      throw error;
    }
  }

  async use(id: string, { key }: CallOptions): Promise<void> {
    const { records, clock } = this.#deps;
    if (this.#uses.get(id) === key) return;
    const request = await records.get(REQUESTS, id);
    if (textAt(request, ['status', 'usedAt']) !== '') {
      throw new TemperError(
        'TEMPER_APPROVAL_USED',
        `the approval of ${id} was used by a call whose process ended before its result was stored; check whether the call had its effect, and make it again if not`,
      );
    }
    await records.put(REQUESTS, id, withStatus(request, id, { usedAt: clock.now().toISOString() }));
    this.#uses.set(id, key);
  }

  async decide(decision: UserDecision): Promise<void> {
    const { target } = decision;
    const counting = await storeDecision(this.#deps.records, decision);
    if (counting === undefined) return;
    this.#waiterOf(target).resolve(counting);
    this.#waiters.delete(target);
  }

  #waiterOf(id: string): PromiseWithResolvers<ApprovalDecision> {
    const found = this.#waiters.get(id) ?? Promise.withResolvers<ApprovalDecision>();
    this.#waiters.set(id, found);
    return found;
  }

  /** An approval by timeout needs a policy that still has it: the request may be of an earlier run, under another one. */
  #outcome(request: Json | undefined): TimeoutDecision {
    const { clock, policy } = this.#deps;
    if (statusOf(request) === 'Expired') return 'Deny';
    const outcome = decidedByTimeout(timesOf(request), clock.now());
    const risk = isPromotion(request) ? undefined : (textAt(request, ['spec', 'risk']) as Risk);
    return outcome === 'Approve' && policy.rules(risk).onTimeout !== 'Approve' ? 'Deny' : outcome;
  }

  /** Waits for an approver or for the timeout of the policy, at most until the deadline. */
  async #wait(id: string, op: CallOptions): Promise<ApprovalDecision> {
    const { records, clock } = this.#deps;
    const waiter = this.#waiterOf(id);
    const stop = new AbortController();
    const timeout = async (): Promise<ApprovalDecision> => {
      const { expiresAt } = timesOf(await records.get(REQUESTS, id));
      const leftMs = remainingMs(op, clock);
      const expiresMs =
        expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt) - clock.now().getTime();
      const signal = AbortSignal.any([op.signal, stop.signal]);
      await clock.sleep(Math.max(0, Math.min(leftMs, expiresMs)), signal);
      const decided = await this.decisionNow(id);
      if (decided !== undefined) return decided;
      if (expiresMs < leftMs) await clock.sleep(leftMs - expiresMs, signal);
      throw new TemperError('TEMPER_APPROVAL_TIMEOUT', `${id} was not decided before the deadline of the call`, {
        details: { request: id },
      });
    };
    try {
      return await Promise.race([waiter.promise, timeout()]);
    } finally {
      stop.abort();
      this.#waiters.delete(id);
    }
  }

  async #expire(id: string, by?: string): Promise<void> {
    await expireRequest(this.#deps.records, id, by);
  }
}

/** The turns of one agent that wait for a decision. */
export interface ParkedTurns {
  namespace: string;
  agent: string;
  /** Whether the last turn of the session has this call without a result. */
  has(session: string, callId: string): Promise<boolean>;
}

/**
 * Expires the pending requests for calls that nothing can resume: those that parked no turn, and those of these agents whose turns are
 * gone. Promotion requests and those of other agents stay pending. Call it before the agents work.
 */
export async function expireAbandonedRequests(records: RecordStore, agents: readonly ParkedTurns[]): Promise<void> {
  for (const { name, value } of await records.list(REQUESTS)) {
    if (statusOf(value) === '' && !(await isResumable(value, agents))) await expireRequest(records, name);
  }
}

async function isResumable(request: Json, agents: readonly ParkedTurns[]): Promise<boolean> {
  const session = textAt(request, ['spec', 'session']);
  if (session === '') return false;
  const own = agents.find(
    ({ agent, namespace }) =>
      textAt(request, ['spec', 'agent', 'name']) === agent && textAt(request, ['metadata', 'namespace']) === namespace,
  );
  return own === undefined || own.has(session, textAt(request, ['spec', 'subject', 'call', 'callId']));
}

/** The requests, decided or not, whose calls have one of these ids. */
export async function requestsOfCalls(records: RecordStore, callIds: readonly string[]): Promise<string[]> {
  const all = await records.list(REQUESTS);
  return all
    .filter(({ value }) => statusOf(value) !== 'Expired')
    .filter(({ value }) => callIds.includes(textAt(value, ['spec', 'subject', 'call', 'callId'])))
    .map(({ name }) => name);
}

/** `by`: the policy, when its timeout denies the call. */
async function expireRequest(records: RecordStore, id: string, by?: string): Promise<void> {
  const request = await records.get(REQUESTS, id);
  if (request === undefined || statusOf(request) !== '' || textAt(request, ['spec', 'type']) !== 'ToolCall') return;
  const decidedBy = by === undefined ? {} : { decidedBy: by };
  await records.put(REQUESTS, id, withStatus(request, id, { decision: 'Expired', ...decidedBy }));
}

function isPromotion(request: Json | undefined): boolean {
  return textAt(request, ['spec', 'type']) === 'PromoteTool';
}

async function assertCapacity(records: RecordStore, ask: ApprovalInput): Promise<void> {
  const all = await records.list(REQUESTS);
  const pending = all.filter(({ value }) => {
    const spec = member(value, 'spec');
    // A request about the level of the agent waits for days and blocks no call.
    const isAboutTool = textAt(spec, ['type']) !== 'RaiseTrust';
    return isAboutTool && textAt(spec, ['agent', 'name']) === ask.agent && statusOf(value) === '';
  });
  if (pending.length < MAX_PENDING) return;
  throw new TemperError(
    'TEMPER_QUOTA_EXCEEDED',
    `${MAX_PENDING} requests of agent "${ask.agent}" already await a decision; decide those first (temper get approvalrequests)`,
  );
}
