import type { Json } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { AgentEvent } from '../../tools/events.ts';
import { DETAIL_INDENT, ForgeLines } from './forge-lines.ts';
import type { Style, TranscriptScreen } from './screen.ts';
import { WordStream } from './word-stream.ts';

type EventOf<K extends AgentEvent['type']> = Extract<AgentEvent, { type: K }>;

const INDENT = ' '.repeat(DETAIL_INDENT);
const ANSWER_INDENT = 2;

/**
 * Shows events as aligned lines, one line per event. On a terminal, text of the agent appears while it arrives, and a status line
 * says what runs.
 */
export class Transcript {
  readonly #agent: string;
  readonly #screen: TranscriptScreen;
  readonly #forges: ForgeLines;
  readonly #words = new WordStream();
  readonly #calls = new Map<string, { tool: string; input: Json }>();
  /** The call whose line is the last one; its result needs no name when no other call runs. */
  #lastCall: string | undefined;
  #headerShown = false;
  /** Text of the agent since its last tool call. */
  #text = '';
  /** Text of the running model call. */
  #turnText = '';
  #isStreaming = false;

  /** `isReported`: the events come from a pod, which may claim anything; only the gateway's own verdicts are its word. */
  constructor(agent: string, screen: TranscriptScreen, { isReported = false }: { isReported?: boolean } = {}) {
    this.#agent = printable(agent, 40);
    this.#screen = screen;
    this.#forges = new ForgeLines(this.#agent, screen, isReported);
  }

  show(event: AgentEvent): void {
    this.#showEvent(event);
    this.#showStatus(event);
  }

  /** Shows the answer, when it comes from the gateway and not from an event of the agent. */
  showAnswer(text: string): void {
    this.#answer(text);
  }

  /** The calls of this tool that run now, with their arguments. */
  runningCalls(tool: string): Json[] {
    return [...this.#calls.values()].filter((call) => call.tool === tool).map(({ input }) => input);
  }

  #showEvent(event: AgentEvent): void {
    if (event.type !== 'tool-result') this.#lastCall = undefined;
    switch (event.type) {
      case 'message':
        return event.delta ? this.#delta(event.text) : this.#message(event.text);
      case 'session-start':
        return this.#header(event);
      case 'message-received':
        return this.#received(event);
      case 'tool-call':
        return this.#call(event);
      case 'tool-result':
        return this.#result(event);
      case 'session-end':
        return this.#answer(event.reply);
      case 'forge-start':
      case 'forge-gate':
      case 'forge-accepted':
      case 'forge-refused':
        return this.#forges.show(event);
      default:
        return this.#notice(event);
    }
  }

