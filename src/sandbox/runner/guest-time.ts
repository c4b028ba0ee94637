/**
 * Time and randomness of guest code. Both come from the job, so that a run can be repeated. The text of these functions
 * runs in the guest; see guest.ts.
 */
/* oxlint-disable typescript/unbound-method -- methods are taken from their objects on purpose, before guest code can change them */
import { defineHidden, type Primordials } from './guest-language.ts';

/** Milliseconds since 1970. Both functions throw in a tool that did not declare the clock; `use` is what the guest called. */
export interface GuestClock {
  now(use: string): number;
  start(use: string): number;
}

/** Makes every way to the present time read `clock`. Dates that are made from arguments stay as they are. */
export function replaceClock(own: Primordials, clock: GuestClock): void {
  const Real = Date;
  const { construct } = own;
  const realToString = Real.prototype.toString;
  const Replaced = function (...parts: unknown[]) {
    if (new.target === undefined) return own.apply(realToString, construct(Real, [clock.now('Date()')]), []);
    return construct(Real, parts.length === 0 ? [clock.now('new Date()')] : parts, new.target);
  };
  defineHidden(own, Replaced, 'name', 'Date');
  own.define(Replaced, 'length', { value: 7 });
  own.define(Replaced, 'prototype', { value: Real.prototype, writable: false });
  defineHidden(own, Replaced, 'now', () => clock.now('Date.now()'));
  defineHidden(own, Replaced, 'parse', Real.parse);
  defineHidden(own, Replaced, 'UTC', Real.UTC);
  defineHidden(own, Real.prototype, 'constructor', Replaced);
  defineHidden(own, own.global, 'Date', Replaced);
  replaceDateFormat(own, clock);
  const now = (): number => clock.now('performance.now()') - clock.start('performance.now()');
  const performance = { now };
  own.define(performance, 'timeOrigin', { get: () => clock.start('performance.timeOrigin'), configurable: true });
  defineHidden(own, own.global, 'performance', performance);
}

/** Patches date formatters, which format the present time when they get no date. */
export function replaceDateFormat(own: Primordials, clock: GuestClock): void {
  const prototype = Intl.DateTimeFormat.prototype;
  const realFormat = Object.getOwnPropertyDescriptor(prototype, 'format')?.get as () => unknown;
  const realParts = prototype.formatToParts;
  const present = (): number => clock.now('Intl.DateTimeFormat without a date');
  own.define(prototype, 'format', {
    configurable: true,
    get(this: unknown) {
      const format = own.apply(realFormat, this, []) as (date: unknown) => string;
      return (date?: unknown) => format(date === undefined ? present() : date);
    },
  });
  defineHidden(own, prototype, 'formatToParts', function (this: unknown, date?: unknown) {
    return own.apply(realParts, this, [date === undefined ? present() : date]);
  });
}

/**
 * Replaces Temporal.Now. The engine creates Temporal when it is first touched, which takes as long as the rest of the
 * bootstrap; a tool whose source does not name it gets none.
 */
export function replaceTemporalClock(own: Primordials, clock: GuestClock, source: string): void {
  interface Zoned {
    toPlainDate(): unknown;
    toPlainTime(): unknown;
    toPlainDateTime(): unknown;
  }
  interface TemporalNames {
    Instant: { fromEpochMilliseconds(time: number): { toZonedDateTimeISO(zone: unknown): Zoned } };
  }
  const temporal = own.includes(source, 'Temporal') ? (own.global['Temporal'] as TemporalNames | undefined) : undefined;
  if (temporal === undefined) {
    delete own.global['Temporal'];
    return;
  }
  const { Instant } = temporal;
  const instant = () => Instant.fromEpochMilliseconds(clock.now('Temporal.Now'));
  const zoned = (zone: unknown = 'UTC') => instant().toZonedDateTimeISO(zone);
  const functions = {
    timeZoneId: () => 'UTC',
    instant,
    zonedDateTimeISO: zoned,
    plainDateTimeISO: (zone?: unknown) => zoned(zone).toPlainDateTime(),
    plainDateISO: (zone?: unknown) => zoned(zone).toPlainDate(),
    plainTimeISO: (zone?: unknown) => zoned(zone).toPlainTime(),
  };
  defineHidden(own, temporal, 'Now', functions);
}

/** Replaces Math.random() by the generator sfc32, seeded at its first use. Returns the function that makes the next use seed it again. */
export function seedRandomness(own: Primordials, readSeed: () => string): () => void {
  const { parseInt } = Number;
  const { slice } = String.prototype;
  const state = { a: 0, b: 0, c: 0, d: 0, seeded: false };
  const next = (): number => {
    const sum = (((state.a + state.b) | 0) + state.d) | 0;
    state.d = (state.d + 1) | 0;
    state.a = state.b ^ (state.b >>> 9);
    state.b = (state.c + (state.c << 3)) | 0;
    state.c = (((state.c << 21) | (state.c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  const seed = (): void => {
    const text = readSeed();
    const word = (from: number): number => parseInt(own.apply(slice, text, [from, from + 8]) as string, 16) | 0;
    state.a = word(0);
    state.b = word(8);
    state.c = word(16);
    state.d = word(24);
    state.seeded = true;
    for (let round = 0; round < 15; round += 1) next();
  };
  defineHidden(own, Math, 'random', () => {
    if (!state.seeded) seed();
    // 53 bits, as in a number between 0 and 1 of the engine itself.
    return ((next() >>> 5) * 67_108_864 + (next() >>> 6)) / 9_007_199_254_740_992;
  });
  return () => {
    state.seeded = false;
  };
}
