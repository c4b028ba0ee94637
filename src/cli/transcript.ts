import { printable } from '../lib/escape.ts';
import type { Json } from '../lib/json.ts';
import type { AgentEvent, GateResult } from '../tools/events.ts';

type Paint = (style: 'dim' | 'bold' | 'green' | 'red' | 'yellow' | 'cyan', text: string) => string;

const CODES = { dim: '2', bold: '1', green: '32', red: '31', yellow: '33', cyan: '36' } as const;

export function painter(colour: boolean): Paint {
  return (style, text) => (colour ? `\u001b[${CODES[style]}m${text}\u001b[0m` : text);
}

/**
 * Turns events into the lines a person reads: one line an event, aligned, nothing that hides what matters.
 * The gates of one forge share a line that is written when the forge ends.
 */
export class Transcript {
  readonly #agent: string;
  readonly #paint: Paint;
  readonly #write: (line: string) => void;
  readonly #gates = new Map<string, GateResult[]>();
  #text = '';
  /** What was said before the calls that follow. */
  #pendingSay: string | undefined;

  constructor(agent: string, paint: Paint, write: (line: string) => void) {
    this.#agent = printable(agent, 40);
    this.#paint = paint;
    this.#write = write;
  }

  show(event: AgentEvent): void {
    if (event.type === 'message') {
      this.#text += event.text;
      return;
    }
    if (event.type === 'turn-end' || event.type === 'tool-call') this.#flushText();
    const line = this.#lineFor(event);
    if (line !== undefined) this.#write(line);
  }

  #flushText(): void {
    const text = this.#text.trim();
    this.#text = '';
    if (text !== '') this.#pendingSay = text;
  }

  #lineFor(event: AgentEvent): string | undefined {
    switch (event.type) {
      case 'session-start':
        return `Agent ${this.#paint('bold', this.#agent)} · model ${event.model} · policy ${event.policy} (level ${event.level})`;
      case 'message-received':
        return `${this.#paint('cyan', '▸ You:')} ${printable(event.text, 2_000)}`;
      case 'tool-call':
        return this.#say() + this.#call(event.tool, event.input);
      case 'tool-result':
        return event.ok || event.tool === 'forge_tool'
          ? undefined
          : this.#paint('red', `             ✗ ${printable(event.summary, 400)}`);
      case 'session-end':
        this.#pendingSay = undefined;
        return `${this.#paint('cyan', `◂ ${this.#agent}:`)} ${printable(event.reply, 20_000).replaceAll('\\n', '\n')}`;
      case 'approval-requested':
        return this.#paint(
          'yellow',
          `  waits for a person: ${event.tool} (risk ${event.risk}): ${printable(event.reason, 300)}\n    temper approve ${event.request} · temper deny ${event.request}`,
        );
      case 'approval-decided':
        return `  ${event.request}: ${event.decision} by ${printable(event.by, 80)}`;
      case 'warning':
        return this.#paint('yellow', `  ! ${printable(event.message, 400)}`);
      case 'error':
        return this.#paint(
          'red',
          `  ✗ ${event.code} ${printable(event.message, 600)}${event.attempt > 1 ? ` (attempt ${event.attempt})` : ''}`,
        );
      case 'forge-start':
      case 'forge-gate':
      case 'forge-accepted':
      case 'forge-refused':
        return this.#forge(event);
      case 'promotion':
      case 'demotion':
        return this.#tier(event);
      case 'message':
      case 'reasoning':
      case 'turn-start':
      case 'turn-end':
        return undefined;
    }
  }

  #say(): string {
    const text = this.#pendingSay;
    this.#pendingSay = undefined;
    return text === undefined ? '' : `  ${this.#agent}  ${this.#paint('dim', `“${printable(text, 300)}”`)}\n`;
  }

  #call(tool: string, input: Json): string {
    if (tool === 'forge_tool') return '';
    return `  ${this.#agent}  ${'calls'.padEnd(7)} ${printable(tool, 63)}  ${this.#paint('dim', brief(input))}`;
  }

  #forge(
    event: Extract<AgentEvent, { type: 'forge-start' | 'forge-gate' | 'forge-accepted' | 'forge-refused' }>,
  ): string | undefined {
    const tool = printable(event.tool, 63);
    switch (event.type) {
      case 'forge-start':
        this.#gates.set(event.tool, []);
        return `  ${this.#agent}  ${'forges'.padEnd(7)} ${this.#paint('bold', tool)}  ${event.mode.toLowerCase()} · ${printable(event.description, 80)}`;
      case 'forge-gate':
        this.#gates.get(event.tool)?.push(event.result);
        return undefined;
      case 'forge-accepted':
        return `${this.#gateLine(event.tool)}\n             → ${tool}@${event.digest.slice('sha256:'.length, 'sha256:'.length + 8)}  tier ${event.tier}`;
      case 'forge-refused':
        return `${this.#gateLine(event.tool)}\n${this.#paint('red', indented(event.message))}\n             → told the agent, nothing registered`;
    }
  }

  #gateLine(tool: string): string {
    const gates = (this.#gates.get(tool) ?? []).map(({ gate, passed, note }) => {
      const mark = passed ? this.#paint('green', '✓') : this.#paint('red', '✗');
      return `${gate} ${note === '' ? '' : `${printable(note, 60)} `}${mark}`;
    });
    this.#gates.delete(tool);
    return `             ${gates.join('  ')}`;
  }

  #tier(event: Extract<AgentEvent, { type: 'promotion' | 'demotion' }>): string {
    const tool = printable(event.tool, 63);
    if (event.type === 'demotion') return this.#paint('red', `  ${tool}  demoted: ${printable(event.reason, 300)}`);
    const state = event.state === 'Promoted' ? this.#paint('green', `→ tier ${event.to}`) : event.state;
    return `  ${this.#paint('bold', tool)}  ${printable(event.note, 300)}${event.note === '' ? '' : ' '}${state}`;
  }
}

function indented(text: string): string {
  return printable(text, 1_200)
    .split('\\n')
    .map((line) => `             ${line}`)
    .join('\n');
}

function brief(input: Json): string {
  const text = printable(JSON.stringify(input), 120);
  return text === '{}' ? '' : text;
}
