/** MCP servers that others publish on npm and PyPI, over HTTP on this machine. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { systemClock } from '../../../src/lib/clock.ts';
import { bridgeHandler } from '../../../src/mcp/bridge/bridge-server.ts';
import { BridgeSessions } from '../../../src/mcp/bridge/bridge-sessions.ts';
import { httpChannel } from '../../../src/mcp/client/connection/http-channel.ts';
import { ServerConnection } from '../../../src/mcp/client/connection/server-connection.ts';
import type { ListedTool } from '../../../src/mcp/client/tools/listed-tool.ts';
import { PipedProcess } from '../../../src/sandbox/confined/piped-process.ts';
import { ProgramHome } from '../../../src/sandbox/confined/program-home.ts';
import type { RunnerCommand } from '../../../src/sandbox/runner-command.ts';
import { freePorts } from '../../cluster/process.ts';
import { tool } from '../../cluster/tools.ts';
import { poll } from '../poll.ts';
import { NEVER_ABORTED } from '../stubs.ts';

/** The Python of the system, for which the packages are installed. */
export const PYTHON = '/usr/bin/python3';

export interface PublishedServer extends AsyncDisposable {
  /** Of plain HTTP on the loopback interface, with the endpoint `/mcp`. */
  readonly port: number;
}

/** The folders of the packages. */
export async function publishedFolders(): Promise<{ npm: string; python: string; scriptOf: (name: string) => string }> {
  const folder = await tool('mcp-servers');
  const npm = join(folder, 'node_modules');
  const scriptOf = (name: string): string => join(npm, '@modelcontextprotocol', `server-${name}`, 'dist/index.js');
  return { npm, python: join(folder, 'python'), scriptOf };
}

/** A server that talks over lines, with a process for each session; `command` gets the home of the session. */
export async function bridgedServer(
  command: (home: string) => RunnerCommand & { environment?: Record<string, string> },
): Promise<PublishedServer> {
  const sessions = new BridgeSessions({
    async start() {
      const home = await ProgramHome.create();
      const { environment = {}, ...line } = command(home.workspace);
      const own = { PATH: process.env['PATH'] ?? '', HOME: home.path, TMPDIR: home.path, ...environment };
      return new PipedProcess(line, { home, folder: home.workspace, environment: own, closeReason: 'closed' });
    },
    max: 8,
    clock: systemClock,
    onEnded: () => undefined,
  });
  return listening(createServer(bridgeHandler(sessions)), () => sessions[Symbol.asyncDispose]());
}

/** An HTTP proxy that answers for every page itself. */
export function answeringProxy(): Promise<PublishedServer> {
  return listening(
    createServer((_request, response) => {
      response.setHeader('content-type', 'text/html');
      response.end('<html><body><article><h1>Tide</h1><p>High water is at noon.</p></article></body></html>');
    }),
    async () => undefined,
  );
}

/** `mcp-server-fetch` from PyPI, for which `answeringProxy` answers for every page; `python`: of `publishedFolders`. */
export async function fetchingServer(python: string): Promise<PublishedServer> {
  const proxy = await answeringProxy();
  const args = ['-m', 'mcp_server_fetch', '--allow-private-ips', '--ignore-robots-txt'];
  const server = await bridgedServer(() => ({
    command: PYTHON,
    args: [...args, '--proxy-url', `http://127.0.0.1:${proxy.port}`],
    environment: { PYTHONPATH: python },
  }));
  return {
    port: server.port,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

async function listening(server: Server, end: () => Promise<void>): Promise<PublishedServer> {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      await end();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** What a user reads and accepts before a Capability names it. Throws for a tool that cannot be used. */
export async function listedTools(url: string, isElsewhere: boolean): Promise<readonly ListedTool[]> {
  const channel = httpChannel({ url }, undefined, { clock: systemClock, fetch });
  const op = { signal: NEVER_ABORTED, deadline: Number.POSITIVE_INFINITY, key: 'list' };
  const server = { name: 'listed', isElsewhere, isOfCapability: true };
  await using connection = await ServerConnection.open({ server, channel, clock: systemClock }, op);
  const { tools, refused } = await connection.tools(op);
  if (refused.length > 0) throw new Error(JSON.stringify(refused));
  return tools;
}

/** `server-everything`, which speaks Streamable HTTP itself. */
export async function everythingServer(): Promise<PublishedServer> {
  const { scriptOf } = await publishedFolders();
  const { port } = await freePorts('port');
  const child: ChildProcess = spawn(process.execPath, [scriptOf('everything'), 'streamableHttp'], {
    env: { PATH: process.env['PATH'] ?? '', PORT: String(port) },
    stdio: 'ignore',
  });
  const exited = once(child, 'exit');
  await poll(`server-everything at port ${port}`, () =>
    fetch(`http://127.0.0.1:${port}/mcp`).then(
      () => true,
      () => false,
    ),
  );
  return {
    port,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
