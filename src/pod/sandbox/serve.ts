import { connect } from 'node:net';
import { onAbort } from '../../lib/async/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import type { Json } from '../../lib/json.ts';
import { createSupervisor } from '../../sandbox/supervisor.ts';
import { createProgramRunner, findLauncher } from '../../sandbox/terminal/program-runner.ts';
import type { Logger } from '../../telemetry/log.ts';
import { createLocalTerminal } from '../../toolbox/terminal/local-terminal.ts';
import { AGENT_FRAMES, Channel, SANDBOX_FRAMES } from '../socket/channel.ts';
import { assertFolderOwner, socketPaths } from '../socket/socket-folder.ts';
import { PROTOCOL_VERSION, type SandboxFrame } from '../socket/protocol.ts';
import { clearHomes, type PodProgram } from './programs.ts';
import { SandboxService } from './service.ts';

export interface SandboxRoleOptions {
  /** Volume that both containers of the pod mount. */
  run: string;
  /** Absolute folder of the agent's files. */
  workspace: string;
  /** User that must own the agent container's folder. */
  agentUid: number;
  /** The agent program of the pod; absent in most pods. */
  program?: PodProgram | undefined;
  /** The environment of the process, of which grants can name variables. */
  environment: Readonly<Record<string, string | undefined>>;
  /** Absolute path of the launcher where it is not beside Node. */
  launcher?: string;
  /** Another process starts the role again when the agent container needs it after a rest. Never for a pod with an agent program. */
  canRest?: boolean;
  clock: Clock;
  log: Logger;
  /** Ends the role. */
  signal: AbortSignal;
}

const RETRY_MS = 100;
/** The reason of a connection that closed for a rest. */
const REST = 'the agent container needs no sandbox for now';

/** Why the role ended: the signal, or the agent container needs it no more for now. */
export type SandboxRoleEnd = 'Stopped' | 'Resting';

/**
 * The sandbox container: connects to the agent container, handles its requests, and reconnects, until the signal or a rest. Throws
 * TEMPER_SANDBOX_UNAVAILABLE when no runner can be started.
 */
export async function serveSandbox(options: SandboxRoleOptions): Promise<SandboxRoleEnd> {
  const { clock, signal, log, program } = options;
  if (program !== undefined) await clearHomes(program);
  await using sandbox = await createSupervisor({ clock });
  let logged = '';
  while (!signal.aborted) {
    const reason = await serveConnection(options, sandbox);
    if (signal.aborted) break;
    if (reason === REST) return 'Resting';
    // The agent container may start later: each reason is logged once.
    if (reason !== logged) log.info({ reason }, 'not connected to the agent');
    logged = reason;
    await clock.sleep(RETRY_MS, signal).catch(() => undefined);
  }
  return 'Stopped';
}

/** Opens one connection and serves it until it closes. Returns the reason why it closed. */
async function serveConnection(
  options: SandboxRoleOptions,
  sandbox: Awaited<ReturnType<typeof createSupervisor>>,
): Promise<string> {
  const { folder, socket: path } = socketPaths(options.run);
  try {
    await assertFolderOwner(folder, options.agentUid);
  } catch (error) {
    return messageOf(error, 300);
  }
  const ended = Promise.withResolvers<string>();
  const socket = connect(path);
  const send = (frame: SandboxFrame): boolean => channel.send(frame);
  const { workspace, environment, clock, launcher = findLauncher() } = options;
  const runner = createProgramRunner({ clock, launcher });
  const terminal = createLocalTerminal({ runner, workspace, environment });
  const canRest = options.canRest === true && options.program === undefined;
  const onRest = (): void => channel.close(canRest ? REST : 'the agent container asked for a rest');
  const service = new SandboxService({ ...options, sandbox, terminal, onRest }, send);
  const listener = {
    onFrame: (frame: Json): boolean => service.handleFrame(frame),
    onClosed: (reason: string): void => {
      service.cancelAll();
      ended.resolve(reason);
    },
  };
  const channel: Channel = new Channel(socket, listener, { accepts: AGENT_FRAMES, sends: SANDBOX_FRAMES });
  socket.once('connect', () => {
    options.log.info({}, 'connected to the agent');
    send({ type: 'hello', version: PROTOCOL_VERSION, canRest });
  });
  using _shutdown = onAbort(options.signal, () => channel.close('the sandbox container stops'));
  return await ended.promise;
}
