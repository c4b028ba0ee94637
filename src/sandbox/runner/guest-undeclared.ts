/**
 * Makes the clock, randomness and hashes throw inside a tool that did not declare them. The text of these functions runs in
 * the guest; see guest.ts.
 */
import { defineHidden, type Primordials } from './guest-language.ts';

/** Throws when guest code uses a built-in that needs an undeclared API. */
export type UndeclaredUse = (use: string) => never;

export function buildUndeclaredUse(api: 'clock' | 'random' | 'crypto'): UndeclaredUse {
  const RealError = Error;
  const needs = {
    clock: 'reads the clock; add "clock" to the allowlist of the tool, or take the time as an input',
    random: 'is random; add "random" to the allowlist of the tool, or take the value as an input',
    crypto: 'computes a hash; add "crypto" to the allowlist of the tool',
  };
  return (use) => {
    throw new RealError(`${use} ${needs[api]}`);
  };
}

export function denyRandomness(own: Primordials, refuse: UndeclaredUse): void {
  defineHidden(own, Math, 'random', () => refuse('Math.random()'));
}
