import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { whenAborted } from '../../lib/async/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { CONNECTION_TIMEOUTS } from '../../net/connection-limits.ts';
import { removeHome } from '../../sandbox/confined/program-home.ts';
import type { Logger } from '../../telemetry/log.ts';
import { type BridgeProgram, type BridgeProgramDeps, startBridgeProgram } from './bridge-program.ts';
import { bridgeHandler } from './bridge-server.ts';
import { BridgeSessions } from './bridge-sessions.ts';

export interface BridgeRoleOptions extends BridgeProgramDeps {
  listen: { host?: string; port: number };
  program: BridgeProgram;
  /** Sessions at the same time, each with a process and a home of its own. */
  sessions: number;
  clock: Clock;
  log: Pick<Logger, 'info' | 'warn'>;
  /** Ends the role. */
  signal: AbortSignal;
  /** Called with the port when it listens. */
  listening?: (port: number) => void;
}

/** Gateways have a connection for each session and each call that waits. */
const MAX_CONNECTIONS = 1_024;

/** Serves an MCP server of the platform to gateways, with a process for each session, until the signal. Throws what listening throws. */
export async function serveBridge(options: BridgeRoleOptions): Promise<void> {
  const { listen, program, sessions: max, homes, clock, log, signal } = options;
  await clearHomes(homes, max);
  await using sessions = new BridgeSessions({
    start: (number) => startBridgeProgram(program, number, options),
    max,
    clock,
    onEnded: (reason) => log.warn({ reason }, 'a session has ended'),
  });
  const { headersTimeout, requestTimeout, keepAliveTimeout, connectionsCheckingInterval } = CONNECTION_TIMEOUTS;
  const timeouts = { headersTimeout, requestTimeout, keepAliveTimeout, connectionsCheckingInterval };
  const server = createServer(timeouts, bridgeHandler(sessions));
  server.maxConnections = MAX_CONNECTIONS;
  await once(server.listen(listen), 'listening');
  const { port } = server.address() as AddressInfo;
  log.info({ port, sessions: max }, 'listening');
  options.listening?.(port);
  await whenAborted(signal);
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
}

/** Removes what the sessions of an earlier container left in the volumes of the pod. */
async function clearHomes(homes: string, sessions: number): Promise<void> {
  for (let number = 0; number < sessions; number += 1) {
    const folder = join(homes, String(number));
    for (const name of await readdir(folder)) await removeHome(join(folder, name));
  }
}
