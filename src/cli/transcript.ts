import { printable } from '../lib/printable.ts';
import type { Json } from '../lib/json.ts';
import type { AgentEvent, GateResult } from '../tools/events.ts';

type Style = 'dim' | 'bold' | 'green' | 'red' | 'yellow' | 'cyan';
type Paint = (style: Style, text: string) => string;
type EventOf<K extends AgentEvent['type']> = Extract<AgentEvent, { type: K }>;
type ForgeEvent = EventOf<'forge-start' | 'forge-gate' | 'forge-accepted' | 'forge-refused'>;

const ANSI_CODES: Record<Style, number> = { dim: 2, bold: 1, green: 32, red: 31, yellow: 33, cyan: 36 };
const INDENT = ' '.repeat(13);

export function painter(colour: boolean): Paint {
  return (style, text) => (colour ? `\u001b[${ANSI_CODES[style]}m${text}\u001b[0m` : text);
}

/**
 * Formats events as aligned lines for a terminal, one line per event. The gates of one forge share a line, which is written when the
 * forge ends.
 */
export class Transcript {
  readonly #agent: string;
  readonly #paint: Paint;
  readonly #write: (line: string) => void;
  readonly #forges: ForgeLines;
  #headerShown = false;
  /** Text of the agent since its last tool call or turn. */
  #pendingText = '';

  constructor(agent: string, paint: Paint, write: (line: string) => void) {
    this.#agent = printable(agent, 40);
    this.#paint = paint;
    this.#write = write;
    this.#forges = new ForgeLines(this.#agent, paint);
  }

  show(event: AgentEvent): void {
    const line = this.#lineFor(event);
    if (line !== undefined && line !== '') this.#write(line);
  }

  /** Prints the answer, when it comes from the gateway and not from an event of the agent. */
  showAnswer(text: string): void {
    this.#write(this.#reply(text));
  }

  #lineFor(event: AgentEvent): string | undefined {
    switch (event.type) {
      case 'message':
        // Deltas come first, then the complete message.
        this.#pendingText = event.delta ? this.#pendingText + event.text : event.text;
        return undefined;
      case 'session-start':
        return this.#header(event);
      case 'message-received':
        return `${this.#paint('cyan', '▸ You:')} ${printable(event.text, 2_000)}`;
      case 'tool-call':
        return [this.#remark(), this.#call(event.tool, event.input)].filter((line) => line !== '').join('\n');
      case 'tool-result':
        return event.ok || event.tool === 'forge_tool'
          ? undefined
          : this.#paint('red', `${INDENT}✗ ${printable(event.summary, 400)}`);
      case 'session-end':
        return this.#reply(event.reply);
      case 'forge-start':
      case 'forge-gate':
      case 'forge-accepted':
      case 'forge-refused':
        return this.#forges.lineFor(event);
      default:
        return this.#notice(event);
    }
  }

  #header({ model, policy, level }: EventOf<'session-start'>): string | undefined {
    if (this.#headerShown) return undefined;
    this.#headerShown = true;
    return `Agent ${this.#paint('bold', this.#agent)} · model ${printable(model, 128)} · policy ${policy} (level ${level})`;
  }

  #remark(): string {
    const text = this.#pendingText.trim();
    this.#pendingText = '';
    return text === '' ? '' : `  ${this.#agent}  ${this.#paint('dim', `“${printable(text, 300)}”`)}`;
  }

  #call(tool: string, input: Json): string {
    if (tool === 'forge_tool') return '';
    const json = JSON.stringify(input);
    const shown = json === '{}' ? '' : this.#paint('dim', printable(json, 120));
    return `  ${this.#agent}  ${'calls'.padEnd(7)} ${printable(tool, 63)}  ${shown}`.trimEnd();
  }

  #reply(text: string): string {
    this.#pendingText = '';
    const lines = text.split('\n').map((line) => printable(line, 20_000));
    return `${this.#paint('cyan', `◂ ${this.#agent}:`)} ${lines.join('\n')}`;
  }

  #notice(event: AgentEvent): string | undefined {
    switch (event.type) {
      case 'approval-requested':
        return this.#paint(
          'yellow',
          `  waits for an approver: ${printable(event.tool, 63)} (risk ${event.risk}): ${printable(event.reason, 300)}\n` +
            `    temper approve ${event.request} --reason … · temper deny ${event.request} --reason …`,
        );
      case 'approval-decided':
        return `  ${event.request}: ${event.decision} by ${printable(event.by, 80)}`;
      case 'promotion':
        return this.#promotion(event);
      case 'demotion':
        return this.#paint('red', `  ${printable(event.tool, 63)}  demoted: ${printable(event.reason, 300)}`);
      case 'warning':
        return this.#paint('yellow', `  ! ${printable(event.message, 400)}`);
      case 'error':
        return this.#paint('red', `  ✗ ${event.code}: ${printable(event.message, 600)}`);
      default:
        return undefined;
    }
  }

  #promotion({ tool, state, to, note }: EventOf<'promotion'>): string | undefined {
    // The line with the verdicts of the panel follows.
    if (state === 'Candidate' || state === 'PanelReview') return undefined;
    const outcome = state === 'Promoted' ? this.#paint('green', `→ tier ${to}`) : state;
    return `  ${this.#paint('bold', printable(tool, 63))}  ${[printable(note, 300), outcome].filter((part) => part !== '').join(' ')}`;
  }
}

/** The lines of forges. Several forges may run at once, so gates are collected per tool. */
class ForgeLines {
  readonly #agent: string;
  readonly #paint: Paint;
  readonly #gates = new Map<string, GateResult[]>();

  constructor(agent: string, paint: Paint) {
    this.#agent = agent;
    this.#paint = paint;
  }

  lineFor(event: ForgeEvent): string | undefined {
    const tool = printable(event.tool, 63);
    switch (event.type) {
      case 'forge-start':
        this.#gates.set(event.tool, []);
        return `  ${this.#agent}  ${'forges'.padEnd(7)} ${this.#paint('bold', tool)}  ${event.mode.toLowerCase()} · ${printable(event.description, 80)}`;
      case 'forge-gate':
        this.#gates.get(event.tool)?.push(event.result);
        return undefined;
      case 'forge-accepted':
        return `${this.#gateLine(event.tool)}\n${INDENT}→ ${tool}@${shortDigest(event.digest)}  tier ${event.tier}`;
      case 'forge-refused':
        return `${this.#gateLine(event.tool)}\n${this.#paint('red', indented(event.message))}\n${INDENT}→ reported to the agent, nothing registered`;
    }
  }

  #gateLine(tool: string): string {
    const gates = (this.#gates.get(tool) ?? []).map(({ gate, passed, note }) => {
      const mark = passed ? this.#paint('green', '✓') : this.#paint('red', '✗');
      return [gate, printable(note, 60), mark].filter((part) => part !== '').join(' ');
    });
    this.#gates.delete(tool);
    return `${INDENT}${gates.join('  ')}`;
  }
}

function shortDigest(digest: string): string {
  return digest.slice('sha256:'.length, 'sha256:'.length + 8);
}

function indented(text: string): string {
  const lines = text.slice(0, 1_200).split('\n');
  return lines.map((line) => `${INDENT}${printable(line, 400)}`).join('\n');
}
