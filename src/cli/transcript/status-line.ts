import type { Clock } from '../../lib/clock.ts';
import { truncateToWidth } from './styled-text.ts';

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'] as const;
const INTERVAL_MS = 120;
const ERASE_LINE = '\r\u001b[2K';

export interface StatusLineDeps {
  out: (text: string) => void;
  columns: () => number;
  clock: Pick<Clock, 'monotonic'>;
  /** Calls `tick` periodically; returns the function that stops it. */
  every: (milliseconds: number, tick: () => void) => () => void;
}

/** The last line of a terminal while something runs: what it is, and for how long. */
export class StatusLine {
  readonly #deps: StatusLineDeps;
  #label = '';
  #since = 0;
  #frame = 0;
  #isDrawn = false;
  #stopTicks: (() => void) | undefined;

  constructor(deps: StatusLineDeps) {
    this.#deps = deps;
  }

  /** Shows the label from the next tick on. The elapsed time starts again with a different label. */
  show(label: string): void {
    if (label !== this.#label) this.#since = this.#deps.clock.monotonic();
    this.#label = label;
    this.#stopTicks ??= this.#deps.every(INTERVAL_MS, () => this.#draw());
  }

  /** Removes the line until the next tick, so that other text can be written. */
  erase(): void {
    if (!this.#isDrawn) return;
    this.#isDrawn = false;
    this.#deps.out(ERASE_LINE);
  }

  hide(): void {
    this.#stopTicks?.();
    this.#stopTicks = undefined;
    this.#label = '';
    this.erase();
  }

  #draw(): void {
    this.#frame = (this.#frame + 1) % FRAMES.length;
    const seconds = Math.floor((this.#deps.clock.monotonic() - this.#since) / 1_000);
    const elapsed = seconds < 1 ? '' : ` ${seconds} s`;
    const text = truncateToWidth(`  ${FRAMES[this.#frame]} ${this.#label}${elapsed}`, this.#deps.columns() - 1);
    this.#isDrawn = true;
    this.#deps.out(`${ERASE_LINE}${text}`);
  }
}
