import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { systemClock } from '../lib/clock.ts';
import { ulids } from '../lib/ids.ts';
import { createRegistry, registerMetrics } from '../telemetry/prometheus.ts';
import { GATEWAY_METRICS } from '../telemetry/temper-metrics.ts';
import type { GatewayDeps } from './deps.ts';
import { discoveryRoutes } from './discovery/routes.ts';
import { egressRoutes } from './egress/routes.ts';
import { metricsPage } from './metrics-page.ts';
import { memoryRoutes } from './pods/memory.ts';
import { modelRoutes } from './models/routes.ts';
import { CORE_ROUTES } from './core-routes.ts';
import { reviewRoutes } from './review/routes.ts';
import type { RouteModule } from './http/routes.ts';
import { createGatewayServer } from './http/server.ts';
import { sessionRoutes } from './pods/sessions.ts';

/** Writes the OpenAPI document of the gateway and the metrics page. Unchanged files are not written. */
const root = resolve(import.meta.dirname, '../..');

// Routes are registered and never called, so their dependencies are not needed.
const deps = {
  clock: systemClock,
  ids: ulids,
  metrics: registerMetrics(createRegistry(), GATEWAY_METRICS),
  draining: new AbortController().signal,
} as unknown as GatewayDeps;

const routes: readonly RouteModule[] = [
  ...CORE_ROUTES,
  modelRoutes({} as Parameters<typeof modelRoutes>[0]),
  reviewRoutes({} as Parameters<typeof reviewRoutes>[0]),
  sessionRoutes({} as Parameters<typeof sessionRoutes>[0]),
  memoryRoutes({} as Parameters<typeof memoryRoutes>[0]),
  egressRoutes({} as Parameters<typeof egressRoutes>[0]),
  discoveryRoutes({} as Parameters<typeof discoveryRoutes>[0]),
];
const server = await createGatewayServer(deps, { tls: undefined, routes });
await server.ready();
const document = `${JSON.stringify(server.swagger(), undefined, 2)}\n`;
await server.close();
for (const [path, text] of [
  ['docs/reference/gateway-openapi.json', document],
  ['docs/reference/metrics.md', metricsPage()],
] as const) {
  const target = resolve(root, path);
  if ((await readFile(target, 'utf8').catch(() => undefined)) === text) continue;
  await writeFile(target, text);
  process.stdout.write(`${path}\n`);
}
