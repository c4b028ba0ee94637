import { isJsonObject, type Json } from '../../lib/json.ts';
import { sameJson } from '../compare.ts';
import type { Fixture } from '../request.ts';

/**
 * The fixtures of one run of one test. Of those that fit a call, one that names its input goes before one that answers
 * any; several alike are used in their order, and the last of them answers all further calls.
 */
export class FixtureBook {
  readonly #fixtures: readonly Fixture[];
  readonly #used = new Set<Fixture>();

  constructor(fixtures: readonly Fixture[]) {
    this.#fixtures = fixtures;
  }

  /** `partly`: a fixture's input need only name some of the members of the call's. */
  answer(tool: string, input: Json, partly = false): { output: Json } | undefined {
    const fits = this.#fixtures.filter(
      (fixture) => fixture.tool === tool && (fixture.input === undefined || covers(fixture.input, input, partly)),
    );
    const named = fits.filter((fixture) => fixture.input !== undefined);
    const candidates = named.length > 0 ? named : fits;
    const chosen = candidates.find((fixture) => !this.#used.has(fixture)) ?? candidates.at(-1);
    if (chosen === undefined) return undefined;
    this.#used.add(chosen);
    return { output: chosen.output };
  }
}

function covers(wanted: Json, input: Json, partly: boolean): boolean {
  if (!partly || !isJsonObject(wanted) || !isJsonObject(input)) return sameJson(wanted, input);
  return Object.entries(wanted).every(
    ([key, value]) => Object.hasOwn(input, key) && sameJson(value, input[key] ?? null),
  );
}
