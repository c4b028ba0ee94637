import type { TemperError } from '../../lib/errors.ts';

export interface CircuitSettings {
  /** Consecutive failed calls that open the circuit of a caller. A billing error opens it at once. */
  failuresToOpen: number;
  /** Initial and maximum cool-down; it doubles each time the caller fails again. */
  coolDownMs: readonly [first: number, longest: number];
  billingCoolDownMs: readonly [first: number, longest: number];
  /** Interval of probes: while the circuit is open, one call per interval is sent to the provider. */
  probeIntervalMs: number;
}

/**
 * The circuit of one caller at one provider, since the caller's last success. Times are monotonic milliseconds.
 *
 *     closed ──failures──▶ open ──every 30 s──▶ one probe ──success──▶ removed
 *                            ▲                      │
 *                            └──failure, doubled────┘     open ──cool-down ended──▶ closed
 */
export class CallerCircuit {
  readonly #settings: CircuitSettings;
  #failures = 0;
  /** How often the circuit opened. */
  #openings = 0;
  #openUntil = Number.NEGATIVE_INFINITY;
  #nextProbe = Number.NEGATIVE_INFINITY;
  #probing = false;

  constructor(settings: CircuitSettings) {
    this.#settings = settings;
  }

  isOpen(now: number): boolean {
    return now < this.#openUntil;
  }

  /** Whether a call may be sent. While the circuit is open, it is a probe, and must be released at its end. */
  admit(now: number): 'call' | 'probe' | 'refused' {
    if (!this.isOpen(now)) return 'call';
    if (this.#probing || now < this.#nextProbe) return 'refused';
    this.#probing = true;
    return 'probe';
  }

  releaseProbe(): void {
    this.#probing = false;
  }

  /** Milliseconds until the next call may be sent. */
  waitMs(now: number): number {
    return Math.ceil(Math.max(0, Math.min(this.#nextProbe, this.#openUntil) - now));
  }

  /** Counts a failure. True if it opened the circuit. */
  failed(error: TemperError, now: number, { isProbe, failuresToOpen }: { isProbe: boolean; failuresToOpen: number }) {
    this.#failures += 1;
    const isBilling = error.code === 'TEMPER_MODEL_BILLING';
    // Calls that were in flight when the circuit opened fail later; they belong to the same outage.
    if (!isProbe && (this.isOpen(now) || (!isBilling && this.#failures < failuresToOpen))) return false;
    const { coolDownMs, billingCoolDownMs, probeIntervalMs } = this.#settings;
    const [first, max] = isBilling ? billingCoolDownMs : coolDownMs;
    const requestedMs = typeof error.retry === 'number' ? error.retry : 0;
    this.#openUntil = now + Math.min(max, Math.max(requestedMs, first * 2 ** this.#openings));
    this.#nextProbe = now + Math.max(probeIntervalMs, requestedMs);
    this.#openings += 1;
    this.#failures = 0;
    return true;
  }
}
