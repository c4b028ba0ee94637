import { AGENT_EVENT_RATE, NAMESPACE_EVENT_RATE } from '../../events/limits.ts';
import type { Clock } from '../../lib/clock.ts';
import { ReportLimits } from '../storage/report-limits.ts';

/** Events per second that the agents of one namespace publish at this process. */
export class EventLimits {
  readonly #agents: ReportLimits;
  readonly #namespaces: ReportLimits;

  constructor(clock: Clock) {
    this.#agents = new ReportLimits(clock, AGENT_EVENT_RATE);
    this.#namespaces = new ReportLimits(clock, NAMESPACE_EVENT_RATE);
  }

  /** Throws TEMPER_RATE_LIMITED. */
  take({ agentUid, namespace }: { agentUid: string; namespace: string }): void {
    this.#agents.take(agentUid, 1);
    this.#namespaces.take(namespace, 1);
  }
}
