import { createHmac } from 'node:crypto';
import type { WebhookHeaders } from './signature.ts';

/** The header `webhook-signature`, as a sender computes it. */
export function webhookSignature(
  key: Uint8Array,
  { id, timestamp }: Omit<WebhookHeaders, 'signatures'>,
  body: string,
): string {
  return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
}
