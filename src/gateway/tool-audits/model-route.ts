import { Readable } from 'node:stream';
import { Type } from 'typebox';
import type { CallOptions } from '../../lib/call-options.ts';
import { onAbort } from '../../lib/async/abort.ts';
import { TemperError } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import { ToolAuditModelCall, type ToolAuditOrder } from '../../gateway-api/verification/tool-audit-schemas.ts';
import type { SharedAccountHolder } from '../../nats/ledger/ledger.ts';
import type { GatewayDeps } from '../deps.ts';
import type { RouteModule } from '../http/routes.ts';
import { ERROR_RESPONSES, POD_SECURITY } from '../http/schemas.ts';
import { modelAccessFor, type ModelAccessDeps } from '../models/agent-model-access.ts';
import { NdjsonModelStream } from '../models/ndjson-stream.ts';
import { sanitizeRequest } from '../models/request.ts';
import { isPreCallError, MAX_MODEL_BODY_BYTES, MAX_MODEL_BODY_VALUES } from '../models/routes.ts';
import { auditedAgent, auditOrderIn } from './audit-work.ts';

const STREAM_TIMEOUT_MS = 10 * 60_000;

/**
 * Models for the fresh agents of audits, which run in verifier pods. A call is charged to the audited agent, as its own calls are, and to an
 * account of the session, whose quota is its part of the budget: the work that the operator assigned has both, and the pod chooses neither.
 */
export function auditModelRoutes(own: Omit<ModelAccessDeps, 'directory'>): RouteModule {
  return (server, deps) => {
    server.post(
      POD_API_PATHS.verificationModelStream,
      {
        config: { access: 'verifier', maxValues: MAX_MODEL_BODY_VALUES },
        bodyLimit: MAX_MODEL_BODY_BYTES,
        schema: {
          ...POD_SECURITY,
          body: ToolAuditModelCall,
          summary: 'Streams the response of a model to the fresh agent of an audit as NDJSON',
          produces: ['application/x-ndjson'],
          response: { 200: Type.Unsafe<Readable>({ type: 'string' }), ...ERROR_RESPONSES },
        },
      },
      async (request, reply) => {
        const { clock, log, directory } = deps;
        const { round, request: requested } = request.body;
        const order = await orderOf(request.verifier.podUid, round, deps);
        const state = auditedAgent(order, deps);
        const access = modelAccessFor({ ...own, directory }, state, false, { accounts: [sessionAccount(order)] });
        const { pipeline, resolved } = access.requestedModel(requested.model);
        const rebuilt = sanitizeRequest(requested, { model: resolved, maxOutputTokens: access.maxOutputTokens });
        const deadline = clock.monotonic() + STREAM_TIMEOUT_MS;
        const op: CallOptions = { signal: request.disconnected, deadline, key: request.id };
        const stream = new NdjsonModelStream(pipeline.stream(rebuilt, op), {
          clock,
          failed: (error) => log.error({ correlation: request.id, error }, 'a model stream of an audit failed'),
        });
        onAbort(request.disconnected, () => void stream.cancel());
        const failure = await stream.firstError();
        if (isPreCallError(failure)) throw failure;
        void reply.type('application/x-ndjson').header('cache-control', 'no-store');
        return reply.send(Readable.from(stream.lines(), { objectMode: false }));
      },
    );
  };
}

async function orderOf(podUid: string, round: number, deps: GatewayDeps): Promise<ToolAuditOrder> {
  const work = await deps.verifications.work(podUid, round);
  const order = work === undefined ? undefined : auditOrderIn(JSON.parse(work.toString('utf8')) as Json);
  if (order !== undefined) return order;
  throw new TemperError('TEMPER_POLICY_DENIED', 'the pod has no audit in this round, and nothing else calls models');
}

/** Counted like the spend of an agent, over all replicas. */
function sessionAccount({ attempt, round, audit }: ToolAuditOrder): SharedAccountHolder {
  return { name: `audit/${attempt}/${round}`, quotas: { tokensPerDay: audit.maxTokens }, prefix: '--max-tokens ' };
}
