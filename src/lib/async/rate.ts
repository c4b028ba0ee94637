import { TemperError } from '../errors.ts';
import type { TokenBucket, TokenBucketOptions } from './token-bucket.ts';

/** A rate of an agent, and what it counts. */
export interface Rate extends TokenBucketOptions {
  readonly unit: string;
}

/** Throws TEMPER_RATE_LIMITED with the time after which `count` fits. A full bucket accepts any size. */
export function takeFrom(bucket: TokenBucket, { burst, perSecond, unit }: Rate, count: number): void {
  if (bucket.tryTake(Math.min(count, burst))) return;
  const waitMs = Math.ceil(bucket.waitMs(count));
  const rate = perSecond < 1 ? `one per ${Math.round(1 / perSecond)} s` : `${perSecond} per second`;
  const message = `the agent sends more ${unit} than its rate of ${rate}; send less, or wait`;
  throw new TemperError('TEMPER_RATE_LIMITED', message, { retry: Math.max(1, waitMs) });
}
