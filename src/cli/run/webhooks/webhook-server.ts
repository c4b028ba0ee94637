import type { IncomingMessage } from 'node:http';
import { WebhookLimits } from '../../../events/webhook/limits.ts';
import {
  MAX_WEBHOOK_BODY_BYTES,
  WEBHOOKS_PATH,
  type WebhookPath,
  type WebhookRequest,
} from '../../../events/webhook/request.ts';
import { readBody } from '../../../lib/async/read-body.ts';
import type { Clock } from '../../../lib/clock.ts';
import { TemperError } from '../../../lib/errors.ts';
import type { WebhookReceipt } from '../../../standalone/webhooks/receive-webhook.ts';
import { type LoopbackServer, sendJson, startLoopbackServer } from '../http/loopback-server.ts';

export interface WebhookServerOptions {
  /** On the loopback interface; 0: any free port. */
  port: number;
  clock: Clock;
  receive: (path: WebhookPath, request: WebhookRequest) => Promise<WebhookReceipt>;
  /** An error that is not the sender's. */
  onError: (message: string) => void;
}

const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

/**
 * Receives the requests of webhooks on the loopback interface. They are counted before anything of them is read or verified. Throws
 * TEMPER_USAGE for a port that is in use or may not be used.
 */
export function startWebhookServer(options: WebhookServerOptions): Promise<LoopbackServer> {
  const limits = new WebhookLimits(options.clock);
  return startLoopbackServer({
    ...options,
    option: '--webhooks',
    what: 'a request to a webhook',
    answer: async (request, response) => sendJson(response, 202, await receive(request, limits, options)),
  });
}

async function receive(
  request: IncomingMessage,
  limits: WebhookLimits,
  options: WebhookServerOptions,
): Promise<WebhookReceipt> {
  const path = request.method === 'POST' ? pathOf(request.url ?? '') : undefined;
  limits.take(request.socket.remoteAddress ?? '', path ?? { namespace: '', agent: '', trigger: '' });
  if (path === undefined)
    throw new TemperError('TEMPER_NOT_FOUND', `the only path is POST ${WEBHOOKS_PATH}/NAMESPACE/AGENT/TRIGGER`);
  // The response of a request that is too large needs its connection.
  const body = await readBody(request.iterator({ destroyOnReturn: false }), MAX_WEBHOOK_BODY_BYTES, tooLarge);
  return options.receive(path, { headers: request.headers, body });
}

function pathOf(url: string): WebhookPath | undefined {
  if (!url.startsWith(`${WEBHOOKS_PATH}/`)) return undefined;
  const names = url.slice(WEBHOOKS_PATH.length + 1).split('/', 4);
  const [namespace = '', agent = '', trigger = ''] = names;
  return names.length === 3 && names.every((name) => NAME.test(name)) ? { namespace, agent, trigger } : undefined;
}

function tooLarge(): TemperError {
  return new TemperError('TEMPER_REQUEST_TOO_LARGE', `the body has more than ${MAX_WEBHOOK_BODY_BYTES} bytes`);
}
