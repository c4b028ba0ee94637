import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { systemClock } from '../lib/clock.ts';
import { ulids } from '../lib/ids.ts';
import { createRegistry, registerMetrics } from '../telemetry/prometheus.ts';
import { GATEWAY_METRICS } from '../telemetry/temper-metrics.ts';
import type { GatewayDeps } from './deps.ts';
import { metricsPage } from './metrics-page.ts';
import { CORE_ROUTES, type ModuleRouteDeps, moduleRoutes } from './routes.ts';
import { createGatewayServer } from './http/server.ts';

/** Writes the OpenAPI document of the gateway and the metrics page. Unchanged files are not written. */
const root = resolve(import.meta.dirname, '../..');

// Routes are registered and never called, so their dependencies are not needed.
const deps = {
  clock: systemClock,
  ids: ulids,
  metrics: registerMetrics(createRegistry(), GATEWAY_METRICS),
  draining: new AbortController().signal,
} as unknown as GatewayDeps;

const moduleDeps = { models: {}, review: {}, sessions: {}, memory: {}, discovery: {} } as unknown as ModuleRouteDeps;
const server = await createGatewayServer(deps, {
  tls: undefined,
  routes: [...CORE_ROUTES, ...moduleRoutes(moduleDeps)],
});
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
