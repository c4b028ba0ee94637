import { resolve } from 'node:path';
import { type LoadedManifests, loadManifests } from '../../api/manifests.ts';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { AnyResource } from '../../api/v1alpha1/resources.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { ulids } from '../../lib/ids.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { openModels } from '../../models/named-models.ts';
import { openStandalone, type Standalone } from '../../standalone/standalone.ts';
import type { AgentEvent } from '../../tools/events.ts';
import { type CliIo, EXIT, writeJsonLine } from '../io.ts';
import { openModelSource } from './model-source.ts';
import { PATTERN_RULES } from '../../policy/patterns/pattern-rules.ts';
import { redactingIo } from './redact.ts';
import { startCommandTracing } from '../tracing.ts';
import { painter, Transcript } from '../transcript.ts';
import { problemBlock } from '../manifests/validate.ts';

/** Deadline of one message, including the time it waits for approvals. */
const MESSAGE_TIMEOUT_MS = 24 * 3_600_000;

export interface RunOptions {
  filename: string[];
  message?: string[];
  agent?: string;
  session?: string;
  workspace: string;
  providers?: string;
  modelScript?: string;
  state: string;
  output?: 'text' | 'json';
}

/** Runs an agent in this process, with the messages of the options or lines typed by the user. Exit 1 when a message could not be answered. */
export async function run(options: RunOptions, outer: CliIo): Promise<number> {
  const io = redactingIo(outer);
  const paths = options.filename.map((path) => resolve(io.cwd, path));
  const manifests = await loadManifests(paths, { patterns: PATTERN_RULES });
  if (manifests.problems.length > 0) {
    for (const problem of manifests.problems) io.error(problemBlock(problem));
    return EXIT.refused;
  }
  const { agent, policy } = selectAgent(manifests, options.agent);
  const printer = createPrinter(agent.metadata.name, options, io);
  await using _tracing = await startCommandTracing(io);
  await using source = await openModelSource(options, io);
  const models = openModels(source.config, { clock: systemClock, environment: io.environment, random: Math.random });
  const [state, workspace] = [resolve(io.cwd, options.state), resolve(io.cwd, options.workspace)];
  await using standalone = await openStandalone({
    state,
    workspace,
    protectedPaths: governingFiles(options, manifests, io.cwd),
    agent,
    policy,
    models,
    events: printer.show,
  });
  const session = options.session ?? ulids.next('session');
  printer.session(session);
  await standalone.engine.submitPendingImports(session, messageOp(io));
  let code: number = EXIT.ok;
  for await (const text of messages(options, io)) {
    if (!(await answer(standalone, session, text, printer, io))) code = EXIT.refused;
    await standalone.engine.settled();
    if (io.signal.aborted) break;
  }
  printer.end();
  return code;
}

async function answer(
  standalone: Standalone,
  session: string,
  text: string,
  printer: Printer,
  io: CliIo,
): Promise<boolean> {
  try {
    const { turns, toolCalls, usage } = await standalone.engine.handle({ session, text }, messageOp(io));
    printer.count(turns, toolCalls, usage.inputTokens + usage.outputTokens);
    return true;
  } catch (error) {
    // The loop has already emitted an event for a TemperError. Any other error is a defect and must not be hidden.
    if (!isTemperError(error) && !io.signal.aborted) throw error;
    return false;
  }
}

/** Files that agents must not open: manifests, providers and script. An agent must not be able to change its own policy. */
function governingFiles({ providers, modelScript }: RunOptions, { objects }: LoadedManifests, cwd: string): string[] {
  const configFiles = [providers, modelScript].filter((file) => file !== undefined).map((file) => resolve(cwd, file));
  return [...new Set(objects.map(({ file }) => resolve(cwd, file))), ...configFiles];
}

function messageOp(io: CliIo): CallOptions {
  return { signal: io.signal, deadline: systemClock.monotonic() + MESSAGE_TIMEOUT_MS, key: ulids.next('run') };
}

async function* messages(options: RunOptions, io: CliIo): AsyncGenerator<string> {
  if (options.message === undefined) {
    for await (const line of io.lines('▸ ')) if (line.trim() !== '') yield line;
    return;
  }
  for (const message of options.message) yield message === '-' ? await io.stdin() : message;
}

function selectAgent(
  { objects }: LoadedManifests,
  agentName: string | undefined,
): { agent: Agent; policy: TrustPolicy } {
  const resources = objects.map(({ object }) => object);
  const agents = resources.filter((object): object is Agent => object.kind === 'Agent');
  const names = agents.map(({ metadata }) => metadata.name).join(', ') || 'none';
  const agent =
    agentName === undefined && agents.length === 1
      ? agents[0]
      : agents.find(({ metadata }) => metadata.name === agentName);
  if (agent === undefined) {
    const problem =
      agentName === undefined ? 'the manifests do not contain exactly one agent' : `no agent is named "${agentName}"`;
    throw new TemperError('TEMPER_USAGE', `${problem}; found: ${names}. Choose one with --agent`);
  }
  return { agent, policy: policyOf(agent, resources) };
}

function policyOf(agent: Agent, resources: readonly AnyResource[]): TrustPolicy {
  const { name } = agent.spec.trustPolicyRef;
  const policy = resources.find(
    (object): object is TrustPolicy =>
      object.kind === 'TrustPolicy' &&
      object.metadata.name === name &&
      object.metadata.namespace === agent.metadata.namespace,
  );
  if (policy !== undefined) return policy;
  throw new TemperError(
    'TEMPER_NOT_FOUND',
    `TrustPolicy "${name}", which spec.trustPolicyRef of agent "${agent.metadata.name}" names, is not in the manifests; add its file with -f`,
  );
}

interface Printer {
  show: (event: AgentEvent) => void;
  session(id: string): void;
  count(turns: number, toolCalls: number, tokens: number): void;
  end(): void;
}

function createPrinter(agent: string, options: RunOptions, io: CliIo): Printer {
  const form = options.output ?? (io.terminal ? 'text' : 'json');
  return form === 'json' ? jsonPrinter(agent, io) : textPrinter(agent, options, io);
}

/** Prints events as JSON lines with time, agent and session. */
function jsonPrinter(agent: string, io: CliIo): Printer {
  let current = '';
  return {
    show: (event) => writeJsonLine(io, { time: systemClock.now().toISOString(), agent, session: current, ...event }),
    session: (id) => {
      current = id;
    },
    count: () => undefined,
    end: () => undefined,
  };
}

function textPrinter(agent: string, options: RunOptions, io: CliIo): Printer {
  const paint = painter(io.colour);
  const transcript = new Transcript(agent, paint, (line) => io.out(`${line}\n`));
  const isInteractive = options.message === undefined && io.terminal;
  const used = { turns: 0, toolCalls: 0, tokens: 0 };
  return {
    // The terminal already shows the line that the user typed.
    show: (event) => (isInteractive && event.type === 'message-received' ? undefined : transcript.show(event)),
    session: () => undefined,
    count: (turns, toolCalls, tokens) => {
      used.turns += turns;
      used.toolCalls += toolCalls;
      used.tokens += tokens;
    },
    end: () => {
      const replayed = options.modelScript === undefined ? '' : ' (replayed)';
      const { turns, toolCalls, tokens } = used;
      io.out(
        paint(
          'dim',
          `Used ${turns} turns, ${toolCalls} tool calls, ${tokens.toLocaleString('en-US')} tokens${replayed}.`,
        ),
      );
      io.out('\n');
    },
  };
}
