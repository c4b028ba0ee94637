import { Type } from 'typebox';
import { ToolAuditResult, ToolAuditWork } from '../../gateway-api/verification/tool-audit-schemas.ts';
import { POD_API_PATHS } from '../../gateway-api/pod-api.ts';
import {
  VerificationOutputs,
  VerificationQuery,
  VerificationWork,
} from '../../gateway-api/verification/verification-schemas.ts';
import type { Json } from '../../lib/json.ts';
import type { GatewayDeps } from '../deps.ts';
import { longPollSignal } from '../http/long-poll.ts';
import type { GatewayServer } from '../http/routes.ts';
import { Done, ERROR_RESPONSES, NoContent, POD_SECURITY } from '../http/schemas.ts';
import { auditOrderIn, auditWorkOf } from '../tool-audits/audit-work.ts';

/** The outputs of all cases of a round together. A verifier replaces outputs beyond it by a failure. */
const MAX_OUTPUT_BYTES = 8 * 1_024 * 1_024;
const MAX_OUTPUT_VALUES = 500_000;

/**
 * Gives a verifier pod its work and takes its outputs. Both are stored under the UID of the pod, which comes from its token: a pod that
 * a hostile tool took over reaches no other verification. The operator compares the outputs.
 */
export function verificationRoutes(server: GatewayServer, deps: GatewayDeps): void {
  server.get(
    POD_API_PATHS.verification,
    {
      config: { access: 'verifier', longPoll: true, largeResponse: true },
      schema: {
        ...POD_SECURITY,
        summary: 'What the verifier pod runs in one round of its verification',
        querystring: VerificationQuery,
        response: { 200: Type.Union([VerificationWork, ToolAuditWork]), 204: NoContent, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => {
      const signal = longPollSignal((request.query.wait ?? 0) * 1_000, request, deps);
      const { round = 0 } = request.query;
      const work = await deps.verifications.waitForWork(request.verifier.podUid, round, signal);
      if (work === undefined) return reply.code(204).send(null);
      request.holdResponse(work.byteLength);
      const value = JSON.parse(work.toString('utf8')) as Json;
      const order = auditOrderIn(value);
      return order === undefined ? (value as unknown as VerificationWork) : auditWorkOf(order, deps);
    },
  );
  server.post(
    POD_API_PATHS.verificationOutputs,
    {
      config: { access: 'verifier', maxValues: MAX_OUTPUT_VALUES },
      bodyLimit: MAX_OUTPUT_BYTES,
      schema: {
        ...POD_SECURITY,
        summary: 'The outputs of the cases of one round, once',
        body: VerificationOutputs,
        response: { 204: Done, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => {
      const { body, verifier } = request;
      await deps.verifications.putOutputs(verifier.podUid, body.round, body as unknown as Json);
      return reply.code(204).send(null);
    },
  );
  server.post(
    POD_API_PATHS.verificationAudit,
    {
      config: { access: 'verifier' },
      schema: {
        ...POD_SECURITY,
        summary: 'How one session of a fresh agent ended, once',
        body: ToolAuditResult,
        response: { 204: Done, ...ERROR_RESPONSES },
      },
    },
    async (request, reply) => {
      const { body, verifier } = request;
      await deps.verifications.putOutputs(verifier.podUid, body.round, body as unknown as Json);
      return reply.code(204).send(null);
    },
  );
}
