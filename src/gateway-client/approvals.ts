import { TemperError } from '../lib/errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { IdGenerator } from '../lib/ids.ts';
import type { CallOptions } from '../lib/call-options.ts';
import { type JsonObject, textAt } from '../lib/json.ts';
import { requireObject, requireText } from '../gateway-api/response-parsing.ts';
import {
  type CallApprovalRequest,
  POD_API_PATHS,
  type SessionAppend,
  type UseApprovalRequest,
} from '../gateway-api/pod-api.ts';
import type { ApprovalDecision, ApprovalInput, Approvals } from '../tools/approvals.ts';
import type { GatewayClient } from './gateway-client.ts';
import type { StagedItems } from './session/staged-items.ts';

export interface RemoteApprovalsOptions {
  client: GatewayClient;
  clock: Clock;
  ids: IdGenerator;
  /** The token of the current delivery; throws when the pod has no delivery. */
  deliveryToken: () => string;
  /** Aborts when the work on the current message is cancelled. */
  signal: () => AbortSignal;
  /** The items of the message that the gateway does not have yet. */
  staged: Pick<StagedItems, 'flush'>;
  storeAppend: (append: SessionAppend) => Promise<void>;
}

/** Milliseconds for one request, retries included. */
const TIMEOUT_MS = 60_000;
/** States of requests that a message has read. */
const MAX_STATES = 64;

/**
 * Approvals through the gateway, which decides itself whether the call needs one. A pod does not wait: an undecided call parks its turn.
 * For tools whose effects end in the pod, this check is not a boundary.
 */
export class RemoteApprovals implements Approvals {
  readonly #options: RemoteApprovalsOptions;
  readonly #states = new Map<string, ApprovalDecision | 'Expired' | undefined>();

  constructor(options: RemoteApprovalsOptions) {
    this.#options = options;
  }

  /** The answer with the call is stored first: a later process finds the call under the key that the request has. */
  async request(ask: ApprovalInput): Promise<string> {
    if (!('call' in ask.binding) || ask.session === undefined) throw notParkable(ask.tool);
    const { staged, storeAppend, deliveryToken } = this.#options;
    await staged.flush(storeAppend);
    const body: CallApprovalRequest = {
      deliveryToken: deliveryToken(),
      tool: ask.tool,
      input: ask.arguments ?? {},
      callKey: ask.binding.call.callId,
    };
    const answer = requireObject(await this.#post(POD_API_PATHS.approvals, body), 'approval');
    const request = requireText(answer, 'request', 'approval');
    if (this.#states.size >= MAX_STATES) this.#states.clear();
    this.#states.set(request, stateOf(answer));
    return request;
  }

  /** As the gateway answered the request. */
  async decisionNow(id: string): Promise<ApprovalDecision | undefined> {
    const state = this.#states.get(id);
    if (state !== 'Expired') return state;
    throw new TemperError(
      'TEMPER_APPROVAL_TIMEOUT',
      `${id} was not decided in time; make the call again when an approver is available`,
    );
  }

  async waitForDecision(id: string): Promise<ApprovalDecision> {
    throw notParkable(id);
  }

  async decisionOrPark(id: string): ReturnType<Approvals['decisionOrPark']> {
    return (await this.decisionNow(id)) ?? { decision: 'Parked' };
  }

  async use(id: string): Promise<void> {
    const body: UseApprovalRequest = { deliveryToken: this.#options.deliveryToken(), request: id };
    await this.#post(POD_API_PATHS.useApproval, body);
  }

  #post(path: string, body: CallApprovalRequest | UseApprovalRequest) {
    return this.#options.client.call({ method: 'POST', path, body, op: this.#op() });
  }

  /** Each use has a key of its own: another process that repeats the call is another use. */
  #op(): CallOptions {
    const { clock, ids, signal } = this.#options;
    return { signal: signal(), deadline: clock.monotonic() + TIMEOUT_MS, key: ids.next('approval') };
  }
}

function stateOf(answer: JsonObject): ApprovalDecision | 'Expired' | undefined {
  const decision = requireText(answer, 'decision', 'approval');
  const [by, reason] = [textAt(answer, ['by']), textAt(answer, ['reason'])];
  if (decision === 'Approve' || decision === 'Deny') return { decision, by, reason };
  return decision === 'Expired' ? 'Expired' : undefined;
}

function notParkable(subject: string): TemperError {
  return new TemperError(
    'TEMPER_APPROVAL_DENIED',
    `"${subject}" needs an approval, and a call by another tool cannot wait for one in a pod; call the tool directly`,
  );
}
