import { tryDigestOf } from '../../../lib/canonical.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../lib/json.ts';

/** Where the inputs of a tool come from: its tests and its earlier uses. */
export interface InputsOfTool {
  tests: readonly JsonObject[];
  recorded: readonly Json[];
}

/** Of the recorded inputs. The tests are bounded by the size of an artifact. */
const MAX_RECORDED = 24;
const MAX_CHARACTERS = 256 * 1_024;

/** Distinct inputs of two tools: all of their tests, then a bounded number of recorded inputs of both in turn. Pure. */
export function sharedInputs(first: InputsOfTool, second: InputsOfTool): JsonObject[] {
  const chosen = byDigest([...first.tests, ...second.tests]);
  const most = chosen.size + MAX_RECORDED;
  let left = MAX_CHARACTERS;
  for (const [digest, input] of byDigest(inTurn(first.recorded, second.recorded))) {
    if (chosen.size >= most) break;
    const { length } = JSON.stringify(input);
    if (chosen.has(digest) || length > left) continue;
    left -= length;
    chosen.set(digest, input);
  }
  return [...chosen.values()];
}

function byDigest(inputs: readonly Json[]): Map<string, JsonObject> {
  const found = new Map<string, JsonObject>();
  for (const input of inputs) {
    const digest = isJsonObject(input) ? tryDigestOf(input) : undefined;
    if (isJsonObject(input) && digest !== undefined) found.set(digest, input);
  }
  return found;
}

function inTurn(first: readonly Json[], second: readonly Json[]): Json[] {
  const length = Math.max(first.length, second.length);
  return Array.from({ length }, (_, index) => [first[index], second[index]])
    .flat()
    .filter((input) => input !== undefined);
}
