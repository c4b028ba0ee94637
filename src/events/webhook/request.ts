import { randomBytes } from 'node:crypto';
import { sha256 } from '../../lib/canonical.ts';
import type { Clock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { type Json, parseUntrustedJson } from '../../lib/json.ts';
import type { PublishedEvent } from '../event.ts';
import { isSigned, parseWebhookHeaders, type WebhookHeaders } from './signature.ts';

export const WEBHOOKS_PATH = '/v1/webhooks';
export const MAX_WEBHOOK_BODY_BYTES = 32 * 1_024;

export interface WebhookPath {
  readonly namespace: string;
  readonly agent: string;
  readonly trigger: string;
}

/** A request from outside, before its signature is verified. */
export interface WebhookRequest {
  readonly headers: Parameters<typeof parseWebhookHeaders>[0];
  readonly body: string;
}

/** What a webhook accepts. Without a webhook or a key it accepts nothing. */
export interface WebhookRules {
  /** Undefined when the path names no webhook. */
  readonly webhook: { readonly toleranceSeconds?: number } | undefined;
  readonly keys: readonly Uint8Array[];
}

const DEFAULT_TOLERANCE_SECONDS = 300;

/**
 * The id of a request whose signature is that of the webhook, the same for a repeated request. Throws TEMPER_NOT_FOUND, the same for a path
 * without a webhook or a key, a wrong signature, and a time that is too far away. A path without keys costs one comparison too.
 */
export function verifiedRequestId({ headers, body }: WebhookRequest, rules: WebhookRules, clock: Clock): string {
  const { webhook } = rules;
  const keys = webhook === undefined ? [] : rules.keys;
  const parsed = parseWebhookHeaders(headers);
  const isGenuine = parsed !== undefined && isSigned(keys.length > 0 ? keys : [randomBytes(32)], parsed, body);
  const { toleranceSeconds = DEFAULT_TOLERANCE_SECONDS } = webhook ?? {};
  if (!isGenuine || keys.length === 0 || !isRecent(parsed, toleranceSeconds, clock)) {
    throw new TemperError('TEMPER_NOT_FOUND', 'there is no such webhook, or the request has no valid signature');
  }
  return parsed.id;
}

/**
 * The event of a verified request: the same one for a request that is repeated under its id. `agentUid` identifies the agent of the path.
 * Throws TEMPER_REQUEST_INVALID for a body that is not JSON.
 */
export function webhookEvent(
  { agent, trigger }: WebhookPath,
  agentUid: string,
  { id, body }: { id: string; body: string },
  clock: Clock,
): PublishedEvent {
  const digest = sha256(`${agentUid}\n${trigger}\n${id}`).slice('sha256:'.length, 'sha256:'.length + 32);
  const time = clock.now().toISOString();
  const event = { id: `evt-${digest}`, subject: `webhook.${trigger}`, data: parse(body) };
  return { ...event, source: 'Webhook', agent, time, tainted: true };
}

function isRecent({ timestamp }: WebhookHeaders, toleranceSeconds: number, clock: Clock): boolean {
  return Math.abs(clock.now().getTime() / 1_000 - timestamp) <= toleranceSeconds;
}

function parse(body: string): Json {
  try {
    return parseUntrustedJson(body);
  } catch (error) {
    throw new TemperError('TEMPER_REQUEST_INVALID', 'the body is not JSON', { cause: error });
  }
}
