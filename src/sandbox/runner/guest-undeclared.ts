/**
 * Makes the clock and randomness throw inside a tool that did not declare them. The text of these functions runs in the
 * guest; see guest.ts.
 */
/* oxlint-disable typescript/unbound-method -- methods are taken from their objects on purpose, before guest code can change them */
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

/** Makes every way to the present time throw. Dates that are made from arguments stay available. */
export function denyClock(own: Primordials, refuse: UndeclaredUse): void {
  const Real = Date;
  const { construct } = own;
  const Pure = function (...parts: unknown[]) {
    if (new.target === undefined) return refuse('Date()');
    return parts.length === 0 ? refuse('new Date()') : construct(Real, parts, new.target);
  };
  defineHidden(own, Pure, 'name', 'Date');
  own.define(Pure, 'length', { value: 7 });
  own.define(Pure, 'prototype', { value: Real.prototype, writable: false });
  defineHidden(own, Pure, 'now', () => refuse('Date.now()'));
  defineHidden(own, Pure, 'parse', Real.parse);
  defineHidden(own, Pure, 'UTC', Real.UTC);
  defineHidden(own, Real.prototype, 'constructor', Pure);
  defineHidden(own, own.global, 'Date', Pure);
  denyDateFormat(own, refuse);
  const performance = { now: () => refuse('performance.now()') };
  own.define(performance, 'timeOrigin', { get: () => refuse('performance.timeOrigin'), configurable: true });
  defineHidden(own, own.global, 'performance', performance);
}

/** Patches date formatters, which format the present time when they get no date. */
export function denyDateFormat(own: Primordials, refuse: UndeclaredUse): void {
  const prototype = Intl.DateTimeFormat.prototype;
  const realFormat = Object.getOwnPropertyDescriptor(prototype, 'format')?.get as () => unknown;
  const realParts = prototype.formatToParts;
  const use = 'Intl.DateTimeFormat without a date';
  own.define(prototype, 'format', {
    configurable: true,
    get(this: unknown) {
      const format = own.apply(realFormat, this, []) as (date: unknown) => string;
      return (date?: unknown) => (date === undefined ? refuse(use) : format(date));
    },
  });
  defineHidden(own, prototype, 'formatToParts', function (this: unknown, date?: unknown) {
    return date === undefined ? refuse(use) : own.apply(realParts, this, [date]);
  });
}

/**
 * Makes Temporal.Now throw. The engine creates Temporal when it is first touched, which takes as long as the rest of the
 * bootstrap; a tool whose source does not name it gets none.
 */
export function denyTemporalClock(own: Primordials, refuse: UndeclaredUse, source: string): void {
  const temporal = own.includes(source, 'Temporal') ? (own.global['Temporal'] as object | undefined) : undefined;
  if (temporal === undefined) delete own.global['Temporal'];
  else own.define(temporal, 'Now', { configurable: true, get: () => refuse('Temporal.Now') });
}

export function denyRandomness(own: Primordials, refuse: UndeclaredUse): void {
  defineHidden(own, Math, 'random', () => refuse('Math.random()'));
}
