import { connect } from 'node:net';
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import { createSupervisor } from '../../sandbox/supervisor.ts';
import type { Logger } from '../../telemetry/log.ts';
import { Channel } from '../socket/channel.ts';
import { assertOwned, socketPaths } from '../socket/folder.ts';
import { PROTOCOL_VERSION, type SandboxFrame } from '../socket/protocol.ts';
import { SandboxService } from './service.ts';

export interface SandboxRoleOptions {
  /** Volume that both containers mount. */
  run: string;
  /** Absolute folder of the agent's files. */
  workspace: string;
  /** Who the agent's folder must belong to. */
  agentUid: number;
  clock: Clock;
  log: Logger;
  /** Ends the role. */
  signal: AbortSignal;
}

const RETRY_MILLISECONDS = 100;

/**
 * The sandbox container: connects to the agent container and does what it asks, one connection after another, until the signal.
 * Throws TEMPER_SANDBOX_UNAVAILABLE when no runner can be had.
 */
export async function serveSandbox(options: SandboxRoleOptions): Promise<void> {
  const { clock, signal, log } = options;
  await using sandbox = await createSupervisor({ clock });
  let said = '';
  while (!signal.aborted) {
    const reason = await connection(options, sandbox);
    if (signal.aborted) break;
    // The agent container may take its time to start: the same news is told once.
    if (reason !== said) log.info({ reason }, 'not connected to the agent');
    said = reason;
    await clock.sleep(RETRY_MILLISECONDS, signal).catch(() => undefined);
  }
}

/** One connection from its beginning to its end; why it ended. */
async function connection(
  options: SandboxRoleOptions,
  sandbox: Awaited<ReturnType<typeof createSupervisor>>,
): Promise<string> {
  const { folder, socket: path } = socketPaths(options.run);
  try {
    await assertOwned(folder, options.agentUid);
  } catch (error) {
    return messageOf(error, 300);
  }
  const ended = Promise.withResolvers<string>();
  const socket = connect(path);
  const send = (frame: SandboxFrame): boolean => channel.send(frame);
  const service = new SandboxService({ ...options, sandbox }, send);
  const channel: Channel = new Channel(socket, {
    frame: (frame) => service.take(frame),
    gone: (reason) => {
      service.end();
      ended.resolve(reason);
    },
  });
  socket.once('connect', () => {
    options.log.info({}, 'connected to the agent');
    send({ type: 'hello', version: PROTOCOL_VERSION });
  });
  const stop = (): void => channel.close('the sandbox stops');
  options.signal.addEventListener('abort', stop, { once: true });
  if (options.signal.aborted) stop();
  try {
    return await ended.promise;
  } finally {
    options.signal.removeEventListener('abort', stop);
  }
}
