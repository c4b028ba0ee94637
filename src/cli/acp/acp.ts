import { realpath } from 'node:fs/promises';
import { resolve, sep } from 'node:path';
import { ndJsonStream, RequestError } from '@agentclientprotocol/sdk';
import { systemClock } from '../../lib/clock.ts';
import { printable } from '../../lib/printable.ts';
import { openModels } from '../../models/named-models.ts';
import { openStandalone } from '../../standalone/standalone.ts';
import { scopeOf } from '../../standalone/team/member.ts';
import { stateKeys } from '../../standalone/trust/state-key.ts';
import { type CliIo, EXIT, interruptExitCode } from '../io.ts';
import { agentProgram } from '../run/agent-program.ts';
import { openModelSource } from '../run/model-source.ts';
import { environmentRedactor, redactingIo } from '../run/redact.ts';
import { existingFolder, governingFiles, readManifests } from '../run/run.ts';
import type { RunOptions } from '../run/run-options.ts';
import { selectAgent } from '../run/select-agent.ts';
import { configFolder } from '../state/config-folder.ts';
import { startCommandTracing } from '../tracing.ts';
import { EditorAgent } from './editor-agent.ts';

export type AcpOptions = Omit<RunOptions, 'message' | 'session' | 'continue' | 'output'>;

/** Serves an agent to an editor over the Agent Client Protocol on standard input and output, until the input ends. */
export async function acp(options: AcpOptions, outer: CliIo): Promise<number> {
  const redact = environmentRedactor(outer.environment);
  const io = redactingIo(outer, redact);
  const manifests = await readManifests(options, io);
  if (manifests === undefined) return EXIT.refused;
  const { agent, policy } = selectAgent(manifests, options);
  const workspace = await existingFolder(resolve(io.cwd, options.workspace));
  const state = resolve(io.cwd, options.state);
  const program = await agentProgram(agent, [workspace, state], io);
  await using _tracing = await startCommandTracing(io);
  await using source = await openModelSource(options, io);
  const models = openModels(source.config, { clock: systemClock, environment: io.environment, random: Math.random });
  let editor: EditorAgent | undefined;
  await using standalone = await openStandalone({
    state,
    keys: stateKeys(configFolder(io)),
    workspace,
    protectedPaths: governingFiles(options, manifests, io.cwd, program),
    agents: [{ agent, policy, program }],
    redact,
    hasApprover: true,
    models,
    judges: source.config.judges,
    events: (event, { session }) => editor?.observe(event, session),
  });
  const { engine } = await standalone.open(scopeOf({ agent }));
  editor = new EditorAgent({
    engine,
    records: standalone.records,
    signal: io.signal,
    assertFolder: (cwd) => assertFolder(cwd, workspace),
    note: (text) => io.error(`note: ${printable(text, 1_000)}\n`),
  });
  const connection = editor.app().connect(ndJsonStream(outputOf(io), inputOf(io)));
  io.signal.addEventListener('abort', () => connection.close(), { once: true });
  if (io.signal.aborted) connection.close();
  await connection.closed;
  return interruptExitCode(io.signal) ?? EXIT.ok;
}

/** The agent works in one folder. An editor with another project would see files change that it does not show. */
async function assertFolder(cwd: string, workspace: string): Promise<void> {
  const [asked, has] = await Promise.all([realpath(cwd).catch(() => cwd), realpath(workspace)]);
  if (asked === has || asked.startsWith(`${has}${sep}`)) return;
  throw RequestError.invalidParams(undefined, `the agent works in ${has}; start it with --workspace ${printable(cwd)}`);
}

/** Messages are lines of JSON. */
function inputOf(io: CliIo): ReadableStream<Uint8Array> {
  const lines = io.lines()[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const next = await lines.next();
      if (next.done === true) controller.close();
      else controller.enqueue(encoder.encode(`${next.value}\n`));
    },
    async cancel() {
      await lines.return?.();
    },
  });
}

function outputOf(io: CliIo): WritableStream<Uint8Array> {
  const decoder = new TextDecoder();
  return new WritableStream({
    write(chunk) {
      io.out(decoder.decode(chunk, { stream: true }));
    },
  });
}
