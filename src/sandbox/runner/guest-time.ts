/** Time and chance inside a tool that did not declare them: constants. Text of these functions runs in the guest; see guest.ts. */
/* oxlint-disable typescript/unbound-method -- methods are taken from their objects on purpose, before guest code can change them */
import { hide, type Primordials } from './guest-language.ts';

/** Time stands still, wherever the language tells it. */
export function stopTime(own: Primordials, epoch: number): void {
  const Real = Date;
  const { construct } = own;
  const realToString = Real.prototype.toString;
  const Fixed = function (...parts: unknown[]) {
    if (new.target === undefined) return own.apply(realToString, construct(Real, [epoch]), []);
    return construct(Real, parts.length === 0 ? [epoch] : parts, new.target);
  };
  hide(own, Fixed, 'name', 'Date');
  own.define(Fixed, 'length', { value: 7 });
  own.define(Fixed, 'prototype', { value: Real.prototype, writable: false });
  hide(own, Fixed, 'now', () => epoch);
  hide(own, Fixed, 'parse', Real.parse);
  hide(own, Fixed, 'UTC', Real.UTC);
  hide(own, Real.prototype, 'constructor', Fixed);
  hide(own, own.global, 'Date', Fixed);
  stopFormatting(own, epoch);
  stopTemporal(own, epoch);
}

/** A formatter without a date formats the present. */
export function stopFormatting(own: Primordials, epoch: number): void {
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
  hide(own, prototype, 'formatToParts', function (this: unknown, date?: unknown) {
    return own.apply(realParts, this, [date === undefined ? epoch : date]);
  });
}

export function stopTemporal(own: Primordials, epoch: number): void {
  const temporal = own.global['Temporal'] as
    | { Now: object; Instant: { fromEpochMilliseconds(at: number): Moment } }
    | undefined;
  if (temporal === undefined) return;
  interface Zoned {
    toPlainDate(): object;
    toPlainTime(): object;
    toPlainDateTime(): object;
  }
  interface Moment {
    toZonedDateTimeISO(zone: unknown): Zoned;
  }
  const { Instant } = temporal;
  const make = Instant.fromEpochMilliseconds;
  const instant = (): Moment => own.apply(make, Instant, [epoch]) as Moment;
  const { toZonedDateTimeISO } = Object.getPrototypeOf(instant()) as Moment;
  const zoned = (zone: unknown = 'UTC'): Zoned => own.apply(toZonedDateTimeISO, instant(), [zone]) as Zoned;
  const { toPlainDate, toPlainTime, toPlainDateTime } = Object.getPrototypeOf(zoned()) as Zoned;
  hide(own, temporal.Now, 'instant', instant);
  hide(own, temporal.Now, 'zonedDateTimeISO', zoned);
  hide(own, temporal.Now, 'plainDateISO', (zone?: unknown) => own.apply(toPlainDate, zoned(zone), []));
  hide(own, temporal.Now, 'plainTimeISO', (zone?: unknown) => own.apply(toPlainTime, zoned(zone), []));
  hide(own, temporal.Now, 'plainDateTimeISO', (zone?: unknown) => own.apply(toPlainDateTime, zoned(zone), []));
}

/** The same numbers in the same order in every call: mulberry32 from a fixed seed. */
export function stopRandomness(own: Primordials): void {
  const { imul } = Math;
  let state = 0x9e3779b9;
  hide(own, Math, 'random', () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  });
}
