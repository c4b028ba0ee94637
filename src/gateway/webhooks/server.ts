import type { Agent } from '../../api/v1alpha1/agent.ts';
import { createKubeClient } from '../../kube/client/http-kube-client.ts';
import type { Transport } from '../../kube/client/transport.ts';
import { systemClock as clock } from '../../lib/clock.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { GatewayConfig } from '../config.ts';
import type { GatewayDeps } from '../deps.ts';
import { drain } from '../http/drain.ts';
import { openServer, portOf } from '../listener/tls-server.ts';
import { WebhookKeys } from './keys.ts';
import { webhookRoutes } from './routes.ts';

const MAX_CONNECTIONS = 500;

export interface WebhookServerContext {
  readonly config: GatewayConfig;
  readonly log: Logger;
  readonly transport: Transport;
  readonly watches: { readonly agents: { readonly store: { list(): Agent[] } } };
}

export interface WebhookServer {
  listen(): Promise<void>;
  port(): number;
  drain(draining: AbortController): Promise<void>;
}

/** Requests from outside have a server of their own: they reach no other route, and none of its limits. Undefined when it is off. */
export async function openWebhooks(
  context: WebhookServerContext,
  deps: GatewayDeps,
  stack: AsyncDisposableStack,
): Promise<WebhookServer | undefined> {
  const { config, log, transport, watches } = context;
  const { webhooks } = config;
  if (webhooks === undefined) return undefined;
  const client = createKubeClient(transport, { isLeader: () => false });
  const keys = stack.use(new WebhookKeys({ client, agents: () => watches.agents.store.list(), clock, log }));
  const limited = { config: { ...config, maxConnections: MAX_CONNECTIONS }, log };
  const server = await openServer(limited, deps, [webhookRoutes(keys)], stack);
  return {
    listen: async () => {
      keys.start();
      await server.listen(webhooks);
    },
    port: () => portOf(server),
    drain: (draining) => drain(server, draining, clock),
  };
}
