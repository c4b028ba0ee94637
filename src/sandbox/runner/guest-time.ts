/** Freezes time and randomness inside a tool that did not declare them. The text of these functions runs in the guest; see guest.ts. */
/* oxlint-disable typescript/unbound-method -- methods are taken from their objects on purpose, before guest code can change them */
import { defineHidden, type Primordials } from './guest-language.ts';

/** Makes every clock of the language return `epoch`. */
export function freezeTime(own: Primordials, epoch: number): void {
  const Real = Date;
  const { construct } = own;
  const realToString = Real.prototype.toString;
  const Fixed = function (...parts: unknown[]) {
    if (new.target === undefined) return own.apply(realToString, construct(Real, [epoch]), []);
    return construct(Real, parts.length === 0 ? [epoch] : parts, new.target);
  };
  defineHidden(own, Fixed, 'name', 'Date');
  own.define(Fixed, 'length', { value: 7 });
  own.define(Fixed, 'prototype', { value: Real.prototype, writable: false });
  defineHidden(own, Fixed, 'now', () => epoch);
  defineHidden(own, Fixed, 'parse', Real.parse);
  defineHidden(own, Fixed, 'UTC', Real.UTC);
  defineHidden(own, Real.prototype, 'constructor', Fixed);
  defineHidden(own, own.global, 'Date', Fixed);
  freezeDateFormat(own, epoch);
  // Temporal has five more clocks, and patching them would cost as much as the whole rest of the bootstrap.
  delete own.global['Temporal'];
}

/** Patches date formatters, which format the current time when they get no date. */
export function freezeDateFormat(own: Primordials, epoch: number): void {
  const prototype = Intl.DateTimeFormat.prototype;
  const realFormat = Object.getOwnPropertyDescriptor(prototype, 'format')?.get as () => unknown;
  const realParts = prototype.formatToParts;
  own.define(prototype, 'format', {
    configurable: true,
    get(this: unknown) {
      const format = own.apply(realFormat, this, []) as (date: unknown) => string;
      return (date?: unknown) => format(date === undefined ? epoch : date);
    },
  });
  defineHidden(own, prototype, 'formatToParts', function (this: unknown, date?: unknown) {
    return own.apply(realParts, this, [date === undefined ? epoch : date]);
  });
}

/** Makes Math.random return the same sequence in every job: mulberry32 with a fixed seed. */
export function freezeRandomness(own: Primordials): void {
  const { imul } = Math;
  let state = 0x9e3779b9;
  defineHidden(own, Math, 'random', () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  });
}