  #received({ text, from }: EventOf<'message-received'>): void {
    const speaker = from === undefined ? '▸ You:' : `▸ ${printable(from, 63)} to ${this.#agent}:`;
    this.#screen.line(`${this.#screen.paint('cyan', speaker)} ${printable(text, 2_000)}`, ANSWER_INDENT);
  }

  #header({ model, policy, level }: EventOf<'session-start'>): void {
    if (this.#headerShown) return;
    this.#headerShown = true;
    const agent = this.#screen.paint('bold', this.#agent);
    this.#screen.line(
      `Agent ${agent} · model ${printable(model, 128)} · policy ${printable(policy, 253)} (level ${printable(level, 63)})`,
      ANSWER_INDENT,
    );
  }

  #delta(text: string): void {
    this.#turnText += text;
    if (this.#screen.isLive) this.#stream(this.#words.push(text));
  }

  /** The complete text of one model call. Its deltas came before, unless the call was repeated or the model does not stream. */
  #message(text: string): void {
    if (this.#screen.isLive) {
      this.#stream(this.#words.flush());
      if (this.#turnText !== text) {
        this.#endStream();
        this.#stream(text);
      }
    }
    this.#text += text;
    this.#turnText = '';
  }

  #stream(text: string): void {
    const visible = this.#isStreaming ? text : text.trimStart();
    if (visible === '') return;
    if (!this.#isStreaming) this.#screen.beginText(`${this.#answerMark()} `, ANSWER_INDENT);
    this.#isStreaming = true;
    this.#screen.addText(visible);
  }

  #endStream(): void {
    this.#isStreaming = false;
    this.#screen.endText();
  }

  #call({ id, tool, input, depth = 0 }: EventOf<'tool-call'>): void {
    this.#remark();
    this.#calls.set(id, { tool, input });
    if (tool === 'forge_tool') return;
    const { paint } = this.#screen;
    const shown = hasArguments(input) ? paint('dim', printable(JSON.stringify(input), 120)) : '';
    this.#screen.line(
      `  ${this.#agent}  ${nesting(depth)}${'calls'.padEnd(7)} ${printable(tool, 63)}  ${shown}`.trimEnd(),
      DETAIL_INDENT,
    );
    this.#lastCall = id;
  }

  /** Writes what the agent said before a call or an error, unless it was streamed. */
  #remark(): void {
    if (this.#screen.isLive) this.#stream(this.#words.flush());
    const text = this.#takeText().trim();
    if (this.#isStreaming) this.#endStream();
    else if (text !== '' && !this.#screen.isLive)
      this.#screen.line(`  ${this.#agent}  ${this.#screen.paint('dim', `“${printable(text, 300)}”`)}`, DETAIL_INDENT);
  }

  #takeText(): string {
    const text = this.#text + this.#turnText;
    this.#text = '';
    this.#turnText = '';
    return text;
  }

  #result({ id, tool, ok, summary }: EventOf<'tool-result'>): void {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    const isOnlyCall = this.#lastCall === id && this.#calls.size === 0;
    const label = isOnlyCall ? '' : `${callLabel(tool, call?.input)}: `;
    this.#lastCall = undefined;
    if (tool === 'forge_tool' && (ok || this.#forges.takeShownRefusal())) return;
    if (ok) this.#screen.cutLine(`${INDENT}✓ ${label}`, printable(summary, 400), 'dim');
    else
      this.#screen.line(this.#screen.paint('red', `${INDENT}✗ ${label}${printable(summary, 400)}`), DETAIL_INDENT + 2);
  }

  #answer(reply: string): void {
    if (this.#screen.isLive) this.#stream(this.#words.flush());
    const said = this.#takeText();
    const isShown = this.#isStreaming && (reply === '' || said.trim() === reply.trim());
    this.#endStream();
    if (isShown || reply === '') return;
    if (this.#screen.isLive) {
      this.#stream(reply);
      return this.#endStream();
    }
    const lines = reply.split('\n').map((line) => printable(line, 20_000));
    this.#screen.line(`${this.#answerMark()} ${lines.join('\n')}`);
  }

  #answerMark(): string {
    return this.#screen.paint('cyan', `◂ ${this.#agent}:`);
  }

  #notice(event: AgentEvent): void {
    switch (event.type) {
      case 'approval-requested':
        return this.#approvalRequest(event);
      case 'approval-decided':
        return this.#screen.line(
          `  ${printable(event.request, 253)}: ${printable(event.decision, 40)} by ${printable(event.by, 80)}`,
          4,
        );
      case 'promotion':
        return this.#promotion(event);
      case 'demotion':
        return this.#styled('red', `  ${printable(event.tool, 63)}  demoted: ${printable(event.reason, 300)}`);
      case 'hook':
        return this.#hook(event);
      case 'retry':
        return this.#retry(event);
      case 'compaction':
        return this.#screen.line(
          this.#screen.paint('dim', `  the first ${event.items} items of the session are summarised`),
          4,
        );
      case 'context':
        return this.#screen.line(this.#screen.paint('dim', `  ${contextText(event)}`), 4);
      case 'model-routed':
        return this.#screen.line(this.#screen.paint('dim', `  ${routeText(event)}`), 4);
      case 'warning':
        return this.#styled('yellow', `  ! ${printable(event.message, 400)}`);
      case 'error':
        // What had arrived of the answer; its end is missing.
        this.#remark();
        if (event.code === 'TEMPER_CANCELLED') return this.#styled('yellow', '  ! interrupted');
        return this.#styled('red', `  ✗ ${printable(event.code, 80)}: ${printable(event.message, 600)}`);
      default:
        this.#ofNested(event);
    }
  }

  #ofNested(event: AgentEvent): void {
    switch (event.type) {
      case 'agent-start':
      case 'agent-message':
      case 'agent-error':
      case 'agent-complete':
        return this.#run(event);
      default:
    }
  }

  /** Only what a hook changed: its failures are shown by the warning or the error that they cause. */
  #hook({ tool, event, directive }: EventOf<'hook'>): void {
    if (directive === undefined) return;
    this.#styled('dim', `  hook ${printable(tool, 63)} at ${printable(event, 32)}: ${printable(directive, 16)}`);
  }

  /** A run of `agent_run`, below the call that started it. */
  #run(event: EventOf<'agent-start' | 'agent-message' | 'agent-error' | 'agent-complete'>): void {
    const { paint } = this.#screen;
    const { ancestorIds = [], contextId = '' } = event;
    const agent = `${nesting(ancestorIds.length)}nested agent ${printable(contextId, 6)}`;
    if (event.type === 'agent-start') {
      const name = event.name === '' ? '' : ` (${printable(event.name, 63)})`;
      return this.#screen.line(`  ${agent}${name} starts with ${printable(event.model, 128)}`, DETAIL_INDENT);
    }
    if (event.type === 'agent-message')
      return this.#screen.line(`  ${agent} ${paint('dim', `“${printable(event.text, 300)}”`)}`, DETAIL_INDENT);
    if (event.type === 'agent-error')
      return this.#styled('yellow', `  ${agent} ! ${printable(event.code, 80)}: ${printable(event.message, 300)}`);
    const summary = printable(event.summary, 160);
    return event.ok ? this.#styled('dim', `  ${agent} ✓ ${summary}`) : this.#styled('red', `  ${agent} ✗ ${summary}`);
  }

  #retry({ model, attempt, code, milliseconds }: EventOf<'retry'>): void {
    const time = milliseconds > 0 ? ` in ${(milliseconds / 1_000).toFixed(1)} s` : '';
    const next = `attempt ${attempt} with ${printable(model, 128)}${time}`;
    this.#styled('yellow', `  ! ${printable(code, 80)}: ${next}`);
  }

  #styled(style: Style, text: string): void {
    this.#screen.line(this.#screen.paint(style, text), 4);
  }

  #approvalRequest({ request, tool, risk, reason }: EventOf<'approval-requested'>): void {
    const name = printable(request, 253);
    this.#styled(
      'yellow',
      `  waits for an approver: ${printable(tool, 63)} (risk ${printable(risk, 40)}): ${printable(reason, 300)}`,
    );
    this.#styled('yellow', `    temper approve ${name} --reason … · temper deny ${name} --reason …`);
  }

  #promotion({ tool, state, to, note }: EventOf<'promotion'>): void {
    // The line with the verdicts of the panel follows.
    if (state === 'Candidate' || state === 'PanelReview') return;
    const { paint } = this.#screen;
    const outcome = state === 'Promoted' ? paint('green', `→ tier ${printable(to, 20)}`) : printable(state, 40);
    const details = [printable(note, 300), outcome].filter((part) => part !== '').join(' ');
    this.#screen.line(`  ${paint('bold', printable(tool, 63))}  ${details}`, 4);
  }

  #showStatus(event: AgentEvent): void {
    const isWaiting = event.type === 'approval-requested' || event.type === 'session-end';
    this.#screen.showStatus(isWaiting ? undefined : this.#status(event));
  }

  #status(event: AgentEvent): string | undefined {
    const forging = this.#forges.status();
    if (forging !== undefined) return forging;
    const [first, ...others] = this.#calls.values();
    if (first !== undefined) {
      return others.length > 0 ? `${others.length + 1} calls run` : `${printable(first.tool, 63)} runs`;
    }
    const isBackground = event.type === 'promotion' || event.type === 'demotion';
    return isBackground || event.type === 'error' ? undefined : `${this.#agent} thinks`;
  }
}

/** The mark before a call that another call makes. */
function nesting(depth: number): string {
  return depth === 0 ? '' : `${'  '.repeat(depth - 1)}↳ `;
}

function contextText({ parts }: EventOf<'context'>): string {
  const shown = parts.map(({ name, state, characters }) =>
    state === 'Included'
      ? `${printable(name, 128)} (${characters} characters)`
      : `${printable(name, 128)} (${printable(state, 16)})`,
  );
  return `context: ${shown.join(', ')}`;
}

function routeText({ model, complexity, points }: EventOf<'model-routed'>): string {
  return `model ${printable(model, 128)} for a message of complexity ${printable(complexity, 16)} (${points} points)`;
}

function hasArguments(input: Json | undefined): boolean {
  return input !== undefined && input !== null && JSON.stringify(input) !== '{}';
}

/** Names a call whose result does not follow its line. */
function callLabel(tool: string, input: Json | undefined): string {
  const shown = hasArguments(input) && tool !== 'forge_tool' ? ` ${printable(JSON.stringify(input), 60)}` : '';
  return `${printable(tool, 63)}${shown}`;
}
