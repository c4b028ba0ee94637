/**
 * The keys of delivery tokens. All gateways verify with both; the first signs. A new key is distributed before it signs, and the
 * previous one stays until every token that it signed has expired.
 *
 *     current ──(30 days)──▶ current + next ──(an hour)──▶ current (was next) + previous ──(two hours)──▶ current
 */
export interface SigningKeys {
  readonly current: string;
  readonly other?: string;
  readonly phase: 'single' | 'announced' | 'retiring';
  /** When the phase began. */
  readonly since: Date;
}

const HOUR_MS = 3_600_000;
const LIFETIME_MS = 30 * 24 * HOUR_MS;
/** The kubelet takes minutes to update a mounted Secret, and a gateway reads it every ten seconds. */
const ANNOUNCE_MS = HOUR_MS;
/** A token is valid until the deadline of its message chain, at most an hour. */
const RETIRE_MS = 2 * HOUR_MS;
const PHASES: ReadonlySet<unknown> = new Set(['single', 'announced', 'retiring'] satisfies SigningKeys['phase'][]);

/** Names of the members of the Secret. The first two are mounted into the gateways. */
const CURRENT = 'delivery-token.key';
const OTHER = 'delivery-token.other.key';
const PHASE = 'phase';
const SINCE = 'since';

/** The next state; the same object when nothing changes. */
export function rotateSigningKeys(keys: SigningKeys | undefined, now: Date, newKey: () => string): SigningKeys {
  if (keys === undefined) return { current: newKey(), phase: 'single', since: now };
  const { current, other, phase, since } = keys;
  const age = now.getTime() - since.getTime();
  if (phase === 'single')
    return age < LIFETIME_MS ? keys : { current, other: newKey(), phase: 'announced', since: now };
  if (other === undefined) return { current, phase: 'single', since: now };
  if (phase === 'announced') {
    return age < ANNOUNCE_MS ? keys : { current: other, other: current, phase: 'retiring', since: now };
  }
  return age < RETIRE_MS ? keys : { current, phase: 'single', since: now };
}

/** The keys of a Secret; undefined without a current one. A Secret without a readable phase has one key that begins its life now. */
export function signingKeysIn(data: Readonly<Record<string, string>> | undefined, now: Date): SigningKeys | undefined {
  const current = data?.[CURRENT];
  if (data === undefined || current === undefined || current === '') return undefined;
  const { [OTHER]: other, [PHASE]: phase, [SINCE]: text = '' } = data;
  const since = new Date(text);
  // A time ahead would delay the rotation for as long as it likes.
  if (!isPhase(phase) || Number.isNaN(since.getTime()) || since > now) return { current, phase: 'single', since: now };
  return { current, ...(other === undefined ? {} : { other }), phase, since };
}

export function signingKeyData({ current, other, phase, since }: SigningKeys): Record<string, string> {
  return {
    [CURRENT]: current,
    ...(other === undefined ? {} : { [OTHER]: other }),
    [PHASE]: phase,
    [SINCE]: since.toISOString(),
  };
}

function isPhase(value: unknown): value is SigningKeys['phase'] {
  return PHASES.has(value);
}
