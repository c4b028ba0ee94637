import { printable } from '../../lib/printable.ts';
import type { AgentEvent, GateResult } from '../../tools/events.ts';
import type { TranscriptScreen } from './screen.ts';
import { KEEP_TOGETHER } from './wrap.ts';

type ForgeEvent = Extract<AgentEvent, { type: 'forge-start' | 'forge-gate' | 'forge-accepted' | 'forge-refused' }>;

/** Columns before the details of a call or a forge. */
export const DETAIL_INDENT = 13;
const INDENT = ' '.repeat(DETAIL_INDENT);

/** The lines of forges. Several forges may run at once, so gates are collected per tool and written when the forge ends. */
export class ForgeLines {
  readonly #agent: string;
  readonly #screen: TranscriptScreen;
  readonly #isReported: boolean;
  readonly #gates = new Map<string, GateResult[]>();
  /** Refusals that are already on the screen, and whose `forge_tool` result is still to come. */
  #shownRefusals = 0;

  constructor(agent: string, screen: TranscriptScreen, isReported: boolean) {
    this.#agent = agent;
    this.#screen = screen;
    this.#isReported = isReported;
  }

  show(event: ForgeEvent): void {
    const { paint } = this.#screen;
    const tool = printable(event.tool, 63);
    switch (event.type) {
      case 'forge-start':
        this.#gates.set(event.tool, []);
        this.#screen.line(
          `  ${this.#agent}  ${'forges'.padEnd(7)} ${paint('bold', tool)}  ${printable(event.mode.toLowerCase(), 20)} · ${printable(event.description, 80)}`,
          DETAIL_INDENT,
        );
        return;
      case 'forge-gate':
        this.#gates.get(event.tool)?.push(event.result);
        return;
      case 'forge-accepted':
        this.#showGates(event.tool);
        this.#screen.line(
          `${INDENT}→ ${tool}@${shortDigest(event.digest)}  tier ${printable(event.tier, 20)}`,
          DETAIL_INDENT + 2,
        );
        return;
      case 'forge-refused':
        this.#shownRefusals += 1;
        this.#showGates(event.tool);
        this.#screen.line(paint('red', indented(event.message)), DETAIL_INDENT);
        this.#screen.line(`${INDENT}→ reported to the agent, nothing registered`, DETAIL_INDENT + 2);
    }
  }

  /** What the forges do now; undefined when none runs. */
  status(): string | undefined {
    const running = [...this.#gates];
    const [first] = running;
    if (first === undefined) return undefined;
    if (running.length > 1) return `forging ${running.length} tools`;
    const [tool, gates] = first;
    const last = gates.at(-1);
    const claim = last !== undefined && this.#isReported && !isOfGateway(last) ? ', reported by the pod' : '';
    return `forging ${printable(tool, 63)}${last === undefined ? '' : `: gate ${printable(last.gate, 40)} ${last.passed ? 'passed' : 'failed'}${claim}`}`;
  }

  /** True once for each refusal on the screen, so that the failed result of `forge_tool` does not repeat it. */
  takeShownRefusal(): boolean {
    if (this.#shownRefusals === 0) return false;
    this.#shownRefusals -= 1;
    return true;
  }

  #showGates(tool: string): void {
    const gates = this.#gates.get(tool) ?? [];
    this.#gates.delete(tool);
    const reported = this.#isReported ? gates.filter((result) => !isOfGateway(result)) : [];
    this.#showLine('reported by the pod:  ', reported);
    this.#showLine(
      '',
      gates.filter((result) => !reported.includes(result)),
    );
  }

  #showLine(heading: string, gates: readonly GateResult[]): void {
    const { paint } = this.#screen;
    const shown = gates.map(({ gate, passed, note }) => {
      const mark = passed ? paint('green', '✓') : paint('red', '✗');
      const words = [printable(gate, 40), printable(note, 60), mark].filter((part) => part !== '').join(' ');
      return words.replaceAll(' ', KEEP_TOGETHER);
    });
    if (shown.length > 0) this.#screen.line(`${INDENT}${heading}${shown.join('  ')}`, DETAIL_INDENT);
  }
}

/** The gateway publishes these results itself, and drops them from the reports of pods. */
function isOfGateway({ gate, passed }: GateResult): boolean {
  return gate === 'judge' || gate === 'registration' || (gate === 'policy' && passed);
}

function shortDigest(digest: string): string {
  return printable(digest.slice('sha256:'.length, 'sha256:'.length + 8), 8);
}

function indented(text: string): string {
  const lines = text.slice(0, 1_200).split('\n');
  return lines.map((line) => `${INDENT}${printable(line, 400)}`).join('\n');
}
