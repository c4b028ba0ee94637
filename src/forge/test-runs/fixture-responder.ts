import { isJsonObject, type Json } from '../../lib/json.ts';
import { sameJson } from './compare-json.ts';
import type { ToolFixture } from '../request.ts';

/**
 * The fixtures of one run of one test case. Among the fixtures that match a call, those with an input have priority over
 * those without. Several matching fixtures are used in their order, and the last one answers all further calls.
 */
export class FixtureResponder {
  readonly #fixtures: readonly ToolFixture[];
  readonly #used = new Set<ToolFixture>();

  constructor(fixtures: readonly ToolFixture[]) {
    this.#fixtures = fixtures;
  }

  /** Finds the output for a call. With `partly`, the input of a fixture may have only some members of the call's input. */
  outputFor(tool: string, input: Json, partly = false): { output: Json } | undefined {
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

function covers(expected: Json, input: Json, partly: boolean): boolean {
  if (!partly || !isJsonObject(expected) || !isJsonObject(input)) return sameJson(expected, input);
  return Object.entries(expected).every(
    ([key, value]) => Object.hasOwn(input, key) && sameJson(value, input[key] ?? null),
  );
}
