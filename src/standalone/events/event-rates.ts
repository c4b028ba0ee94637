import { AGENT_EVENT_RATE, NAMESPACE_EVENT_RATE } from '../../events/limits.ts';
import { takeFrom } from '../../lib/async/rate.ts';
import { TokenBucket } from '../../lib/async/token-bucket.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Member } from '../team/member.ts';

/** Events per second that the agents of this process publish; all of them are of one namespace. */
export class EventRates {
  readonly #clock: Clock;
  readonly #agents = new WeakMap<Member, TokenBucket>();
  readonly #all: TokenBucket;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#all = new TokenBucket(clock, NAMESPACE_EVENT_RATE);
  }

  /** Throws TEMPER_RATE_LIMITED. */
  take(member: Member): void {
    const own = this.#agents.get(member) ?? new TokenBucket(this.#clock, AGENT_EVENT_RATE);
    this.#agents.set(member, own);
    takeFrom(own, AGENT_EVENT_RATE, 1);
    takeFrom(this.#all, NAMESPACE_EVENT_RATE, 1);
  }
}
