import { digestOf } from '../../lib/canonical.ts';
import { SerialQueue } from '../../lib/async/serial-queue.ts';
import { systemClock } from '../../lib/clock.ts';
import { ulids } from '../../lib/ids.ts';
import { textAt } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import { submitDecision } from '../../standalone/decision-files.ts';
import type { AgentEvent } from '../../tools/events.ts';
import type { Prompt } from '../io.ts';
import type { Printer } from './printer.ts';

const QUESTION = '  approve? [y/N/reason] ';
const MAX_SHOWN_ARGUMENTS = 4_000;

type ApprovalRequested = Extract<AgentEvent, { type: 'approval-requested' }>;

/** Asks the user at the terminal about approval requests, one after another, while a message is handled. */
export class InlineApprovals {
  readonly #prompt: Prompt;
  readonly #records: RecordStore;
  readonly #printer: Printer;
  readonly #signal: AbortSignal;
  /** Ends the question about a request that is decided elsewhere. */
  readonly #open = new Map<string, AbortController>();
  readonly #questions = new SerialQueue();
  #isActive = false;

  constructor(prompt: Prompt, records: RecordStore, printer: Printer, signal: AbortSignal) {
    this.#prompt = prompt;
    this.#records = records;
    this.#printer = printer;
    this.#signal = signal;
  }

  /** Asks about requests that arrive until `work` has ended. */
  async during<T>(work: () => Promise<T>): Promise<T> {
    this.#isActive = true;
    try {
      return await work();
    } finally {
      this.#isActive = false;
      for (const controller of this.#open.values()) controller.abort();
      await this.#questions.idle();
    }
  }

  /** Call with each event, after it was printed. */
  observe(event: AgentEvent): void {
    if (event.type === 'approval-decided') this.#open.get(event.request)?.abort();
    if (event.type !== 'approval-requested' || !this.#isActive || this.#open.has(event.request)) return;
    const decidedElsewhere = new AbortController();
    this.#open.set(event.request, decidedElsewhere);
    const signal = AbortSignal.any([this.#signal, decidedElsewhere.signal]);
    this.#questions
      .run(() => this.#ask(event, signal))
      .catch((error: unknown) => this.#report(error))
      .finally(() => this.#open.delete(event.request));
  }

  async #ask({ request, tool }: ApprovalRequested, signal: AbortSignal): Promise<void> {
    // A turn that resumes reports its requests again, and some of them are decided.
    if (textAt((await this.#records.get('approvalrequests', request)) ?? null, ['status', 'decision']) !== '') return;
    const { screen } = this.#printer;
    screen?.showStatus(undefined);
    screen?.line(`    ${await this.#callOf(request, tool)}`, 6);
    // Other lines wait, so that they do not run through the question.
    screen?.hold();
    try {
      const reply = await this.#prompt.read(QUESTION, { signal, remember: false });
      // Without a reply the request stays open: another terminal may decide.
      if (reply === undefined) return;
      await submitDecision(this.#records, decisionOf(request, reply), { clock: systemClock, ids: ulids });
    } finally {
      screen?.release();
    }
  }

  /** The call that the request is bound to. Of several running calls of the tool it is the one with the digest of the request. */
  async #callOf(request: string, tool: string): Promise<string> {
    const stored = await this.#records.get('approvalrequests', request);
    const digest = textAt(stored, ['spec', 'subject', 'call', 'argumentsDigest']);
    const input = this.#printer.runningCalls(tool).find((candidate) => digestOf(candidate) === digest);
    const name = printable(tool, 63);
    if (input === undefined) {
      const shown = textAt(stored, ['spec', 'arguments']);
      return `${name}, called by another tool with ${printable(shown || `arguments of digest ${digest}`, MAX_SHOWN_ARGUMENTS)}`;
    }
    return `${name} ${printable(JSON.stringify(input), MAX_SHOWN_ARGUMENTS)}`;
  }

  #report(error: unknown): void {
    this.#printer.screen?.line(`  ! the decision was not recorded: ${printable(String(error), 400)}`, 4);
  }
}

/** `y` or `yes` approves, with a reason after it if one is given; nothing, `n` and any other text deny. */
export function decisionOf(
  target: string,
  reply: string,
): { verb: 'Approve' | 'Deny'; target: string; reason: string } {
  const [, word = '', rest = ''] = /^(\S*)\s*([^]*)$/.exec(reply.trim()) ?? [];
  const answer = word.toLowerCase().replace(/[,:]$/, '');
  if (['y', 'yes'].includes(answer)) return { verb: 'Approve', target, reason: rest || 'approved at the terminal' };
  if (['', 'n', 'no'].includes(answer)) return { verb: 'Deny', target, reason: rest || 'denied at the terminal' };
  return { verb: 'Deny', target, reason: reply.trim() };
}
