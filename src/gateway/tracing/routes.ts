import { LRUCache } from 'lru-cache';
import { entries } from '../../lib/caches/lru-entries.ts';
import type { PodIdentity } from '../../identity/types.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { TracesRequest } from '../../gateway-api/report-schemas.ts';
import { isSampled } from '../../telemetry/traceparent.ts';
import type { GatewayDeps } from '../deps.ts';
import { authorizeDeliveryEnd } from '../delivery/authorize.ts';
import type { GatewayServer } from '../http/routes.ts';
import { Done, ERROR_RESPONSES, POD_SECURITY } from '../http/schemas.ts';
import { validateSpan } from './span-validation.ts';

const MAX_BODY_BYTES = 256 * 1_024;
/** Token bucket per agent: size, and spans per second. */
const BURST = 2_000;
const PER_SECOND = 20;
const CACHE_SIZE = 20_000;

/** Exports the spans of pods, which cannot reach a collector: only spans of the trace of their message, under their own identity. */
export function traceRoutes(server: GatewayServer, deps: GatewayDeps): void {
  const limits = new SpanRateLimits(deps.clock);
  server.post(
    POD_API_PATHS.traces,
    {
      config: { access: 'pod' },
      bodyLimit: MAX_BODY_BYTES,
      schema: {
        ...POD_SECURITY,
        summary: 'Spans of the work on a message',
        body: TracesRequest,
        response: { 204: Done, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => {
      const { deliveryToken, spans } = request.body;
      try {
        // The last spans of a message arrive after its acknowledgement.
        const { claims } = authorizeDeliveryEnd(request, deliveryToken, deps);
        if (!isSampled(claims.traceparent)) {
          throw new TemperError(
            'TEMPER_REQUEST_INVALID',
            'body.deliveryToken belongs to a message whose trace is not sampled',
          );
        }
        limits.acquire(request.pod.agentUid, spans.length);
        const validated = spans.map((span) => validateSpan(span, claims, deps.clock.now()));
        deps.spans?.(validated, resourceOf(request.pod));
      } catch (error) {
        deps.metrics.count('temper_pod_spans_total', { outcome: 'refused' }, spans.length);
        throw error;
      }
      deps.metrics.count('temper_pod_spans_total', { outcome: 'taken' }, spans.length);
      return reply.code(204).send(null);
    },
  );
}

/** Resource attributes from the authenticated identity of the pod. */
function resourceOf({ namespace, podName, podUid, agent, agentUid }: PodIdentity): Record<string, string> {
  return {
    'service.name': 'temper-agent',
    'service.instance.id': podUid,
    'k8s.namespace.name': namespace,
    'k8s.pod.name': podName,
    'k8s.pod.uid': podUid,
    'gen_ai.agent.name': agent,
    'gen_ai.agent.id': agentUid,
    'temper.evidence': 'reported',
  };
}

/** Rate limit of reported spans per agent. */
class SpanRateLimits {
  readonly #clock: Clock;
  readonly #buckets = new LRUCache<string, { left: number; at: number }>(entries(CACHE_SIZE));

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Throws TEMPER_RATE_LIMITED. */
  acquire(agentUid: string, spans: number): void {
    const at = this.#clock.monotonic();
    const bucket = this.#buckets.get(agentUid) ?? { left: BURST, at };
    const left = Math.min(BURST, bucket.left + ((at - bucket.at) / 1_000) * PER_SECOND);
    const enough = left >= spans;
    this.#buckets.set(agentUid, { left: enough ? left - spans : left, at });
    if (enough) return;
    const retry = Math.ceil(((spans - left) / PER_SECOND) * 1_000);
    throw new TemperError('TEMPER_RATE_LIMITED', 'this agent reported too many spans', { retry });
  }
}
