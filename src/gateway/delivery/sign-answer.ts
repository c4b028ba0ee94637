import type { FastifyReply } from 'fastify';
import { ANSWER_SIGNATURE_HEADER } from '../../gateway-api/pod-api.ts';
import type { GatewayDeps } from '../deps.ts';
import type { CarriedCall } from './answer-signatures.ts';
import type { DeliveryTokenClaims } from './token.ts';

/** Signs the answer for the message of the delivery. */
export function signFor(
  delivery: DeliveryTokenClaims,
  reply: FastifyReply,
  call: CarriedCall,
  { answerSignatures }: Pick<GatewayDeps, 'answerSignatures'>,
): void {
  const signature = answerSignatures.sign(delivery, call);
  if (signature !== undefined) void reply.header(ANSWER_SIGNATURE_HEADER, signature);
}
