import type { AuditRecord } from '../../../audit/port.ts';
import type { ErrorCode } from '../../../lib/error-codes.ts';
import type { GatewayDeps } from '../../deps.ts';
import type { RequestContext } from '../request-context.ts';
import { callerOf } from './caller.ts';
import { isMilestone, MinuteCounts } from './minute-counts.ts';

/** Refused requests of one caller within a minute that the log has one by one. Further ones would push other records out of the log. */
const MAX_LOGGED_REFUSALS = 100;
/** What an agent asks for in its work: something that does not exist, or that has changed. */
const ORDINARY_REFUSALS: ReadonlySet<number> = new Set([404, 409, 410]);
/** The audit stream has one record of an agent in this time. */
const AUDIT_INTERVAL_MS = 30 * 60_000;

export type RefusedCallersDeps = Pick<GatewayDeps, 'clock' | 'log' | 'metrics'> & {
  audit: Pick<GatewayDeps['audit'], 'append'>;
};

export interface EndedResponse {
  status: number;
  code: ErrorCode | undefined;
}

/** Counts the refused requests of each caller, and names those that have many: in the log, as a metric, and agents in the audit stream. */
export class RefusedCallers {
  readonly #deps: RefusedCallersDeps;
  readonly #counts: MinuteCounts;

  constructor(deps: RefusedCallersDeps) {
    this.#deps = deps;
    this.#counts = new MinuteCounts(deps.clock);
  }

  /** Counts the response when it refuses its request. Returns whether the log has a line for the request. */
  count(context: RequestContext, { status, code }: EndedResponse): boolean {
    if (!isRefusal(status, context)) return true;
    const refused = this.#counts.add(callerOf(context)?.id ?? context.address);
    if (refused >= MAX_LOGGED_REFUSALS && isMilestone(refused)) {
      this.#deps.log.warn(
        { ...callerFields(context), refused, code },
        'the gateway refuses many requests of one caller',
      );
    }
    if (refused === MAX_LOGGED_REFUSALS) this.#report(context, code);
    return refused <= MAX_LOGGED_REFUSALS;
  }

  #report(context: RequestContext, code: ErrorCode | undefined): void {
    const { audit, clock, log, metrics } = this.#deps;
    metrics.count('temper_callers_refused_total', { caller: kindOf(context) });
    const { pod } = context;
    if (pod === undefined) return;
    const { namespace, agent, agentUid } = pod;
    const interval = Math.floor(clock.now().getTime() / AUDIT_INTERVAL_MS);
    const record: AuditRecord = {
      action: 'agent.refused',
      actor: `agent/${agent}`,
      evidence: 'observed',
      subject: agent,
      facts: { refusedPerMinute: MAX_LOGGED_REFUSALS, ...(code === undefined ? {} : { code }) },
    };
    audit
      .append({ namespace, agentUid }, record, `refused/${agentUid}/${interval}`)
      .catch((error: unknown) => log.warn({ error, namespace, agent }, 'the refusals of an agent were not recorded'));
  }
}

/** Names the agent, the warm pod, the token or the ServiceAccount; for a caller without a valid token its address. */
export function callerFields({ address, pod, podToken, user, peer }: RequestContext): Record<string, string> {
  if (pod !== undefined) return { namespace: pod.namespace, agent: pod.agent };
  if (podToken !== undefined) return { namespace: podToken.namespace, pod: podToken.podName };
  if (peer !== undefined) return { namespace: peer.namespace, serviceAccount: peer.account };
  return user === undefined ? { address } : { namespace: user.namespace, token: user.tokenId };
}

function kindOf({ pod, podToken, user, peer }: RequestContext): string {
  if (pod !== undefined || podToken !== undefined) return 'pod';
  if (peer !== undefined) return 'peer';
  return user === undefined ? 'address' : 'user';
}

function isRefusal(status: number, context: RequestContext): boolean {
  if (status < 400 || status >= 500) return false;
  return callerOf(context) === undefined || !ORDINARY_REFUSALS.has(status);
}
