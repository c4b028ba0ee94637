import type { CallOptions } from '../../../lib/call-options.ts';
import type { Clock } from '../../../lib/clock.ts';
import { TemperError } from '../../../lib/errors.ts';
import {
  type CommandServer,
  type ConfiguredServer,
  isElsewhere,
  type LocalServer,
  type RemoteServer,
} from '../read-servers.ts';
import { httpChannel } from './http-channel.ts';
import { ProcessTransport } from './process-transport.ts';
import { isModernServer, type ServerChannel, ServerConnection } from './server-connection.ts';
import { startServerCommand, startServerProcess } from './server-process.ts';

export interface OpenServerDeps {
  clock: Clock;
  /** The value of an environment variable with a token. */
  token: (variable: string) => string | undefined;
  /** The launcher, behind which servers with a `command` run; undefined where there is none. */
  launcher: string | undefined;
}

/** Connects to a server and lists its tools. Throws TEMPER_MCP_SERVER_FAILED, TEMPER_PROGRAM_UNAVAILABLE and TEMPER_PROGRAM_NOT_FOUND. */
export async function openServer(
  server: ConfiguredServer,
  { clock, token, launcher }: OpenServerDeps,
  op: CallOptions,
): Promise<ServerConnection> {
  const listing = { name: server.name, isElsewhere: isElsewhere(server) };
  const open = async (isModern: boolean): Promise<ServerConnection> => {
    const channel =
      'url' in server
        ? httpChannel(server, tokenOf(server, token), { clock, fetch })
        : await processChannel(server, clock, launcher);
    return ServerConnection.open({ server: listing, channel, clock, isModern }, op);
  };
  try {
    return await open(false);
  } catch (error) {
    // Its process has ended, and it does not take the other handshake in the same one.
    if (isModernServer(error)) return open(true);
    throw error;
  }
}

/** Throws TEMPER_MCP_SERVER_FAILED without the variable: a server must not be asked as another caller than the user configured. */
function tokenOf({ name, tokenEnvironment }: RemoteServer, token: OpenServerDeps['token']): string | undefined {
  if (tokenEnvironment === undefined) return undefined;
  const value = token(tokenEnvironment);
  if (value !== undefined && value !== '') return value;
  throw new TemperError(
    'TEMPER_MCP_SERVER_FAILED',
    `MCP server "${name}": the variable ${tokenEnvironment} is not set`,
  );
}

async function processChannel(
  server: LocalServer | CommandServer,
  clock: Clock,
  launcher: string | undefined,
): Promise<ServerChannel> {
  const process = await ('command' in server ? startServerCommand(server, launcher) : startServerProcess(server));
  return {
    transport: new ProcessTransport(process, clock),
    problem() {
      const { ended, stderr } = process;
      if (ended === undefined) return undefined;
      return stderr === '' ? ended : `${ended}; its standard error begins: ${stderr}`;
    },
    [Symbol.asyncDispose]: () => process[Symbol.asyncDispose](),
  };
}
