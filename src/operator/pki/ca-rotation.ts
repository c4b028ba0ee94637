import { type KeyPair, isDue, readCertificate } from './certificates.ts';

/**
 * The stored CA certificates. The next CA is trusted before it starts to sign, the previous one until it expires.
 *
 *     current ──(due)──▶ current + next ──(announced)──▶ current (was next) + previous ──(previous expired)──▶ current
 */
export interface CaState {
  readonly current: KeyPair;
  readonly next?: KeyPair;
  readonly previous?: string;
}

const DAY_MS = 86_400_000;
const CA_LIFETIME_MS = 5 * 365 * DAY_MS;
/** Long enough for every pod to get the new bundle: the kubelet takes minutes to update a mounted ConfigMap. */
const ANNOUNCE_MS = 3_600_000;
const NAME = 'temper authority';

/** The next state; the same object when nothing changes. A missing, unreadable or expired CA is replaced at once. */
export async function rotateCa(state: CaState | undefined, now: Date): Promise<CaState> {
  const current = readCertificate(state?.current.certificate);
  if (state === undefined || current === undefined || current.notAfter <= now) {
    return { current: await newCa(now) };
  }
  const next = readCertificate(state.next?.certificate);
  if (state.next !== undefined && next !== undefined) {
    if (now.getTime() - next.notBefore.getTime() < ANNOUNCE_MS) return state;
    return { current: state.next, previous: state.current.certificate };
  }
  if (isDue(current, now)) return { ...state, next: await newCa(now) };
  const previous = readCertificate(state.previous);
  if (state.previous === undefined || (previous !== undefined && previous.notAfter > now)) return state;
  return { current: state.current };
}

async function newCa(now: Date): Promise<KeyPair> {
  const { createCa } = await import('./certificate-issuer.ts');
  return createCa(NAME, now, CA_LIFETIME_MS);
}

/** The CA bundle for clients: the current, next and previous CA certificates. */
export function caBundleOf({ current, next, previous }: CaState): string {
  return [current.certificate, next?.certificate, previous].filter((text) => text !== undefined).join('');
}
