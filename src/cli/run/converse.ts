import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { ulids } from '../../lib/ids.ts';
import { printableDocument } from '../../lib/printable.ts';
import type { ParkedTurn } from '../../standalone/sessions/parked-turns.ts';
import type { Standalone } from '../../standalone/standalone.ts';
import type { OpenedAgent } from '../../standalone/team/opened-agent.ts';
import type { TeamEvents } from '../../standalone/team/team-events.ts';
import { DEFAULT_STATE } from '../cluster/options.ts';
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
  /** The agent that gets the messages of the user. */
  own: OpenedAgent;
  agent: Agent;
  session: string;
  printer: Printer;
  options: RunOptions;
  form: 'text' | 'json';
  /** Absolute path of the state folder. */
  state: string;
  /** Receive every event. */
  observers: TeamEvents[];
}

/** How the run handled a message. */
type Outcome = 'answered' | 'failed' | 'parked';

/**
 * Resumes the turn of the session that waits for an approval, then sends the messages one after another. Exit code 1 when a message
 * could not be answered; 3 when one waits for an approval: the run ends, and messages after it are not sent.
 */
export async function converse(conversation: Conversation, io: CliIo): Promise<number> {
  const { standalone, own, session, printer, form, observers } = conversation;
  const prompt = form === 'text' ? await openPrompt(conversation, io) : undefined;
  const approvals =
    prompt === undefined ? undefined : new InlineApprovals(prompt, standalone.records, printer, io.signal);
  if (approvals !== undefined) observers.push((event) => approvals.observe(event));
  await own.engine.submitPendingImports(session, messageOp(io));
  const handle = (message: RunMessage): Promise<Outcome> => {
    const work = (): Promise<Outcome> => handleMessage(conversation, message, io);
    return approvals?.during(work) ?? work();
  };
  let code: number = EXIT.ok;
  const parked = await own.parkedTurn(session);
  for await (const message of messagesAfter(parked, conversation, prompt, io)) {
    const outcome = await handle(message);
    if (outcome === 'failed') code = EXIT.refused;
    if (io.signal.aborted) break;
    await standalone.settled();
    if (outcome === 'parked') return EXIT.parked;
  }
  return code;
}

interface RunMessage {
  /** A resumed message keeps its id. */
  id: string;
  text: string;
}

async function* messagesAfter(
  parked: ParkedTurn | undefined,
  conversation: Conversation,
  prompt: Prompt | undefined,
  io: CliIo,
): AsyncGenerator<RunMessage> {
  if (parked !== undefined) yield { id: parked.message, text: parked.text };
  for await (const text of messages(conversation, prompt, io, parked !== undefined)) {
    yield { id: ulids.next('message'), text };
  }
}

async function handleMessage(conversation: Conversation, { id, text }: RunMessage, io: CliIo): Promise<Outcome> {
  const { own, session } = conversation;
  try {
    const message = { session, text, message: id, rootMessage: id };
    const { parked } = await own.engine.handle(message, messageOp(io));
    if (parked === undefined) return 'answered';
    io.error(parkedNote(parked, conversation));
    return 'parked';
  } catch (error) {
    // The loop has already emitted an event for a TemperError. Any other error is a defect and must not be hidden.
    if (!isTemperError(error) && !io.signal.aborted) throw error;
    return 'failed';
  }
}

/** How to decide, and how to go on. */
function parkedNote(requests: readonly string[], { session, options }: Conversation): string {
  const state = options.state === DEFAULT_STATE ? '' : ` --state ${options.state}`;
  const decide = requests.map((name) => `  temper approve ${name} --reason …${state}   (or temper deny)\n`).join('');
  return printableDocument(
    `note: the session waits for an approval, and messages after this one were not sent; decide:\n${decide}then go on with the same options: temper run … --session ${session}${state}\n`,
  );
}

function messageOp(io: CliIo): CallOptions {
  return { signal: io.signal, deadline: systemClock.monotonic() + MESSAGE_TIMEOUT_MS, key: ulids.next('run') };
}

function openPrompt({ state }: Conversation, io: CliIo): Promise<Prompt | undefined> {
  if (io.openPrompt === undefined) return Promise.resolve(undefined);
  const stored = inputHistory(state);
  return io.openPrompt({ history: stored.load(), onHistory: (inputs) => stored.save(inputs) });
}

async function* messages(
  conversation: Conversation,
  prompt: Prompt | undefined,
  io: CliIo,
  isResumed: boolean,
): AsyncGenerator<string> {
  const { message } = conversation.options;
  if (message !== undefined) {
    for (const text of message) yield messageText(text === '-' ? await io.stdin() : text, '--message');
  } else if (prompt === undefined) {
    yield* inputLines(io, isResumed);
  } else yield* typedMessages(conversation, prompt, io);
}

/** Each line of standard input is a message; empty lines are none. Throws TEMPER_USAGE when it has no message, unless the run resumes one. */
async function* inputLines(io: CliIo, isResumed: boolean): AsyncGenerator<string> {
  let hasMessage = isResumed;
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
  const { agent, session, options, printer, own } = conversation;
  const repl = {
    agent,
    session,
    state: options.state,
    usage: () => printer.usage(),
    forgedTools: () => own.forgedTools(session),
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
