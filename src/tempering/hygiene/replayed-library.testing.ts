import { sha256 } from '../../lib/canonical.ts';
import { seededRandom, type SeededRandom } from '../examination/inputs/seeded-random.ts';

/** A library of tools of which some spoil tasks, and an agent that chooses among the active ones. The same for one seed. */
export interface LibraryOptions {
  readonly seed: number;
  /** The least share of its tasks that a harmful tool spoils, in percent. */
  readonly minHarmPercent: number;
  /** The share of the tasks that end badly by themselves, in percent. */
  readonly basePercent: number;
}

export const LIBRARY_TOOLS = 60;
export const HARMFUL_TOOLS = 20;
export const LIBRARY_TURNS = 500;
/** Useful tools that serve tasks which fail more often, whatever tool serves them. */
const HARD_TOOLS = 5;
const HARD_EXTRA_PERCENT = 15;
/** A useful tool spoils up to this share of its tasks. */
const MAX_USEFUL_HARM_PERCENT = 5;
/** In percent of the tasks: none, one or two tools; the others call three. */
const CALLS = [10, 75, 92];

export class ReplayedLibrary {
  readonly #random: SeededRandom;
  readonly #basePercent: number;
  /** In percent, by tool. */
  readonly #harm: readonly number[];

  constructor({ seed, minHarmPercent, basePercent }: LibraryOptions) {
    this.#random = seededRandom(sha256(`${seed}`), 'library');
    this.#basePercent = basePercent;
    this.#harm = Array.from({ length: LIBRARY_TOOLS }, (_, tool) =>
      isHarmful(tool)
        ? minHarmPercent + this.#random.integer(101 - minHarmPercent)
        : this.#random.integer(MAX_USEFUL_HARM_PERCENT + 1),
    );
  }

  /** The distinct tools that the next task calls. */
  chooseTools(active: readonly number[]): number[] {
    const draw = this.#random.integer(100);
    const calls = CALLS.filter((bound) => draw >= bound).length;
    return this.#random.shuffled(active).slice(0, calls);
  }

  /** Does the task end well with these tools? */
  endsWell(tools: readonly number[]): boolean {
    const causes = [this.#basePercent, ...tools.map((tool) => this.#harm[tool] ?? 0)];
    if (tools.some(isHard)) causes.push(HARD_EXTRA_PERCENT);
    // Each cause draws, so that the next draw does not depend on the result.
    return causes.filter((percent) => this.#random.integer(100) < percent).length === 0;
  }
}

export function isHarmful(tool: number): boolean {
  return tool < HARMFUL_TOOLS;
}

function isHard(tool: number): boolean {
  return tool >= LIBRARY_TOOLS - HARD_TOOLS;
}
