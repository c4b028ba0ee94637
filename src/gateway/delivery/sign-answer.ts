import type { FastifyReply, FastifyRequest } from 'fastify';
import { ANSWER_SIGNATURE_HEADER, DELIVERY_TOKEN_HEADER } from '../../gateway-api/pod-api.ts';
import type { GatewayDeps } from '../deps.ts';
import type { CarriedCall } from './answer-signatures.ts';
import { deliveryOf } from './authorize.ts';
import type { DeliveryTokenClaims } from './token.ts';

/** Signs the answer for the message of the request; without a delivery token of the pod, the answer has no signature. */
export function signAnswer(
  request: FastifyRequest,
  reply: FastifyReply,
  call: CarriedCall,
  deps: Pick<GatewayDeps, 'answerSignatures' | 'deliveryTokens'>,
): void {
  const token = request.headers[DELIVERY_TOKEN_HEADER];
  const delivery = deliveryOf(request.pod, typeof token === 'string' ? token : undefined, deps);
  if (delivery !== undefined) signFor(delivery, reply, call, deps);
}

export function signFor(
  delivery: DeliveryTokenClaims,
  reply: FastifyReply,
  call: CarriedCall,
  { answerSignatures }: Pick<GatewayDeps, 'answerSignatures'>,
): void {
  const signature = answerSignatures.sign(delivery, call);
  if (signature !== undefined) void reply.header(ANSWER_SIGNATURE_HEADER, signature);
}
