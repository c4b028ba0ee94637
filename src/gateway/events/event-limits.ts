import type { Clock } from '../../lib/clock.ts';
import { ReportLimits } from '../storage/report-limits.ts';

const PER_AGENT = { perSecond: 1, burst: 60, unit: 'events' };
const PER_NAMESPACE = { perSecond: 10, burst: 300, unit: 'events of its namespace' };

/** Events per second that the agents of one namespace publish at this process. */
export class EventLimits {
  readonly #agents: ReportLimits;
  readonly #namespaces: ReportLimits;

  constructor(clock: Clock) {
    this.#agents = new ReportLimits(clock, PER_AGENT);
    this.#namespaces = new ReportLimits(clock, PER_NAMESPACE);
  }

  /** Throws TEMPER_RATE_LIMITED. */
  take({ agentUid, namespace }: { agentUid: string; namespace: string }): void {
    this.#agents.take(agentUid, 1);
    this.#namespaces.take(namespace, 1);
  }
}
