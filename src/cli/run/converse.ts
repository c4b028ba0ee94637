import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { ulids } from '../../lib/ids.ts';
import type { Standalone } from '../../standalone/standalone.ts';
import type { AgentEvent } from '../../tools/events.ts';
import { type CliIo, EXIT, type Prompt } from '../io.ts';
import { InlineApprovals } from './inline-approvals.ts';
import { inputHistory } from '../prompt/input-history.ts';
import { messageText } from '../input/message-text.ts';
import type { Printer } from './printer.ts';
import { replCommand } from './repl-commands.ts';
import type { RunOptions } from './run-options.ts';

/** Deadline of one message, including the time it waits for approvals. */
const MESSAGE_TIMEOUT_MS = 24 * 3_600_000;

export interface Conversation {
  standalone: Standalone;
  agent: Agent;
  session: string;
  printer: Printer;
  options: RunOptions;
  form: 'text' | 'json';
  /** Absolute path of the state folder. */
  state: string;
  /** Receive every event of the engine. */
  observers: ((event: AgentEvent) => void)[];
}

/** Sends the messages one after another. Exit code 1 when a message could not be answered. */
export async function converse(conversation: Conversation, io: CliIo): Promise<number> {
  const { standalone, session, printer, form, observers } = conversation;
  const prompt = form === 'text' ? await openPrompt(conversation, io) : undefined;
  const approvals =
    prompt === undefined ? undefined : new InlineApprovals(prompt, standalone.records, printer, io.signal);
  if (approvals !== undefined) observers.push((event) => approvals.observe(event));
  await standalone.engine.submitPendingImports(session, messageOp(io));
  let code: number = EXIT.ok;
  for await (const text of messages(conversation, prompt, io)) {
    const handle = (): Promise<boolean> => isAnswered(conversation, text, io);
    if (!(await (approvals?.during(handle) ?? handle()))) code = EXIT.refused;
    if (io.signal.aborted) break;
    await standalone.engine.settled();
  }
  return code;
}

async function isAnswered({ standalone, session }: Conversation, text: string, io: CliIo): Promise<boolean> {
  try {
    await standalone.engine.handle({ session, text }, messageOp(io));
    return true;
  } catch (error) {
    // The loop has already emitted an event for a TemperError. Any other error is a defect and must not be hidden.
    if (!isTemperError(error) && !io.signal.aborted) throw error;
    return false;
  }
}

function messageOp(io: CliIo): CallOptions {
  return { signal: io.signal, deadline: systemClock.monotonic() + MESSAGE_TIMEOUT_MS, key: ulids.next('run') };
}

function openPrompt({ state }: Conversation, io: CliIo): Promise<Prompt | undefined> {
  if (io.openPrompt === undefined) return Promise.resolve(undefined);
  const stored = inputHistory(state);
  return io.openPrompt({ history: stored.load(), onHistory: (inputs) => stored.save(inputs) });
}

async function* messages(conversation: Conversation, prompt: Prompt | undefined, io: CliIo): AsyncGenerator<string> {
  const { message } = conversation.options;
  if (message !== undefined) {
    for (const text of message) yield messageText(text === '-' ? await io.stdin() : text, '--message');
  } else if (prompt === undefined) {
    yield* inputLines(io);
  } else yield* typedMessages(conversation, prompt, io);
}

/** Each line of standard input is a message; empty lines are none. Throws TEMPER_USAGE when it has no message. */
async function* inputLines(io: CliIo): AsyncGenerator<string> {
  let hasMessage = false;
  for await (const line of io.lines()) {
    if (line.trim() === '') continue;
    hasMessage = true;
    yield messageText(line, 'a line of standard input');
  }
  if (hasMessage || io.signal.aborted) return;
  throw new TemperError(
    'TEMPER_USAGE',
    'standard input has no message; give one with -m, or one per line on standard input',
  );
}

/** What the user types at the prompt, without its commands. */
async function* typedMessages(conversation: Conversation, prompt: Prompt, io: CliIo): AsyncGenerator<string> {
  const { agent, session, options, printer, standalone } = conversation;
  const repl = {
    agent,
    session,
    state: options.state,
    usage: () => printer.usage(),
    forgedTools: () => standalone.forgedTools(session),
  };
  io.out('Type a message, or /help. Ctrl-D ends the run.\n');
  for (;;) {
    printer.screen?.showStatus(undefined);
    const line = await prompt.read('▸ ', { signal: io.signal });
    if (line === undefined) return;
    if (line.trim() === '') continue;
    const command = replCommand(line, repl);
    if (command === 'exit') return;
    if (command === undefined) yield line;
    else io.out(command.text);
  }
}
